"""A server that names a cursor for a snapshot that is behind what it holds."""

from starlette.types import Scope

from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.wrong import WrongServer


class SnapshotIsStale(WrongServer):
    """See the module."""

    id = "snapshot-is-stale"
    words = "names a cursor for a snapshot that is behind what it holds"
    breaks = ("RS-27",)
    unseen = "no client under test asks for a snapshot: ours goes on behind a gap without one"

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """Name the one before."""
        if scope["path"].endswith("/snapshot") and answer.status == 200:
            sequence = max(answer.json["sequence"] - 1, 0)
            return answer.saying(sequence=sequence, cursor=f"{answer.json['epoch']}.{sequence}")
        return answer
