"""What it says of a saved case that it was played again on the other Toxiproxy: is the finding about bytes, or about timing?

The gate stops after the same byte on both; what differs is who ends the connection, and when. So what breaks the same law on both
is about the bytes; what does not is about timing, or chance: a replay on the first one tells these apart.
"""

from reattach_chaos.cases.folder import Saved
from reattach_chaos.cases.recipe import BACKEND
from reattach_chaos.checkers import judge
from reattach_chaos.history import History
from reattach_chaos.report import Played


def second_opinion(found: Saved, seen: History | None, played: Played, backend: str) -> str:
    """Return a sentence for a person; "" where the case was played on what it was found with.

    Args:
        found: The saved case.
        seen: What was seen then; None where that is gone.
        played: What came of it now.
        backend: On which it was played now.
    """
    first = found.schedule.versions.get(BACKEND, backend)
    if first == backend:
        return ""
    where = f"Played on {backend}, found on {first}"
    if seen is None:
        return f"{where}."
    then, now = judge(seen).broken, played.verdict.broken
    if not then:
        return f"{where}, where no law was broken."
    same = ", ".join(law for law in then if law in now)
    if same:
        return f"{where}: both times {same} is broken. It is about the bytes, not about timing."
    laws = ", ".join(then)
    return f"{where}: {laws} was broken there and is not here. Unless it was chance, it is about timing, not about the bytes."
