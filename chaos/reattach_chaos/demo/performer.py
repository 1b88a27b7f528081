"""One follower on stage: its process, its deaths, and what it showed over all its lives.

Here is the only SIGKILL of a client: by its own process id, when it says that it holds the planned event in hand.
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
        nursery: The socket of the nursery that knows the module.
        folder: Where its journal and its output go.
    """

    def __init__(self, part: Part, module: str, *, nursery: Path, folder: Path) -> None:
        self.part = part
        self.showing = Showing(who=part.who)
        self.run_id: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.children: list[Child] = []
        self._module = module
        self._nursery = nursery
        self._folder = folder

    async def perform(self, ordered: asyncio.Future[dict[str, Any]]) -> None:
        """Play the part to its end, through all its deaths. `ordered` gives what each life is told; the first is born before.

        A client that fails raises nothing here: that is a showing, and judged.

        Raises:
            ChildFailed: A life could not be started.
        """
        journal = self._folder / f"{self.part.who.replace(' ', '-')}.journal"
        try:
            for life, hold in enumerate([*self.part.holds, None]):
                name = f"{self.part.who} life {life + 1}"
                child = await Child.bear(name, self._module, str(journal), nursery=self._nursery, folder=self._folder)
                self.children.append(child)
                killed = await self._live(child, life, hold, await asyncio.shield(ordered))
                await child.wait()
                if not killed:
                    self._note_end(child)
                    break
                self.showing.kills += 1
        finally:
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

    def _note_end(self, child: Child) -> None:
        if self.showing.status is None and self.showing.trouble is None:
            self.showing.trouble = f"the loop ended without an end of the run ({child.last_words()})"

    def stop(self, limit: float) -> None:
        """Kill what is still running, because time is up."""
        self.showing.stopped = True
        pids = ", ".join(str(child.pid) for child in self.children[-1:])
        self.showing.trouble = f"not at its end after {limit:.0f} s (pid {pids}), stopped"
        for child in self.children:
            child.kill()
