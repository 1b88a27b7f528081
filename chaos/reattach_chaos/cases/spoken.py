"""What a client's line says before it is a record: its JSON, and the run that it speaks of from then on."""

from reattach_chaos.history import is_plain, json_of


def read_line(text: str, run: str | None) -> tuple[object, str | None]:
    """Return a line's JSON value, or the line where it is none, and the run that the client follows.

    An answer, or a start, makes another run than the one that was given: the client names it in a line of the kind `run`.

    Args:
        text: The line.
        run: The run that it followed before.
    """
    try:
        value: object = json_of(text)
    except ValueError:
        return text, run
    match value:
        case {"kind": "run", "run": str(named)} if is_plain(named):
            return value, named
        case _:
            return value, run
