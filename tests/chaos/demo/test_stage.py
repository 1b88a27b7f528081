"""The demo finds what a client does wrong, and nothing where it does nothing wrong: a plain client, and the same with one fault.

The stage is real: server, gate and clients are processes. The client is `clients/plain_resumer.py`, which shares no code with ours.
"""

import asyncio
from pathlib import Path

import pytest

from reattach_chaos.demo import stage as stage_module
from reattach_chaos.demo.stage import Piece, Stage
from reattach_chaos.demo.verdict import Verdict, decide

CLIENTS = Path(__file__).parent / "clients"
RECORDING = "".join(f'{{"type": "note", "n": {n}, "text": "\\u2028 🙂"}}\n' for n in range(6))


def verdict_on(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, limit: float = 60.0) -> Verdict:
    """Play a run of nine events with the plain client, which has this fault."""
    monkeypatch.setenv("PYTHONPATH", str(CLIENTS))
    monkeypatch.setenv("PLAIN_RESUMER_FAULT", fault)
    monkeypatch.setitem(stage_module.CLIENTS, "plain", "plain_resumer")
    recording = tmp_path / "notes.jsonl"
    recording.write_text(RECORDING, encoding="utf-8")
    folder = tmp_path / "demo"
    folder.mkdir()
    piece = Piece(kind="recording", path=recording, events=9)
    stage = Stage(piece, client="plain", seed=7, folder=folder, watch=lambda played: None)
    stage.limit = limit
    return decide(asyncio.run(stage.play(lambda url: None)))


def test_a_client_that_does_all_right_passes(tmp_path, monkeypatch):
    """Precision: another client than ours, no anomaly, every fault fired."""
    verdict = verdict_on("", tmp_path, monkeypatch)
    assert (verdict.anomalies, verdict.unknown) == ((), ())
    assert (verdict.events, verdict.planned, verdict.fired) == (9, 33, 33)
    assert (verdict.kills, verdict.again, verdict.creates, verdict.runs) == (5, 4, 2, 1)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("unmarked", "duplicated"),
        pytest.param("second key", "second run", marks=pytest.mark.slow),
        pytest.param("inclusive", "duplicated", marks=pytest.mark.slow),
        pytest.param("skip", "lost", marks=pytest.mark.slow),
        pytest.param("early end", "lost", marks=pytest.mark.slow),
        pytest.param("changed", "changed", marks=pytest.mark.slow),
    ],
)
def test_a_client_with_one_fault_is_found_out(fault, kind, tmp_path, monkeypatch):
    """Each fault is killed by the anomaly that it makes, and by no other."""
    verdict = verdict_on(fault, tmp_path, monkeypatch)
    assert verdict.exit_code == 1
    assert {anomaly.kind for anomaly in verdict.anomalies} == {kind}


@pytest.mark.slow
def test_a_client_that_hangs_is_stopped_and_named(tmp_path, monkeypatch):
    """Every wait has an end; what a stopped client has not shown is not proven lost."""
    verdict = verdict_on("hang", tmp_path, monkeypatch, limit=6.0)
    assert verdict.exit_code == 3
    assert "follower: not at its end after 6 s (pid " in verdict.unknown[0]
