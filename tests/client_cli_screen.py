"""A small terminal: what a person would see after all that was written, with the sequences that the updating line uses."""

import io


class Screen:
    """Rows of cells. Wraps at the last column as terminals do: only when the next character comes."""

    def __init__(self, columns: int, rows: int = 12) -> None:
        self.columns, self.rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.saved = (0, 0)
        self.unknown: list[str] = []

    def feed(self, text: str) -> None:
        left = text
        while left:
            for sequence, act in self._sequences().items():
                if left.startswith(sequence):
                    act()
                    left = left[len(sequence) :]
                    break
            else:
                letter, left = left[0], left[1:]
                if letter == "\x1b":
                    self.unknown.append(letter + left[:5])
                else:
                    self._put(letter)

    def _sequences(self):
        return {
            "\n": self._newline,
            "\r": lambda: self._move(self.row, 0),
            "\x1bD": self._down,
            "\x1b[1A": lambda: self._move(max(0, self.row - 1), min(self.column, self.columns - 1)),
            "\x1b[1B": lambda: self._move(min(self.rows - 1, self.row + 1), self.column),
            "\x1b7": self._save,
            "\x1b8": lambda: self._move(*self.saved),
            "\x1b[2K": self._clear,
            "\x1b[2m": lambda: None,
            "\x1b[0m": lambda: None,
        }

    def _move(self, row, column):
        self.row, self.column = row, column

    def _save(self):
        self.saved = (self.row, self.column)

    def _clear(self):
        self.cells[self.row] = [" "] * self.columns

    def _down(self):
        if self.row == self.rows - 1:
            del self.cells[0]
            self.cells.append([" "] * self.columns)
        else:
            self.row += 1

    def _newline(self):
        self._down()
        self.column = 0

    def _put(self, letter):
        if self.column == self.columns:
            self._newline()
        self.cells[self.row][self.column] = letter
        self.column += 1

    @property
    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self.cells).rstrip("\n")


class Terminal(io.StringIO):
    """A stream of that terminal; stdout and stderr are two of them on one screen."""

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self.screen = screen

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.screen.feed(text)
        return super().write(text)
