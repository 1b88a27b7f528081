"""Every row of the transition table earns its place: a script passes with it and fails when it is left out."""

from __future__ import annotations

import pytest

from client.core.scripts import SCRIPTS
from reattach.core.subscription import TABLE

NAMES = sorted({row.name for row in TABLE.rows})


def test_every_row_has_a_script_and_every_script_a_row() -> None:
    """A new row comes with a script of its name."""
    assert sorted(SCRIPTS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_machine_does_what_the_row_says(name: str) -> None:
    """The script of the row passes with the whole table."""
    SCRIPTS[name](TABLE)


@pytest.mark.parametrize("name", NAMES)
def test_leaving_a_row_out_is_noticed(name: str) -> None:
    """The script of the row fails without it."""
    with pytest.raises(AssertionError):
        SCRIPTS[name](TABLE.without(name))
