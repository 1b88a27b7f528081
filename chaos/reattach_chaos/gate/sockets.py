"""What is done to a socket, and how to be sure that it comes exactly where it should.

A reset throws away what was not delivered, so a cut "exactly after event 7" must wait until the client's kernel has every byte of
event 7: that is `settled`. Which fault and when is the plan's; a stall is no deed at all, only silence.

Checked by tests/chaos/gate/test_relay.py, as a client with a plain socket sees them.
"""

import array
import asyncio
import contextlib
import socket
import struct
import sys

SETTLE_S = 5.0  # a client that takes no byte for so long is not waited for
STALL_S = 120.0  # a stalled connection that its client never closes is freed after this
_POLL_S = 0.001
_OPEN_STATES = (1, 4, 5)  # Linux: ESTABLISHED, FIN_WAIT1, FIN_WAIT2: the peer has not ended
_SIOCOUTQ = 0x5411  # Linux: bytes of the send queue that the peer has not acknowledged


async def settled(writer: asyncio.StreamWriter) -> bool:
    """Wait until all that was written has reached the peer's kernel.

    Returns:
        False where the connection is gone, or the peer took too long (SETTLE_S): what was written is then not certain to have come.
    """
    # The kernel tells nobody when the last byte was acknowledged, so it is asked: on loopback once, as a rule.
    for _ in range(int(SETTLE_S / _POLL_S)):
        if writer.transport.is_closing():
            return False
        try:
            left = writer.transport.get_write_buffer_size() or _unacknowledged(writer.get_extra_info("socket"))
        except OSError:
            return False
        if not left:
            return True
        await asyncio.sleep(_POLL_S)
    return False


async def ended(writer: asyncio.StreamWriter) -> bool:
    """Wait until the peer has ended its side, ours being open; return whether it did within SETTLE_S."""
    for _ in range(int(SETTLE_S / _POLL_S)):
        if writer.transport.is_closing() or not is_open(writer):
            return True
        await asyncio.sleep(_POLL_S)
    return False


async def left(writer: asyncio.StreamWriter) -> bool:
    """Wait until the peer has ended its side, too, after ours was; return whether it did within SETTLE_S.

    Where the system does not say, it is taken as done.
    """
    for _ in range(int(SETTLE_S / _POLL_S)):
        if sys.platform != "linux" or not is_open(writer):
            return True
        await asyncio.sleep(_POLL_S)
    return False


def is_open(writer: asyncio.StreamWriter) -> bool:
    """Whether the peer has not ended its side, as far as the system says."""
    if sys.platform != "linux":
        return not writer.transport.is_closing()
    try:
        return writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in _OPEN_STATES
    except OSError:
        return False


def _unacknowledged(sock: socket.socket) -> int:
    """Return the bytes that the peer's kernel has not acknowledged; 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    import fcntl  # not on every system

    count = array.array("i", [0])
    fcntl.ioctl(sock.fileno(), _SIOCOUTQ, count)
    return count[0]


def fin(writer: asyncio.StreamWriter) -> None:
    """End our side: the client reads an end of stream, in the middle of a body.

    The caller reads on until the client closes too: a close with unread bytes would send a reset.
    """
    with contextlib.suppress(OSError):
        writer.write_eof()


def rst(writer: asyncio.StreamWriter) -> None:
    """Reset the connection: the client's next read fails."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
