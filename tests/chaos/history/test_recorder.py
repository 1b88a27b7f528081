import asyncio
import threading

from reattach_chaos.history import Delivered, Other, Recorder, read_history


def test_records_of_many_threads_have_one_order(tmp_path):
    """Numbers have no hole, and the file has the same order."""
    with Recorder(tmp_path / "h.jsonl") as recorder:
        ready = threading.Barrier(4)

        def work(who):
            ready.wait(10)
            for number in range(50):
                recorder.record(Delivered(id=str(number), who=who))

        threads = [threading.Thread(target=work, args=[str(number)]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        kept = list(recorder.history())
    assert [record.n for record in kept] == list(range(1, 201))
    assert list(read_history(tmp_path / "h.jsonl")) == kept
    assert all([r.id for r in kept if r.who == who] == [str(n) for n in range(50)] for who in "0123")


def test_records_of_many_tasks_have_one_order():
    """A recorder is called from an event loop without waiting."""
    recorder = Recorder()

    async def work(who):
        for number in range(10):
            recorder.record(Delivered(id=str(number), who=who))
            await asyncio.sleep(0)

    async def both():
        await asyncio.gather(work("a"), work("b"))

    asyncio.run(both())
    assert [record.n for record in recorder.history()] == list(range(1, 21))


def test_all_times_are_of_one_clock():
    """A record that brings its own time, from the same clock, keeps it."""
    now = [100.0]
    recorder = Recorder(clock=lambda: now[0])
    now[0] = 100.25
    assert recorder.record(Delivered(id="a")).at_ms == 250.0
    assert recorder.record(Delivered(id="b", at_ms=7.0)).at_ms == 7.0


def test_each_record_is_in_the_file_at_once(tmp_path):
    """What was recorded before a crash is there."""
    recorder = Recorder(tmp_path / "h.jsonl")
    recorder.record(Delivered(id="a"))
    assert len(read_history(tmp_path / "h.jsonl")) == 1
    recorder.close()


def test_a_full_history_says_so_and_takes_no_more(tmp_path):
    """A client that never stops cannot fill the memory; and nobody takes what is left for the whole."""
    with Recorder(tmp_path / "h.jsonl", limit=2) as recorder:
        for number in range(5):
            recorder.record(Delivered(id=str(number)))
        kept = list(recorder.history())
    assert [getattr(record, "id", None) for record in kept] == ["0", "1", None]
    assert isinstance(kept[2], Other)
    assert kept[2].name == "truncated"
    assert len(read_history(tmp_path / "h.jsonl")) == 3


def test_who_listens_hears_each_record_as_it_is_kept():
    """A live screen needs no second way."""
    recorder, heard = Recorder(), []
    recorder.listen(heard.append)
    recorder.record(Delivered(id="a"))
    assert heard == list(recorder.history())


def test_what_comes_after_the_close_is_kept_in_memory(tmp_path):
    """A late thread does not fail the case."""
    recorder = Recorder(tmp_path / "h.jsonl")
    recorder.close()
    recorder.close()
    recorder.record(Delivered(id="late"))
    assert len(recorder.history()) == 1
