"""What a run of cases is told as: text for a terminal, JSON, JUnit."""

import json
from xml.etree import ElementTree

import chaos_report
from reattach_chaos.history import Applied, History
from reattach_chaos.report import as_json, as_junit, as_text
from reattach_chaos.report.matrix import matrix
from reattach_chaos.report.timeline import timeline
from reattach_chaos.schedules import Fault, Place


def test_the_screen_leads_with_the_sentence_and_its_witness():
    """Then the counts, and the line that plays it again."""
    assert as_text(chaos_report.suite(), "p/index.html").splitlines() == [
        "INVALID: duplicated. Case rst-after-event-4: event 4 (e1.4) was shown twice.",
        "  conn  who     what",
        "        client  rendered  e1.4",
        "  1     gate    RST       after event 4 (fired)",
        "  2     client  attach    after e1.3",
        "        client  rendered  e1.4                   <- again",
        "cases 3   fired 2   valid 1   invalid 1   unknown 1   seed 7   41 s",
        "again: reattach chaos replay rst-after-event-4 (or shrink)  page p/index.html",
    ]


def test_a_run_that_was_cut_short_says_so():
    """Three of nine is not nine."""
    assert "cases 3 of 9 " in as_text(chaos_report.suite(planned=9))


def test_json_names_the_records_of_the_witness():
    """By their numbers; the leading case's history is in it, a valid one's is not."""
    told = as_json(chaos_report.suite())
    assert json.loads(json.dumps(told)) == told
    by_id = {case["id"]: case for case in told["cases"]}
    leading = by_id["rst-after-event-4"]
    law = leading["laws"]["I2"]
    kinds = [each["kind"] for each in leading["history"] if each["n"] in law["witness"]]
    assert (law["verdict"], law["anomaly"], kinds) == ("invalid", "duplicated", ["delivered", "delivered"])
    assert "history" not in by_id["fin-after-event-3"]
    assert told["counts"] == {
        "planned": 3,
        "played": 3,
        "faults_planned": 3,
        "faults_fired": 2,
        "valid": 1,
        "invalid": 1,
        "unknown": 1,
    }


def test_junit_never_passes_what_is_not_known():
    """Invalid is a failure, unknown an error; control characters and lone surrogates are no XML."""
    suite = chaos_report.suite(client="a\x00b\ud800c")
    root = ElementTree.fromstring(as_junit(suite).encode())
    told = {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")}
    assert told == {"fin-after-event-3": [], "rst-after-event-4": ["failure"], "stall-after-event-5": ["error"]}
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "1", "1")
    assert [each.get("value") for each in root.iter("property") if each.get("name") == "client"] == ["a\ufffdb\ufffdc"]


def test_a_square_of_the_matrix_is_as_bad_as_its_worst_case():
    """With the number of each."""
    cases = [
        chaos_report.valid(),
        chaos_report.doubled(),
        chaos_report.played("rst", 2, fired=True, shows=([1, 2], [3, 4, 5, 6]), after=2),
    ]
    found = matrix(cases)
    square = found.squares[Place.AFTER_EVENT, Fault.RST]
    assert (square.word, square.words()) == ("invalid", "1 invalid, 1 valid")
    assert (found.places, found.faults) == ((Place.AFTER_EVENT,), (Fault.FIN, Fault.RST))
    assert not matrix(cases, by="create").squares


def test_a_repeat_is_a_step_that_does_not_rise():
    """As a hole is one of two: the lanes are places in the server's log."""
    drawn = timeline(chaos_report.doubled().history)
    assert [step.place for step in drawn.lanes["applied"]] == [1, 2, 3, 4, 4, 5, 6]
    assert drawn.word("applied") == "shown", "it confirms nothing"
    confirming = timeline(History([*chaos_report.doubled().history, Applied(id="evt_1")]))
    assert confirming.word("applied") == "applied"
    assert [(block.conn, block.asked, block.ended) for block in drawn.blocks] == [
        (1, "from the beginning", "rst by gate"),
        (2, "after e1.3", "fin by server"),
    ]
    assert (len(drawn.cuts), drawn.events, len(drawn.waits)) == (1, 6, 1)
