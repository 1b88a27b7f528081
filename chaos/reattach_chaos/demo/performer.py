"""One follower on stage: its process, its deaths, and what it showed over all its lives.

Here is the only SIGKILL of a client: by its own process id, when it says that it holds the planned event in hand. The next life is
started beforehand, and waits for its order, so that a restart costs no start of an interpreter.
"""

import asyncio
from pathlib import Path
from typing import Any

from reattach_chaos.demo.cast import Hold, Part
from reattach_chaos.demo.child import Child
from reattach_chaos.demo.showing import Showing, Shown


class Performer:
    """One part, played by a client.

    Args:
        part: Whose part.
        module: The client's module: `reattach_chaos.demo.follower`, or one with the same orders and lines.
        folder: Where its journal and its output go.
    """

    def __init__(self, part: Part, module: str, folder: Path) -> None:
        self.part = part
        self.showing = Showing(who=part.who)
        self.run_id: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.children: list[Child] = []
        self._module = module
        self._folder = folder
        self._name = part.who.replace(" ", "-")

    async def prepare(self) -> None:
        """Start the process of a life to come."""
        journal = self._folder / f"{self._name}.journal"
        name = f"{self.part.who} life {len(self.children) + 1}"
        self.children.append(await Child.spawn(name, self._module, str(journal), folder=self._folder))

    async def perform(self, order: dict[str, Any]) -> None:
        """Play the part to its end, through all its deaths. `order` is what each life is told.

        A client that fails raises nothing here: that is a showing, and judged.
        """
        holds: list[Hold | None] = [*self.part.holds, None]
        for life, hold in enumerate(holds):
            child = self.children[life]
            waiting = asyncio.create_task(self.prepare()) if hold is not None else None
            try:
                killed = await self._live(child, life, hold, order)
                code = await child.wait()
            finally:
                if waiting is not None:
                    await waiting  # also when we are cancelled: a process that nobody knows of would stay
            if not killed:
                self._note_end(child, code)
                break
            self.showing.kills += 1
        if not self.run_id.done():
            self.run_id.set_result(None)

    async def _live(self, child: Child, life: int, hold: Hold | None, order: dict[str, Any]) -> bool:
        """Play one life; return whether we killed it."""
        child.tell({**order, "hold": {"sequence": hold.sequence, "when": hold.when} if hold else None})
        killed = False
        while (line := await child.line()) is not None:
            match line:
                case {"kind": "run", "run": str(run)}:
                    if not self.run_id.done():
                        self.run_id.set_result(run)
                case {"kind": "rendered"}:
                    self.showing.shown.append(Shown.read(line, life))
                case {"kind": "holding"} if hold is not None:
                    child.kill()
                    killed = True
                case {"kind": "finished", "status": str(status)}:
                    self.showing.status = status
                case {"kind": "error", "code": code, "message": message}:
                    self.showing.trouble = f"{code}: {message}"
                case _:
                    pass
        return killed

    def _note_end(self, child: Child, code: int) -> None:
        if self.showing.status is None and self.showing.trouble is None:
            words = f", {child.last_words()}" if code else ""
            self.showing.trouble = f"the loop ended without an end of the run (exit {code}{words})"

    def stop(self, limit: float) -> None:
        """Kill what is still running, because time is up."""
        self.showing.stopped = True
        self.showing.trouble = f"not at its end after {limit:.0f} s (pid {self.children[-1].pid}), stopped"
        for child in self.children:
            child.kill()
