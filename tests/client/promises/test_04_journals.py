"""Promises 1, 4 and 12 where the journal is a file: damage is said with what it means, and JSON lines do all but transactions."""

from __future__ import annotations

import subprocess
import sys

import pytest

import reattach
from reattach import errors

pytestmark = pytest.mark.anyio
JOURNALS = ["runs.db", "runs.jsonl"]


@pytest.fixture(params=JOURNALS)
def journal(request, tmp_path):
    return tmp_path / request.param


async def followed(run) -> list[int]:
    return [event.sequence async for event in run]


async def test_a_damaged_journal_is_said_once_and_its_runs_are_listed(face, live, journal):
    """B75, promise 1: the start that finds it says that earlier keys are unknown; the next one works, and the old runs wait."""
    key = f"damaged-{face.name}-{journal.name}"
    async with face.client(live.url, journal) as client:
        first = await client.start({"scenario": "slow"}, key=key)
        await client.start({"scenario": "slow"}, key=f"{key}-1")
    content = journal.read_bytes()
    journal.write_bytes(content[: len(content) - 1000] if journal.suffix == ".db" else content[:-100])
    async with face.client(live.url, journal) as client:
        with pytest.raises(errors.JournalDamaged, match=r"Keys used before are unknown now") as caught:
            await client.start({"scenario": "words"}, key=f"{key}-2")
        assert f"{journal.name}.damaged-" in str(caught.value)
        run = await client.start({"scenario": "words"}, key=f"{key}-2")
        assert await followed(run) == list(range(1, 14))
        listed = {run.id: run.needs for run in await client.runs(unfinished=True)}
        if journal.suffix == ".jsonl":
            assert listed == {first.id: "repair"}, "the other's line was the one that was cut"


async def test_a_run_in_json_lines_goes_on_where_it_was(face, live, tmp_path):
    """Promise 4: a new client shows what was not confirmed, marked, and the rest."""
    journal, key = tmp_path / "runs.jsonl", f"lines-{face.name}"
    async with face.client(live.url, journal) as client:
        run = await client.start({"scenario": "words"}, key=key)
        seen = []
        async for event in run:
            seen.append(event.sequence)
            if len(seen) == 5:
                await run.ack()
                break
    async with face.client(live.url, journal) as client:
        run = await client.start({"scenario": "words"}, key=key)
        seen += await followed(run)
        assert await run.result() == {"ok": True}
    assert seen == list(range(1, 14))


async def test_json_lines_have_no_transactions(face, live, tmp_path):
    """A user's table cannot exist there: UsageError, with what to use, and the event stays in hand."""
    async with face.client(live.url, tmp_path / "runs.jsonl") as client:
        run = await client.start({"scenario": "words"}, key=f"no-tables-{face.name}")
        async for event in run:
            with pytest.raises(errors.UsageError, match=r"no transactions") as caught:
                async with run.transaction() as tx:
                    await tx.execute("INSERT INTO bill VALUES (1)")
            assert "runs.db" in str(caught.value)
            await run.ack(event)
            break


async def test_a_second_process_gets_the_name_of_the_first(face, live, tmp_path):
    """Promise 12: StoreBusy names who has the journal, and what to do; the first goes on."""
    journal = tmp_path / "runs.jsonl"
    program = (
        "import sys, reattach\n"
        "try:\n"
        "    with reattach.Client(*sys.argv[1:]) as client: client.runs()\n"
        "except reattach.errors.StoreBusy as error: print(error)\n"
    )
    async with face.client(live.url, journal) as client:
        await client.runs()
        told = second(program, live.url, str(journal))
        assert "in use by pid" in told
        assert "SQLite" in told
        run = await client.start({"scenario": "words"}, key=f"first-{face.name}")
        assert await followed(run) == list(range(1, 14))


def second(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


async def test_two_clients_of_one_process_share_json_lines(face, live, tmp_path):
    """The second one's own loop over the run is RunBusy, its views follow the journal."""
    journal, key = tmp_path / "runs.jsonl", f"shared-{face.name}"
    async with face.client(live.url, journal) as one, face.client(live.url, journal) as other:
        run = await one.start({"scenario": "slow"}, key=key)
        async for _ in run:
            break
        with pytest.raises(errors.RunBusy):
            async for _ in other.attach(run.id):
                pass
        assert [each.id for each in await other.runs()] == [run.id]
        assert isinstance(await other.attach(run.id).view(), reattach.View)
