"""Whatever is in a history, it is judged: records without order or sense, of runs and clients that nobody else speaks of."""

import dataclasses
import random
import types
from typing import Literal, Union, get_args, get_origin, get_type_hints

import pytest

from reattach_chaos.checkers import Invalid, judge
from reattach_chaos.history import Case, History, parse_history, write_history
from reattach_chaos.history.record import KINDS

WORDS = ("e1.1", "e1.2", "e1.3", "e2.1", "evt_1", "earliest", "", "completed", "cursor_expired", "stall", "k1")
NUMBERS = (0, 1, 2, 3, 200, 410, 503, 1000)


def any_value(chance, hint):
    """Return a value of a member's type."""
    origin = get_origin(hint)
    if origin is Literal:
        return chance.choice(get_args(hint))
    if origin is types.UnionType or origin is Union:
        return any_value(chance, chance.choice(get_args(hint)))
    if origin is tuple:
        return tuple(any_value(chance, get_args(hint)[0]) for _ in range(chance.randrange(4)))
    match hint:
        case _ if hint is str:
            return chance.choice(WORDS)
        case _ if hint is bool:
            return chance.random() < 0.5
        case _ if hint is type(None):
            return None
        case _ if hint is float:
            return float(chance.choice(NUMBERS))
        case _:
            return chance.choice(NUMBERS)


def any_record(chance):
    """Return a record of any kind."""
    kind = KINDS[chance.choice(sorted(KINDS))]
    hints = get_type_hints(kind)
    facts = {each.name: any_value(chance, hints[each.name]) for each in dataclasses.fields(kind) if each.name != "n"}
    facts["who"] = chance.choice(("client", "client", "client", "control", "gate", "other"))
    facts["run"] = chance.choice((None, "r1", "r1", "r2"))
    return kind(**facts | ({"version": 1} if kind is Case else {}))


@pytest.mark.parametrize("seed", range(4))
def test_any_history_is_judged(seed, tmp_path):
    """No law raises; each broken one has a sentence, and a witness out of this history. Read again, it is judged the same."""
    chance = random.Random(seed)
    for _ in range(20):
        history = History([any_record(chance) for _ in range(chance.randrange(60))])
        verdict = judge(history)
        for law, ruling in verdict.broken.items():
            assert isinstance(ruling, Invalid)
            assert ruling.sentence, (seed, law)
            assert set(ruling.witness) <= set(history), (seed, law)
            assert len(ruling.witness) <= 3, (seed, law)
    write_history(tmp_path / "h.jsonl", history)
    assert judge(parse_history((tmp_path / "h.jsonl").read_bytes())) == verdict
