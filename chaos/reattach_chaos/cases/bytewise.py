"""Every byte: which session is cut after each of its bytes, and how many bytes its streams have.

Of our own server that is the scenario `canonical`, short and with an event of each kind; of another, or where a scenario is named,
that one. The bytes are counted by the gate while the client under test follows everything once without a fault: they depend on
what it asks for.
"""

import secrets
from dataclasses import dataclass

from reattach_chaos.cases.player import Player
from reattach_chaos.cases.servers.control import ServerTrouble
from reattach_chaos.cases.session import Session, clean_pass, input_of
from reattach_chaos.cases.theatre import Bill, Theatre
from reattach_chaos.schedules import Schedule, bytewise

CANONICAL = "canonical"


@dataclass(frozen=True, slots=True)
class Bytes:
    """What is cut everywhere.

    Attributes:
        session: Its runs.
        schedules: A case for each byte, with FIN and with RST.
    """

    session: Session
    schedules: tuple[Schedule, ...]


async def every_byte(stage: Theatre, bill: Bill, scenario: str) -> Bytes | None:
    """Return the cases; None with a client that starts its run, whose stream is not the same bytes each time.

    Raises:
        ServerTrouble: The client did not come through without any fault.
    """
    if bill.mode == "start":
        return None
    player, session = stage.player, stage.session
    assert isinstance(player, Player)
    if not (bill.target or bill.scenario or bill.script):
        scenario = CANONICAL
        control = player.control(player.stage.token())
        session = await clean_pass(control, [input_of(CANONICAL)], f"bytes-{secrets.token_hex(4)}")
        player.stage.sessions[CANONICAL] = session
    played, boundaries = await player.clean(Schedule(id="no-fault", seed=bill.seed, scenario=scenario))
    if played.verdict.word != "valid":
        raise ServerTrouble(f"without any fault: {played.verdict.sentence()}")
    counts = [
        max((each.offset for each in boundaries if (each.run, each.nth) == (run, 1)), default=0)
        for run in range(1, len(session.runs) + 1)
    ]
    return Bytes(session, tuple(bytewise(counts, seed=bill.seed, scenario=scenario)))
