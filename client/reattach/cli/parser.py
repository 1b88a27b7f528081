"""Arguments: argparse with our exit code, options before or behind words, and the flags that are accepted everywhere."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from reattach import __version__
from reattach.cli import exits

_FLAGS = (
    (("--json",), "JSON lines on stdout, people's text on stderr"),
    (("-q", "--quiet"), "say less"),
    (("-v", "--verbose"), "say more; show tracebacks"),
    (("--no-color",), "no colours (also NO_COLOR, or no terminal)"),
)


class Parser(argparse.ArgumentParser):
    """A parser that exits with 64, knows no abbreviations, and takes options and words in any order."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)
        self.in_any_order = False

    def error(self, message: str) -> NoReturn:
        """Exit with the surface's code for wrong arguments; argparse's own is 2."""
        self.print_usage(sys.stderr)
        self.exit(exits.USAGE, f"{self.prog}: {message}\n")

    def parse_known_args(  # type: ignore[override]  # argparse's overloads; ours is called with what argparse passes
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse, with options and words in any order where `in_any_order` is set.

        argparse alone gives an optional word its default as soon as an option stands before it: `run URL --key K INPUT`.
        """
        if self.in_any_order and args is not None:
            args = self._options_first(args)
        return super().parse_known_args(args, namespace)

    def parse_args(  # type: ignore[override]  # as above
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        """Parse; what is left over is told by the command that was asked for, with the nearest option that it has."""
        found, left = self.parse_known_args(args, namespace)
        if left:
            asked = self._asked(found)
            told = f"there is no option or place for {' '.join(left)!r}"
            known = [name for name in asked._option_string_actions if name.startswith("--")]
            near = difflib.get_close_matches(left[0].partition("=")[0], known, 1) if left[0].startswith("-") else []
            asked.error(told + (f", did you mean {near[0]!r}?" if near else ""))
        return found

    def _asked(self, found: argparse.Namespace) -> argparse.ArgumentParser:
        """Return the parser of the command, or the command's command, that was asked for."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                named = action.choices.get(getattr(found, action.dest, None) or "")
                if isinstance(named, Parser):
                    return named._asked(found)
        return self

    def _options_first(self, args: Sequence[str]) -> list[str]:
        options: list[str] = []
        words: list[str] = []
        left = list(args)
        while left:
            word = left.pop(0)
            if word == "--":
                words += left
                break
            if not word.startswith("-") or word == "-":
                words.append(word)
                continue
            options.append(word)
            action = self._option_string_actions.get(word)
            if action is not None and action.nargs is None and left:
                options.append(left.pop(0))
        return [*options, "--", *words] if words else options


def add_flags(parser: argparse.ArgumentParser, *, top: bool = False) -> None:
    """Add the flags that are accepted everywhere, unless the parser has them. Below the top, a default takes nothing back."""
    known = parser._option_string_actions
    for names, text in _FLAGS:
        if not any(name in known for name in names):
            default = False if top else argparse.SUPPRESS
            parser.add_argument(*names, action="store_true", default=default, help=text)
    if "--version" not in known:
        parser.add_argument("--version", action="version", version=f"reattach {__version__}")


def seconds(text: str) -> float:
    """Return a positive number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


_UNITS = {"s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}


def span(text: str) -> float:
    """Return the seconds of a span of time with its unit, such as 30d; without one nobody knows what is meant."""
    number = text.rstrip("smindh")
    try:
        value = float(number) * _UNITS[text[len(number) :]]
    except (ValueError, KeyError):
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no span of time; say it with its unit: 90s, 10min, 12h, 30d")
    return value
