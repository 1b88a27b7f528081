"""What a run leaves behind, and how a case is found again."""

import os
import subprocess

import pytest

from chaos_cases import faults
from reattach_chaos.cases.folder import Folder, NoSuchCase, find, newest_page, of_seed, saved
from reattach_chaos.checkers import CaseVerdict, RunVerdict
from reattach_chaos.history import Case, History, read_history
from reattach_chaos.report import Played, Suite
from reattach_chaos.schedules import Fault, Place, Planned, at


def case(event):
    schedule = faults(Planned(fault=Fault.RST, at=at(Place.AFTER_EVENT, event)))
    return Played(schedule=schedule, history=History([Case(id=schedule.id)]), verdict=CaseVerdict(case=schedule.id))


@pytest.fixture
def home(tmp_path):
    return tmp_path / ".reattach"


def test_a_saved_case_is_read_as_it_was(home):
    """The schedule, and beside it what was seen."""
    kept = of_seed(7, home).save(case(2))
    assert kept.file == str(home / "chaos" / "7" / "rst-after-event-2.json")
    assert find("rst-after-event-2", home).schedule == kept.schedule
    assert read_history(home / "chaos" / "7" / "rst-after-event-2.history.jsonl").case.id == kept.id


def test_the_folder_ignores_itself_in_git(home):
    """Nobody commits a run's files by accident, whatever their own ignore file says."""
    subprocess.run(["git", "init", "-q", str(home.parent)], check=True)
    of_seed(7, home).save(case(2))
    told = subprocess.run(["git", "-C", str(home.parent), "status", "--short"], check=True, capture_output=True)
    assert told.stdout == b""


def test_a_case_is_found_by_its_start_where_that_says_which(home):
    folder = of_seed(7, home)
    for event in (2, 21):
        folder.save(case(event))
    assert find("rst-after-event-21", home).schedule.id == "rst-after-event-21"
    assert find("rst-after-event-2", home).schedule.id == "rst-after-event-2"
    with pytest.raises(NoSuchCase, match="is the start of 2 cases"):
        find("rst-after", home)
    with pytest.raises(NoSuchCase, match="no file and no saved case 'fin'"):
        find("fin", home)


def test_of_equal_ids_the_newest_is_meant(home):
    """Two seeds may have found the same case."""
    old = of_seed(1, home).save(case(2))
    os.utime(old.file, (1, 1))
    new = of_seed(2, home).save(case(2))
    assert str(find("rst-after-event-2", home).path) == new.file
    assert [str(each.path) for each in saved(home)] == [new.file, old.file]


def test_a_file_that_is_no_schedule_says_where(tmp_path):
    broken = tmp_path / "c.json"
    broken.write_text('{"reattach": "schedule/1"')
    with pytest.raises(NoSuchCase, match="not JSON"):
        find(str(broken))


def test_the_page_is_found_again(home):
    """And nothing where there is none."""
    assert newest_page(home) is None
    page = Folder(home / "chaos" / "7").report(Suite(verdict=RunVerdict(cases=()), played=()))
    assert newest_page(home) == page
    assert saved(home) == []
