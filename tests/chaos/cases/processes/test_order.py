"""What is said to the nursery on a client's connection."""

import signal
import socket

import pytest

from reattach_chaos.cases.processes.order import SIGNALS, read_signals


@pytest.fixture
def ends():
    """The client's side and the nursery's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_signals_that_were_said_together_are_all_sent_in_their_order(ends):
    """Whatever the length of their words; what is no word of a signal is none."""
    ours, theirs = ends
    ours.sendall("".join(f"{word}\n" for word in (*SIGNALS, "hello", "terminate")).encode())
    assert read_signals(theirs) == list(SIGNALS.values())


def test_who_hung_up_wants_the_client_gone(ends):
    """There is nobody any more to whom it could say anything."""
    ours, theirs = ends
    ours.close()
    assert read_signals(theirs) == [signal.SIGKILL]
