"""What is wrong with a scenario or a recording, and where.

Only errors live here. Each tells the file, the place in it, what was found and what was expected;
the same facts are attributes.
"""


class ScenarioError(ValueError):
    """A scenario file does not say what a scenario may say. Nothing was played.

    `line` and `column` count characters from 1, lines end with LF, CR LF or CR; both are 0 where the whole
    file is meant (it cannot be read, or is too large).
    """

    def __init__(self, path: str, line: int, column: int, what: str, expected: str) -> None:
        place = f"{path}:{line}:{column}" if line else path
        super().__init__(f"{place}: {what}, {expected}")
        self.path = path
        self.line = line
        self.column = column
        self.what = what
        self.expected = expected


class RecordingError(ValueError):
    """A recording holds a line that is not an event, or cannot be read at all (then `line` is 0)."""

    def __init__(self, path: str, line: int, what: str, expected: str) -> None:
        place = f"{path}:{line}" if line else path
        super().__init__(f"{place}: {what}, {expected}")
        self.path = path
        self.line = line
        self.what = what
        self.expected = expected
