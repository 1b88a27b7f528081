"""What is said where a wrong client or server of ours was played and nothing wrong was seen: why, and what would show it."""

from reattach_chaos.cases.sample import Wanted
from reattach_chaos.cases.theatre import Bill
from reattach_mockserver.mutants.registry import SERVER_MUTANTS


def not_found(bill: Bill, wanted: Wanted) -> list[str]:
    """Return a sentence for the mutant that was not found; none where none was played, or the right one.

    Args:
        bill: What was put on.
        wanted: Which cases were played.
    """
    name = bill.mutant or bill.wrong  # a wrong server beside a wrong client is there to show the client
    if name in ("", "right"):
        return []
    if name == bill.wrong and (why := SERVER_MUTANTS[name].unseen):
        return [f"The mutant {name} was not found: {why}."]
    if wanted.mutant:
        return [f"The mutant {name} was not found."]
    return [f"The mutant {name} was not found by these cases; --mutant {name} alone plays what shows it."]
