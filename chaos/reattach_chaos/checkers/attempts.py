"""A client's attempts to stream, and what each brought: the raw material of the laws about rates. Not judged here."""

from dataclasses import dataclass

from reattach_chaos.checkers.reading import CLIENT, read
from reattach_chaos.history import Connect, Died, Exited, History, Received, Record, Resume, Surfaced

_KINDS: tuple[type[Record], ...] = (Connect, Resume, Received, Surfaced, Died, Exited)


@dataclass(frozen=True, slots=True)
class Streak:
    """Attempts in a row of one process without a new event between them; the first may itself have followed one."""

    attempts: tuple[Record, ...]


def streaks(history: History) -> list[Streak]:
    """Return the client's attempts, parted by progress, by errors that were told, and by deaths.

    An error ends a watch; whoever was told may begin the next at once.

    An attempt is a request for a stream, or a connection that was refused. Progress is a whole event that had not come before.
    """
    reading = read(history)
    records = sorted((record for kind in _KINDS for record in history.of(kind)), key=lambda record: record.n)
    found: list[Streak] = []
    seen: set[tuple[str | None, int | None, str]] = set()
    running: dict[str | None, list[Record]] = {}

    def part(run: str | None) -> None:
        if attempts := running.pop(run, None):
            found.append(Streak(tuple(attempts)))

    for record in records:
        if record.who != CLIENT:
            continue
        run = reading.run(record)
        match record:
            case Connect(ok=False) | Resume():
                running.setdefault(run, []).append(record)
            case Received(whole=True):
                place = reading.place(record, record.id)
                event = (run, place, record.id if place is None else "")
                if event not in seen:
                    seen.add(event)
                    part(run)
            case Surfaced(what="error"):
                part(run)
            case Died() | Exited():
                for each in list(running):
                    part(each)
            case _:
                pass
    for each in list(running):
        part(each)
    return found
