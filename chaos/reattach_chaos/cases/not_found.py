"""What is said where a wrong client or server of ours was played and nothing wrong was seen: why, and what would show it."""

from reattach_chaos.cases.sample import Wanted
from reattach_chaos.cases.theatre import Bill
from reattach_chaos.mutants import KILLED_BY
from reattach_mockserver.mutants.registry import SERVER_MUTANTS


def not_found(bill: Bill, wanted: Wanted) -> list[str]:
    """Return a sentence for the mutant that was not found; none where none was played, or the right one.

    Args:
        bill: What was put on.
        wanted: Which cases were played.
    """
    if bill.mutant:  # a wrong server beside it is there to show the client
        law = KILLED_BY.get(bill.mutant)
        if not law or wanted.mutant:
            return [] if not law else [f"The mutant {bill.mutant} was not found."]
        return [
            f"The mutant {bill.mutant} was not found by these cases; --mutant {bill.mutant} alone plays what shows it."
        ]
    if not bill.wrong:
        return []
    server = SERVER_MUTANTS[bill.wrong]
    if server.unseen:
        return [f"The mutant {server.id} was not found: {server.unseen}."]
    laws = ", ".join(server.found_by)
    return [
        f"The mutant {server.id} was not found by these cases: it {server.words}. {laws} finds it where that comes: all cases of "
        "the quick sample, or a --scenario that goes on while it is followed, such as examples/minute.yaml."
    ]
