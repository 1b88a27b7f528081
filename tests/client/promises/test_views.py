"""The view is the whole truth: the texts in order, for every ready scenario, at linear cost, also while another one writes."""

import time

import pytest

from client_stage import Async, collected, in_memory
from reattach import Event
from reattach.core.fold import Fold
from reattach.profiles import Native
from reattach_mockserver.scenarios.ready import READY

pytestmark = pytest.mark.anyio
SETTLES_BY_ITSELF = sorted(set(READY) - {"cancel-me", "quiet", "long-text"})  # burst is as long


@pytest.mark.parametrize("name", SETTLES_BY_ITSELF)
async def test_printing_every_text_prints_the_views_text(live, journal, name):
    async with Async().client(live.url, journal) as client:
        run = await client.start({"scenario": name}, key=f"ready-{name}")
        text, seen = "", []

        async def look():
            async for view in run.views(interval=0.001):
                seen.append(view)  # noqa: PERF401 (looked at while it grows)

        looking = Async().beside(look)
        async for event in run:
            text += event.text
        await looking.result()
        view = await run.view()
        assert view.text == seen[-1].text == (await run.wait()).text == text
        assert all(text.startswith(each.text) for each in seen)
        assert view.messages == seen[-1].messages
        assert view.status == seen[-1].status == (await run.wait()).status


async def test_a_view_is_the_newest_and_no_two_are_closer_than_the_interval(face):
    _, args = in_memory(beats=50)
    async with face.client(journal=":memory:", **args) as client:
        run = await client.start("work", key="k")
        await run.wait()
        views = [view async for view in run.views()]
    assert len(views) <= 2
    assert views[-1].text.endswith("word 50 ")


async def test_a_view_after_a_restart_of_the_process_is_the_same(face, journal):
    _, args = in_memory()
    async with face.client(journal=journal, **args) as client:
        run = await client.start("work", key="k")
        await collected(run)
        before = await run.view()
    async with face.client(journal=journal, **args) as client:
        assert await client.attach(run.id).view() == before


def test_folding_is_linear():
    """Ten times the events, about ten times the time: joining at each delta would be a hundred times."""

    def seconds(count):
        fold, profile = Fold("run_1"), Native()
        events = [
            Event(
                id=str(n), run_id="run_1", type="message.delta", kind="text", text="word " * 20, position=n,
                data={"message_id": "m1", "text": "word " * 20},
            )
            for n in range(count)
        ]  # fmt: skip
        best = float("inf")
        for _ in range(3):
            fold = Fold("run_1")
            began = time.process_time()
            for n, event in enumerate(events):
                fold.add(event, profile.changes(event))
                if n % 1000 == 0:
                    fold.view()
            best = min(best, time.process_time() - began)
        return best

    assert seconds(20_000) < 40 * max(seconds(2_000), 1e-3)
