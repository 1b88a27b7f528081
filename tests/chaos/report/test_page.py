"""The HTML report: one file, nothing fetched, nothing executed, whatever an event says; looked at in a real browser."""

import html.parser
import json
import re
import subprocess

import browser_stage
import chaos_report
from reattach_chaos.checkers import RunVerdict
from reattach_chaos.report import Suite, as_page

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">'\"&<!--"


class Reader(html.parser.HTMLParser):
    """What a browser makes of the page: its elements, and whether they are closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes, self.data = [], [], [], {}

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.data[self.open[-1]] = self.data.get(self.open[-1], "") + data


def read(page):
    """Return the page as read."""
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def hostile():
    """Return a run in which everything that others choose is hostile."""
    case = chaos_report.played("rst", 4, fired=True, shows=([1, 2, 3, 4], [4, 5, 6]), after=3, text=HOSTILE)
    verdict = RunVerdict(cases=(case.verdict,))
    return Suite(verdict=verdict, played=(case,), target=HOSTILE, client=HOSTILE, again=HOSTILE, notes=(HOSTILE,))


def test_the_page_is_one_file_that_fetches_nothing():
    """No script runs, nothing is loaded, and the data are in it as JSON."""
    read_page = read(as_page(chaos_report.suite()))
    assert read_page.tags.count("script") == 1
    assert ("script", "type", "application/json") in read_page.attributes
    assert not [each for each in read_page.attributes if each[1] in ("src", "href") or each[1].startswith("on")]
    assert "url(" not in read_page.data["style"]
    assert "@import" not in read_page.data["style"]
    assert json.loads(read_page.data["script"])["reattach"] == "chaos-report/1"


def test_nothing_that_is_told_becomes_markup():
    """The same elements as of a harmless run, and the text is there to be read."""
    page = as_page(hostile())
    found = read(page)
    assert found.tags.count("script") == 1
    assert "img" not in found.tags
    assert json.loads(found.data["script"])["client"] == HOSTILE
    assert HOSTILE in found.data["code"]


def test_every_verdict_has_a_word_and_a_sign():
    """Colour is never the only one; what is drawn can be focused and has a title, and is a table, too."""
    page = as_page(chaos_report.suite())
    for sign, word in (("✓", "valid"), ("✗", "invalid"), ("?", "unknown")):
        assert f">{sign} {word}<" in page
    marks = re.findall(r'<(?:g|circle|path class="tick")[^>]* tabindex="0"[^>]*>(<title>)?', page)
    assert marks
    assert all(marks)
    assert "<summary>All 35 records</summary>" in page


def test_a_run_without_a_failure_has_no_first_failure():
    """And one without a case proves nothing."""
    case = chaos_report.valid()
    page = as_page(Suite(verdict=RunVerdict(cases=(case.verdict,)), played=(case,)))
    assert "First failure" not in page
    assert "VALID. 1 cases" in page
    assert "UNKNOWN. No case was played." in as_page(Suite(verdict=RunVerdict(cases=()), played=()))


def test_a_browser_shows_it_and_runs_nothing(tmp_path):
    """A hostile run in headless Chromium: the title is still ours, the timeline is drawn."""
    file = tmp_path / "index.html"
    file.write_text(as_page(hostile()), "utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--no-first-run"]
    done = subprocess.run(
        [browser_stage.chromium(), *flags, "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "owned" not in done.stdout.split("</title>")[0]
    assert 'class="lane received"' in done.stdout
    assert "<h1>✗ INVALID: duplicated." in done.stdout
