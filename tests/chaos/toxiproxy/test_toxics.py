"""Toxics played by hand: what each asks for, step by step, without a socket or a clock."""

import random

import pytest

from reattach_chaos.toxiproxy.toxics import TOXICS
from reattach_chaos.toxiproxy.toxics.bandwidth import Bandwidth
from reattach_chaos.toxiproxy.toxics.base import LATE, Chunk, Drop, Give, Rest, Site, Take, Toxic, Unusable
from reattach_chaos.toxiproxy.toxics.latency import Latency
from reattach_chaos.toxiproxy.toxics.limit_data import LimitData
from reattach_chaos.toxiproxy.toxics.reset_peer import ResetPeer
from reattach_chaos.toxiproxy.toxics.slicer import Slicer
from reattach_chaos.toxiproxy.toxics.slow_close import SlowClose
from reattach_chaos.toxiproxy.toxics.timeout import Timeout

CLOSE = None
CLOSED = "closed"


def played(toxic: Toxic, *comes: object, site: Site | None = None) -> list[object]:
    """Return what a toxic asks for while these come (bytes, `LATE`, CLOSE), and CLOSED where its flow returns."""
    flow = toxic.flow(site or Site(random.Random(7)))
    left = list(comes)
    steps: list[object] = []
    try:
        step = next(flow)
        while True:
            steps.append(step)
            if isinstance(step, Take):
                if not left:
                    return steps
                given = left.pop(0)
                step = flow.send(Chunk(given, 0.0) if isinstance(given, bytes) else given)
            else:
                step = flow.send(None)
    except StopIteration:
        steps.append(CLOSED)
    return steps


def given(steps: list[object]) -> list[bytes]:
    return [step.data for step in steps if isinstance(step, Give)]


def test_traffic_keeps_a_timeout_alive():
    """The time begins anew with each chunk: what closes is silence, and all that came before was dropped."""
    steps = played(Timeout(timeout_ms=500), b"a", b"b", LATE)
    assert steps == [Take(0.5), Drop(), Take(0.5), Drop(), Take(0.5), CLOSED]


def test_a_timeout_of_0_waits_for_ever_and_passes_the_close():
    """0 is no time limit."""
    steps = played(Timeout(), b"a", CLOSE)
    assert steps == [Take(float("inf")), Drop(), Take(float("inf")), CLOSED]


def test_reset_peer_ends_at_a_close_too():
    """The first thing that comes, whatever it is."""
    assert played(ResetPeer(timeout_ms=100), CLOSE) == [Take(), Drop(), Rest(0.1), CLOSED]


def test_slow_close_rests_only_before_the_end():
    """Data are given at once."""
    assert played(SlowClose(delay_ms=700), b"a", CLOSE) == [Take(), Give(b"a"), Take(), Rest(0.7), CLOSED]


def test_latency_counts_from_the_arrival():
    """A chunk that has waited elsewhere waits less here."""
    assert played(Latency(latency_ms=250), b"a") == [Take(), Rest(0.25, since_arrival=True), Give(b"a"), Take()]


def test_jitter_stays_in_its_bounds_and_comes_from_the_seed():
    """± so many milliseconds; the same seed, the same waits."""
    toxic = Latency(latency_ms=100, jitter_ms=50)
    waits = [step.seconds for step in played(toxic, *[b"x"] * 200) if isinstance(step, Rest)]
    assert 0.05 <= min(waits) < 0.06
    assert 0.14 < max(waits) <= 0.15
    assert waits == [step.seconds for step in played(toxic, *[b"x"] * 200) if isinstance(step, Rest)]


def test_bandwidth_pays_before_it_passes():
    """In portions of a tenth of a second, the last one as long as it is."""
    steps = played(Bandwidth(rate_kb_s=1), bytes(250))
    assert steps == [
        Take(),
        Rest(0.1),
        Give(bytes(100)),
        Rest(0.1),
        Give(bytes(100)),
        Rest(0.05),
        Give(bytes(50)),
        Take(),
    ]


@pytest.mark.parametrize("rate", [0, -1])
def test_bandwidth_0_takes_nothing(rate):
    """Not even a close: all that waits is still there when it is removed."""
    assert next(Bandwidth(rate_kb_s=rate).flow(Site(random.Random(7)))) == Rest(None)


def test_limit_data_drops_what_is_beyond_before_it_gives():
    """Stopped between the two, nothing beyond the limit could pass; and it closes at the limit, not at the next byte."""
    steps = played(LimitData(limit_bytes=5), b"abc", b"defg")
    assert steps == [Take(), Drop(3), Give(b"abc"), Take(), Drop(2), Give(b"de"), CLOSED]


def test_limit_data_remembers_on_its_site():
    """Begun anew, it goes on counting."""
    site = Site(random.Random(7), passed=4)
    assert given(played(LimitData(limit_bytes=5), b"abc", site=site)) == [b"a"]
    assert site.passed == 5


@pytest.mark.parametrize("average", [1, 2, 50])
@pytest.mark.parametrize("variation", [0, 1, 1000])
def test_slicer_cuts_into_pieces_of_its_size(average, variation):
    """Whatever the variation, no piece is empty or beyond twice the size, and no byte is lost or moved."""
    data = bytes(range(256)) * 4
    pieces = given(played(Slicer(average_bytes=average, variation_bytes=variation, delay_us=200), data))
    assert b"".join(pieces) == data
    spread = min(variation, average - 1)
    assert {len(piece) for piece in pieces[:-1]} <= set(range(average - spread, average + spread + 1))
    assert len({len(piece) for piece in pieces[:-1]}) > 1 or not spread


def test_slicer_rests_between_the_pieces_only():
    """Not after the last."""
    steps = played(Slicer(average_bytes=2, delay_us=200), b"abc")
    assert steps == [Take(), Give(b"ab"), Rest(0.0002), Give(b"c"), Take()]


def test_a_slicer_without_a_size_cannot_be_made():
    """A real server dies of it."""
    with pytest.raises(Unusable, match="average_size"):
        Slicer()


def test_the_api_has_no_name_twice():
    """And each class is found by its own."""
    assert {name: toxic.kind for name, toxic in TOXICS.items()} == {name: name for name in TOXICS}
