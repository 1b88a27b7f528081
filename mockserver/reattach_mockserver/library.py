"""The scripts of one server by name: those it was given, and the ready ones, read when first asked for."""

from collections.abc import Iterator, Mapping

from reattach_mockserver.scenarios.ready import READY, load_ready
from reattach_mockserver.scenarios.script import Script
from reattach_mockserver.settings import Playable


class Library(Mapping[str, Playable]):
    """What was given takes the place of a ready script of the same name."""

    def __init__(self, given: Mapping[str, Playable] | None = None) -> None:
        self._scripts: dict[str, Playable] = dict(given or {})

    def add(self, script: Script) -> str:
        """Take in a script that comes later; return its name."""
        self._scripts[script.name] = script
        return script.name

    def including(self, scripts: Mapping[str, Playable]) -> "Library":
        """Return a library with these as well."""
        return Library({**self._scripts, **scripts})

    def __getitem__(self, name: str) -> Playable:
        if name not in self._scripts:
            self._scripts[name] = load_ready(name)
        return self._scripts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._scripts or name in READY

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._scripts, *READY]))

    def __len__(self) -> int:
        return len(list(iter(self)))
