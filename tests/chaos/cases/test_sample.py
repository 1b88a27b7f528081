"""Which cases are played, and what is said of those that are not."""

from chaos_cases import SESSION
from reattach_chaos.cases import errands
from reattach_chaos.cases.bytewise import Bytes
from reattach_chaos.cases.client import CommandClient, OwnClient
from reattach_chaos.cases.sample import Wanted, choose
from reattach_chaos.schedules import Fault, Place, bytewise

OWN = OwnClient(None, None)


def ids(wanted, client=OWN, mode="follow"):
    return [each.id for each in choose(wanted, SESSION, client, mode, "session").schedules]


def test_our_own_client_plays_the_whole_quick_sample(monkeypatch):
    """Nothing is left out, so all requests are met; without a Redis two cases are, and that is said."""
    monkeypatch.setattr(errands, "why_none", lambda: "")
    chosen = choose(Wanted(seed=5), SESSION, OWN, "follow", "session")
    assert chosen.notes() == []
    assert len(chosen.schedules) == 9 * 2 * 3 * 2 + 14 + 4 + 2 + 4 + 12 + 21 + 6 + 2
    assert {schedule.seed for schedule in chosen.schedules} == {5}
    monkeypatch.setattr(errands, "why_none", lambda: "no redis-server here")
    without = choose(Wanted(seed=5), SESSION, OWN, "follow", "session")
    assert without.notes() == ["2 cases left out: no redis-server here."]
    assert len(without.schedules) == len(chosen.schedules) - 2


def test_the_cuts_at_every_byte_come_behind_the_others_and_are_of_their_own_session():
    """Each byte of each run, with FIN and with RST; `--positions offset` and `--only` choose among them, too."""
    cuts = Bytes(SESSION, tuple(bytewise([2, 1, 0])))
    chosen = choose(Wanted(sample="full", places=(Place.OFFSET,)), SESSION, OWN, "follow", "session", cuts).schedules
    assert [each.id for each in chosen[-12:]] == [
        f"{fault}-at-byte-{offset}{of}"
        for of, length in (("", 2), ("-of-run-2", 1), ("-of-run-3", 0))
        for offset in range(length + 1)
        for fault in ("fin", "rst")
    ]
    assert {each.scenario for each in chosen[-12:]} == {"canonical"}


def test_what_another_client_cannot_do_is_left_out_and_said():
    """Five kinds of requests, each lost, and each answer lost."""
    chosen = choose(Wanted(), SESSION, CommandClient("true"), "follow", "session")
    assert len(chosen.schedules) == 9 * 2 * 3 * 2 + 4 + 2
    assert chosen.notes() == [
        "10 cases left out: the client makes no request of the routes answer, cancel, create, list, status."
    ]
    assert sum(chosen.left_out.values()) == 10


def test_faults_positions_and_ids_choose():
    """Each of them on its own."""
    assert all("rst" in each for each in ids(Wanted(faults=(Fault.RST,))))
    assert all("terminal" in each for each in ids(Wanted(places=(Place.AFTER_TERMINAL,))))
    assert ids(Wanted(only=("rst-after-event-3-of-run-1", "stall-after-event-2"), faults=(Fault.STALL,)))[0] == (
        "stall-after-event-2"
    )


def test_who_leaves_a_fault_out_does_not_meet_it_on_a_resume():
    """The FIN that makes a resume goes along with every fault, and brings none along that was not asked for."""
    wanted = ids(Wanted(faults=(Fault.FIN, Fault.RST)))
    assert not any("stall" in each for each in wanted)
    assert "fin-after-head-and-rst-after-event-1-on-resume" in wanted
    assert "fin-after-head-and-stall-after-event-1-on-resume" in ids(Wanted(faults=(Fault.STALL,)))
    assert not any("rst" in each for each in ids(Wanted(faults=(Fault.FIN,))))


def test_kills_come_behind_each_event_but_the_last():
    """The stream is silent behind the event, so that it is the last one shown; the last event's client ends by itself."""
    wanted = Wanted(kill=True, faults=(Fault.KILL,))
    kills = [each.faults for each in choose(wanted, SESSION, CommandClient("true"), "follow", "session").schedules]
    assert len(kills) == 2 * (3 + 2 + 1)
    assert all(silence.fault is Fault.STALL and kill.at.event == silence.at.event for *_, silence, kill in kills)


def test_what_comes_inside_of_a_client_is_asked_for_by_its_name_alone():
    """The FIN that parts two commits goes along; another client is spared what nobody sees of it."""
    for fault, count in ((Fault.KILL, 12), (Fault.STORE_FAILURE, 6), (Fault.SUSPEND, 3)):
        assert len(ids(Wanted(faults=(fault,)))) == count
    assert ids(Wanted(faults=(Fault.KILL, Fault.STORE_FAILURE)), CommandClient("true")) == []


def test_a_seed_draws_the_same_soak_again():
    assert ids(Wanted(sample="soak", seed=3)) == ids(Wanted(sample="soak", seed=3))
    assert ids(Wanted(sample="soak", seed=3)) != ids(Wanted(sample="soak", seed=9999))


def test_a_change_of_the_log_is_asked_for_by_its_name_alone():
    """The FIN that shows it comes with it, and needs not be named."""
    wanted = Wanted(faults=(Fault.EXPIRE,))
    chosen = choose(wanted, SESSION, OWN, "follow", "session").schedules
    assert [each.faults[0].fault for each in chosen] == [Fault.EXPIRE, Fault.EXPIRE]


def test_a_case_of_the_soak_is_silent_twice_at_most():
    """A client that waits for an answer does so for ten seconds each time."""
    schedules = choose(Wanted(sample="soak", seed=11), SESSION, OWN, "follow", "session").schedules
    silent = (Fault.STALL, Fault.HALF_OPEN)
    times = {sum(each.times for each in schedule.faults if each.fault in silent) for schedule in schedules}
    assert times == {0, 1, 2}
