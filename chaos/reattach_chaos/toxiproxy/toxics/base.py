"""What a toxic is: one method that says, step by step, what becomes of the chunks of one direction of one connection.

A *flow* is a generator. It asks for one thing at a time (`take`, `give`, `drop`, `rest`) and is resumed when that is done, so a
toxic neither knows a socket nor a clock, and a test plays it by hand. Who resumes it is the stage (`embedded/stage.py`). A flow
that returns closes its direction. Never here: bytes that vanish by accident. What was taken must be given or dropped; where a flow
is stopped half-way (its toxic was changed or removed), the stage passes on what was taken and neither given nor dropped.

**To add a toxic:** one file in this folder, one frozen dataclass with `kind` and `flow`; settings are fields with their unit in the
name and the API's name beside it; every wait is a `rest` or a `take`, so that it can be interrupted; chance comes only from the
site's `chance`. Then one line in `__init__.py`, one line in the room's README, and one test in tests/contracts/test_toxiproxy.py
that shows the bytes on both sides.

Semantics are those of Toxiproxy 2.12.0, as measured from outside.
"""

from collections.abc import Generator
from dataclasses import dataclass, field, fields
from random import Random
from typing import Any, ClassVar, Final, TypeAlias

CHUNK_BYTES = 32 * 1024  # what one read brings at most


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes as one read brought them. `at`: when, in seconds of the proxy's clock; whoever held them has moved it on."""

    data: bytes
    at: float


@dataclass(frozen=True, slots=True)
class Take:
    """The next chunk is wanted, for at most `within` seconds (None: however long)."""

    within: float | None = None


@dataclass(frozen=True, slots=True)
class Give:
    """These bytes, the first of what is held, go on; done when the next stage has room for them."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Drop:
    """What is held is thrown away on purpose, but for the first `keep` bytes."""

    keep: int = 0


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing happens for some `seconds` (None: for ever), or until `seconds` after the held chunk's `at`."""

    seconds: float | None
    since_arrival: bool = False


@dataclass(frozen=True, slots=True)
class Late:
    """The answer to a `Take` whose time is over."""


LATE: Final = Late()
Step: TypeAlias = Take | Give | Drop | Rest
Answer: TypeAlias = Chunk | Late | None
Flow: TypeAlias = Generator[Step, Answer, None]


def take() -> Generator[Step, Answer, Chunk | None]:
    """Wait for the next chunk; None is the close of this direction. What was held before is given up."""
    answer = yield Take()
    assert not isinstance(answer, Late)
    return answer


def take_within(seconds: float) -> Generator[Step, Answer, Answer]:
    """Wait for the next chunk, or the close, at most so long; `LATE` if nothing came."""
    return (yield Take(seconds))


def give(data: bytes) -> Flow:
    """Pass bytes on: the first ones of what is held."""
    yield Give(data)


def drop(*, keep: int = 0) -> Flow:
    """Throw away what is held, but for its first bytes."""
    yield Drop(keep)


def rest(seconds: float | None) -> Flow:
    """Wait; None is for ever."""
    yield Rest(seconds)


def rest_since_arrival(seconds: float) -> Flow:
    """Wait until the held chunk is so old."""
    yield Rest(seconds, since_arrival=True)


@dataclass(slots=True)
class Site:
    """One toxic's place on one link: what outlives a change of its settings.

    Attributes:
        chance: The proxy's random numbers.
        passed: Bytes that `limit_data` has let through here.
    """

    chance: Random
    passed: int = 0


def setting(name: str) -> Any:
    """Return a field whose name in the API is another than in Python, where the unit is in the name. 0 unless given."""
    return field(default=0, metadata={"name": name})


class Unusable(ValueError):
    """Settings that Toxiproxy accepts and then dies of; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Toxic:
    """Settings of one toxic. Subclasses say what they do with a link."""

    kind: ClassVar[str]
    room: ClassVar[int] = 1
    """Chunks that may wait in front of it before the sender is held back."""
    closes_when_removed: ClassVar[bool] = False
    resets: ClassVar[bool] = False
    """Connections that begin while it is there end with RST, however they end."""

    @classmethod
    def names(cls) -> dict[str, str]:
        """Return the API's name → the field's, in the API's order."""
        return {each.metadata["name"]: each.name for each in fields(cls)}

    def attributes(self) -> dict[str, int]:
        """Return the settings as the API shows them."""
        return {name: getattr(self, attribute) for name, attribute in self.names().items()}

    def flow(self, site: Site) -> Flow:
        """Say what becomes of the chunks of one link."""
        raise NotImplementedError
