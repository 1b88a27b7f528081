"""What a run leaves on the disk, and what it says where the disk takes nothing."""

import errno

import pytest

from chaos_cases import faults
from reattach_chaos.cases.folder import Folder, whole
from reattach_chaos.cases.results import Results
from reattach_chaos.checkers import CaseVerdict
from reattach_chaos.history import Case, History
from reattach_chaos.report import Played
from reattach_chaos.schedules import Fault, Place, Planned, at


def case(event):
    schedule = faults(Planned(fault=Fault.RST, at=at(Place.AFTER_EVENT, event)))
    return Played(schedule=schedule, history=History([Case(id=schedule.id)]), verdict=CaseVerdict(case=schedule.id))


def test_a_full_disk_leaves_no_torn_file(tmp_path):
    """Half a page would be opened, half a history judged."""

    def write():
        with whole(tmp_path / "page") as path:
            path.write_text("<html")
            raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full"):
        write()
    assert not (tmp_path / "page").exists()


def test_of_much_that_was_lost_the_first_is_told(tmp_path):
    """A full disk loses every case for the same reason."""
    (tmp_path / "file").touch()
    results = Results(Folder(tmp_path / "file"))
    assert [results.save(case(event)).file for event in range(1, 6)] == [""] * 5
    first, *_, last = results.lost()
    assert first.startswith("case rst-after-event-1 could not be written: ")
    assert last == "and 2 more could not be written"


def test_what_was_saved_is_named_and_nothing_is_lost(tmp_path):
    """Control: nothing is made before there is something to save."""
    results = Results(Folder(tmp_path / "new" / "er"), tmp_path / "x.xml")
    assert results.objection() == ""
    assert not list(tmp_path.iterdir())
    assert results.save(case(1)).file
    assert results.lost() == []
