"""Many cases at once: so many side by side, in their order, until all are played or one is enough."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from reattach_chaos.report import Played
from reattach_chaos.schedules import Schedule


async def batch(
    schedules: Sequence[Schedule],
    play: Callable[[Schedule], Awaitable[Played]],
    done: Callable[[Played], Played | None],
    *,
    jobs: int,
    fail_fast: bool = False,
) -> list[Played]:
    """Play cases; return them in the schedules' order.

    Args:
        schedules: What is played.
        play: Plays one.
        done: Told of each as it ends; returns what is kept of it (many histories would fill the memory); None: it does not count.
        jobs: So many at a time.
        fail_fast: Begin no more after the first that is not valid; those that are being played are played to their ends.

    Raises:
        Exception: The first that `play` or `done` raised; the other cases are cancelled then.
    """
    waiting = iter(enumerate(schedules))
    found: dict[int, Played] = {}
    enough = asyncio.Event()

    async def work() -> None:
        while not enough.is_set() and (following := next(waiting, None)) is not None:
            place, schedule = following
            case = await play(schedule)
            kept = done(case)
            if kept is None:
                continue
            found[place] = kept
            if fail_fast and kept.verdict.word != "valid":
                enough.set()

    try:
        async with asyncio.TaskGroup() as workers:
            for _ in range(min(jobs, len(schedules))):
                workers.create_task(work())
    except ExceptionGroup as group:
        raise group.exceptions[0] from group
    return [found[place] for place in sorted(found)]
