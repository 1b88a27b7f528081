"""I21, I22, and the composition."""

from dataclasses import replace

from chaos_history import cut, exited, finished, holds, log, made, says, shown, silent
from reattach_chaos.checkers import (
    LAWS,
    CaseVerdict,
    Coverage,
    Invalid,
    RunVerdict,
    Unknown,
    Valid,
    coverage,
    fault_fired,
    judge,
)
from reattach_chaos.history import Case, CutMissed, CutPlanned, History, Other

PLANNED = CutPlanned(cut=1, fault="rst", position="after-event-1", phase="stream", event_kind="created")


def test_a_fault_that_fired_where_it_was_planned():
    """Without a plan there is nothing to say."""
    assert holds(says(fault_fired, PLANNED, cut()))
    assert silent(says(fault_fired, log(1)))


def test_a_fault_that_did_not_fire_is_inconclusive():
    """Never green; where the gate knows why, it says so."""
    assert says(fault_fired, PLANNED) == Unknown("inconclusive: rst after-event-1 (stream) did not fire")
    missed = CutMissed(cut=1, reason="the client had gone")
    assert says(fault_fired, PLANNED, CutMissed(cut=2), missed) == Unknown(
        "inconclusive: rst after-event-1 (stream) did not fire: the client had gone"
    )


def test_a_fault_elsewhere_or_behind_other_bytes_is_inconclusive():
    """Offsets are exact only where the bytes repeat."""
    elsewhere = replace(cut(), position="after-event-2")
    assert says(fault_fired, replace(PLANNED, phase=""), elsewhere) == Unknown(
        "inconclusive: rst was planned after-event-1 and fired after-event-2"
    )
    exact = replace(PLANNED, prefix_sha256="a")
    assert isinstance(says(fault_fired, exact, replace(cut(), prefix_sha256="b")), Unknown)
    assert holds(says(fault_fired, exact, replace(cut(), prefix_sha256="a")))


def test_coverage_counts_what_fired_and_names_what_never_did():
    """Over all cases of a suite; what was planned is wanted, or what the caller names."""
    stall = replace(PLANNED, cut=2, fault="stall", event_kind="")
    suite = [made(PLANNED, cut(), stall), made(PLANNED, cut())]
    found = coverage(suite)
    assert found.fired["fault"] == {"rst": 2, "stall": 0}
    assert found.fired["event_kind"] == {"created": 2}
    assert found.missing == {"fault": ("stall",), "position": (), "phase": (), "event_kind": ()}
    assert not found.complete
    assert found.sentence() == "never fired: fault stall"
    wanted = coverage(suite, {"fault": ["rst"], "event_kind": ["delta", "created"]})
    assert wanted.sentence() == "never fired: event kind delta"
    assert coverage(suite[1:]).complete
    assert coverage(suite[1:]).sentence() == ""


def test_the_laws_are_those_of_the_page():
    """I1 to I27; I22 is over a suite."""
    assert [law.id for law in LAWS] == [f"I{number}" for number in range(1, 28) if number != 22]
    assert len({law.name for law in LAWS}) == len(LAWS)


GOOD = made(PLANNED, log(3), shown(1, 2, 3), cut(), finished(), exited(0))


def test_a_good_case_is_valid():
    """All faults fired, no law is broken."""
    verdict = judge(GOOD)
    assert verdict.word == "valid"
    assert (verdict.planned, verdict.fired) == (1, 1)
    assert verdict.sentence() == "VALID. Case hand."
    assert judge(GOOD) == verdict


def test_proven_wrong_beats_not_known():
    """A fault that did not fire does not hide what was lost; the first broken law leads."""
    verdict = judge(made(PLANNED, log(3), shown(1, 3), finished(), exited(0)))
    assert (verdict.word, verdict.planned, verdict.fired) == ("invalid", 1, 0)
    assert list(verdict.broken) == ["I1"]
    assert verdict.sentence() == "INVALID: lost. Case hand: event 2 (e1.2) was never shown."


def test_not_known_beats_valid():
    """And says why."""
    verdict = judge(made(PLANNED, log(1), shown(1), finished(), exited(0)))
    assert verdict.sentence() == "UNKNOWN. Case hand: inconclusive: rst after-event-1 (stream) did not fire."


def test_a_history_that_was_cut_off_is_not_known():
    """What it holds may be half the truth."""
    verdict = judge(History([*GOOD, Other(n=99, name="truncated")]))
    assert verdict.sentence() == "UNKNOWN. Case hand: the history was cut off: it grew too long."
    assert judge(History([*GOOD, Other(n=99, name="moonphase")])).word == "valid"


VALID = CaseVerdict(case="a", rulings={"I1": Valid(3)})
BAD = CaseVerdict(case="b", rulings={"I1": Invalid(anomaly="lost", sentence="gone", witness=())})
DARK = CaseVerdict(case="c", rulings={"I21": Unknown("it did not fire")})


def test_a_run_is_as_its_worst_case():
    """Exit 0, 1, 3; the first line is that of the first bad case."""
    good = RunVerdict(cases=(VALID, VALID))
    assert (good.word, good.exit_code, good.first, good.count("valid")) == ("valid", 0, None, 2)
    assert good.sentence() == "VALID. 2 cases, every fault fired."
    dark = RunVerdict(cases=(VALID, DARK))
    assert (dark.exit_code, dark.sentence()) == (3, "UNKNOWN. Case c: it did not fire.")
    bad = RunVerdict(cases=(DARK, VALID, BAD))
    assert (bad.exit_code, bad.sentence()) == (1, "INVALID: lost. Case b: gone.")


def test_a_run_without_cases_proves_nothing():
    """Zero of zero is not valid."""
    assert (RunVerdict(cases=()).exit_code, RunVerdict(cases=()).sentence()) == (3, "UNKNOWN. No case was played.")


def test_missing_coverage_fails_a_run_where_it_is_required():
    """Otherwise it is only told."""
    missing = Coverage({}, {"fault": ("stall",)})
    assert RunVerdict(cases=(VALID,), coverage=missing).word == "valid"
    strict = RunVerdict(cases=(VALID,), coverage=missing, require_coverage=True)
    assert (strict.exit_code, strict.sentence()) == (3, "UNKNOWN. never fired: fault stall.")


def test_a_case_without_a_history_can_be_told():
    """The client could not be started."""
    assert CaseVerdict(case="x", trouble="no client").sentence() == "UNKNOWN. Case x: no client."
    laws = {"I1": Unknown("the log is empty")}
    assert CaseVerdict(case="x", rulings=laws, trouble="no client").sentence() == "UNKNOWN. Case x: no client."
    assert Case(id="x").version == 1
