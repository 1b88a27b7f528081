"""Facts on their way to a logger."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from reattach.observe import Fact, to_logging

AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("name", "level"), [("stall", "WARNING"), ("failed", "WARNING"), ("attached", "DEBUG")])
def test_what_a_person_may_have_to_act_on_is_a_warning_the_rest_is_for_debugging(caplog, name, level):
    """One line a fact, with all that it says; the logger is ours unless one is given."""
    caplog.set_level(logging.DEBUG, "reattach")
    to_logging()(Fact(name=name, run_id="run_1", at=AT, detail="why", cursor="e1.4", attempt=2, count=3))
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("reattach", level)
    assert record.getMessage() == f"{name} run=run_1 cursor=e1.4 attempt=2 count=3 why"


def test_a_logger_of_ones_own_is_used(caplog):
    """The library writes to no other then."""
    caplog.set_level(logging.DEBUG)
    to_logging(logging.getLogger("mine"))(Fact(name="stall", run_id="run_1", at=AT))
    assert [record.name for record in caplog.records] == ["mine"]
