"""The report as one HTML file: the verdict in ten seconds, then everything it rests on. No script, no network.

What comes from an event, a client or a command line reaches the page through `html.escape` alone, and the embedded data through
`_embedded`; so nothing in them can be markup. Colour is never the only sign: each verdict has its word and its shape.

Rules: the chaos page, "The HTML report". Checked in a browser by tests/chaos/report/test_page.py.
"""

import json
from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files

from reattach_chaos import schedules
from reattach_chaos.checkers import Invalid, Unknown
from reattach_chaos.checkers.laws import LAWS
from reattach_chaos.history import History, Record
from reattach_chaos.report.data import as_json
from reattach_chaos.report.drawing import drawing
from reattach_chaos.report.matrix import SIGNS, matrix
from reattach_chaos.report.rows import Row, fault_words, row
from reattach_chaos.report.story import story
from reattach_chaos.report.suite import Played, Suite
from reattach_chaos.report.timeline import LANES, timeline
from reattach_chaos.schedules.schedule import PHASES

_ROWS = 2_000  # of a history in the page; the file beside it has all
_TIMELINES = 12  # cases that are drawn: the leading one and further ones that are not valid


def as_page(suite: Suite) -> str:
    """Return the report of a run as one HTML document."""
    word = suite.verdict.word
    drawn = _drawn(suite)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>reattach chaos: {escape(suite.verdict.sentence())}</title>",
        f"<style>{files('reattach_chaos.report').joinpath('page.css').read_text('utf-8')}</style></head>",
        f'<body class="{word}"><main>',
        *_top(suite),
        *(_section("First failure", _leading(suite.first)) if suite.first is not None else ()),
        *_section("Matrix", _matrix(suite)),
        *_section("Laws", _laws(suite)),
        *_section("Reproduce", _reproduce(suite)),
        *_section("Trust", _trust(suite)),
        *_section("Cases", _cases(suite, drawn)),
        f'<script type="application/json" id="data">{_embedded(suite, drawn)}</script>',
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _drawn(suite: Suite) -> list[str]:
    worst = [each.id for each in suite.played if each.verdict.word == "invalid"]
    return (worst + [each.id for each in suite.played if each.verdict.word == "unknown"])[:_TIMELINES]


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"<section><h2>{escape(title)}</h2>"
    yield from lines
    yield "</section>"


def _top(suite: Suite) -> Iterator[str]:
    verdict, (fired, planned) = suite.verdict, suite.fired()
    yield f"<h1>{SIGNS[verdict.word]} {escape(verdict.sentence())}</h1>"
    counts = f"{len(suite.played)} of {max(suite.planned, len(suite.played))} cases played, faults fired {fired} of {planned}"
    told = ", ".join(f"<b class={word}>{verdict.count(word)} {word}</b>" for word in ("valid", "invalid", "unknown"))
    yield f'<p class="lead">{counts}: {told}.</p>'
    facts = {
        "client": suite.client,
        "server": suite.target,
        "proxy": suite.backend,
        "sample": suite.sample,
        "seed": str(suite.seed),
        "took": f"{suite.seconds:.1f} s",
        "began": suite.began,
        **suite.versions,
    }
    shown = "".join(
        f"<span>{escape(name)} <code>{escape(value)}</code></span>" for name, value in facts.items() if value
    )
    yield f'<div class="facts soft">{shown}</div>'


def _leading(played: Played) -> Iterator[str]:
    verdict = played.verdict
    found = next(iter(verdict.broken.values()), None)
    yield f'<p class="lead">{escape(verdict.sentence())}</p>'
    if found is not None:
        law = next((law for law in LAWS if verdict.rulings.get(law.id) is found), None)
        name = f"Law {law.id}, {law.name}. " if law is not None else ""
        times = f"It is broken {found.count} times in this case; this is the first. " if found.count > 1 else ""
        yield f"<p>{escape(name)}{times}These records cannot both be right:</p>"
        yield _rows([told.row for told in story(found.witness, played.history)], "The witness, and what came between")
    yield from _timeline(played)


def _timeline(played: Played) -> Iterator[str]:
    drawn = timeline(played.history)
    words = (
        f"Timeline of case {played.id}: {len(drawn.blocks)} connections, {len(drawn.cuts)} faults fired, "
        f"{drawn.events} events in the log. The table below says the same."
    )
    yield f'<div class="wide">{drawing(drawn, words)}</div>'
    keys = "".join(f'<span class="{lane}"><i></i>{escape(drawn.word(lane))}</span>' for lane in LANES)
    yield f'<p class="key soft">{keys}<span>⚡ fault fired</span><span>grey: waiting</span></p>'
    yield from _history(played.history)


def _history(history: History) -> Iterator[str]:
    records = list(history)
    more = f", the first {_ROWS} shown" if len(records) > _ROWS else ""
    yield f"<details><summary>All {len(records)} records{more}</summary>"
    yield _records(records[:_ROWS], "The history")
    yield "</details>"


def _records(records: Iterable[Record], caption: str) -> str:
    return _rows(map(row, records), caption)


def _rows(told: Iterable[Row], caption: str) -> str:
    rows = "".join(
        f'<tr><td class="mono">{each.at_ms:.0f}</td><td>{escape(each.conn)}</td><td>{escape(each.who)}</td>'
        f'<td>{escape(each.what)}</td><td class="mono">{escape(each.of)}</td></tr>'
        for each in told
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("ms", "conn", "who", "what", "of what"))
    return _table(escape(caption), head, rows)


def _table(caption: str, head: str, rows: str, kind: str = "") -> str:
    """Return a table of what is markup already."""
    titled = f'<caption class="soft">{caption}</caption>' if caption else ""
    return f'<div class="wide"><table class="{kind}">{titled}<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>'


def _matrix(suite: Suite) -> Iterator[str]:
    yield from _grid(suite, "")
    for phase in PHASES:
        if any(fault.phase == phase for each in suite.played for fault in each.schedule.faults):
            yield f"<details><summary>only {phase}</summary>"
            yield from _grid(suite, phase)
            yield "</details>"


def _grid(suite: Suite, phase: str) -> Iterator[str]:
    found = matrix(suite.played, by=phase)
    if not found.squares:
        yield "<p>No fault was planned.</p>"
        return
    head = "".join(f'<th scope="col">{escape(fault.traits.words)}</th>' for fault in found.faults)
    rows = []
    for place in found.places:
        cells = []
        for fault in found.faults:
            square = found.squares.get((place, fault))
            if square is None:
                cells.append('<td class="none">–</td>')
                continue
            titled = f"{square.words()}: {', '.join(square.cases[:8])}{' …' if len(square.cases) > 8 else ''}"
            bad = (
                f" {square.counts[square.word]}/{square.counts.total()}"
                if square.word != "valid"
                else f" {square.counts.total()}"
            )
            cells.append(f'<td class="{square.word}" title="{escape(titled)}">{SIGNS[square.word]}{bad}</td>')
        name = f'{escape(place.replace("-", " "))} <span class="soft">{place.code}</span>'
        rows.append(f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>')
    caption = "position × fault: ✓ valid, ✗ invalid, ? unknown, with the number of cases; – not played"
    yield _table(caption, f'<th scope="col">position</th>{head}', "\n".join(rows), "matrix")


def _laws(suite: Suite) -> Iterator[str]:
    names = ("law", "", "valid", "invalid", "unknown", "compared", "first case")
    rows = []
    for law in LAWS:
        rulings = [(each.id, each.verdict.rulings[law.id]) for each in suite.played if law.id in each.verdict.rulings]
        invalid = [(case, found) for case, found in rulings if isinstance(found, Invalid)]
        unknown = [(case, found) for case, found in rulings if isinstance(found, Unknown)]
        compared = sum(found.compared for _, found in rulings if not isinstance(found, Invalid | Unknown))
        first = (
            f"{invalid[0][1].anomaly}: {invalid[0][0]}"
            if invalid
            else f"{unknown[0][1].reason}: {unknown[0][0]}"
            if unknown
            else ""
        )
        word = "invalid" if invalid else "unknown" if unknown else "valid" if compared else "none"
        sign = SIGNS.get(word, "–")
        rows.append(
            f'<tr><th scope="row">{law.id}</th><td>{escape(law.name)}</td><td class="{word}">{sign} '
            f"{len(rulings) - len(invalid) - len(unknown)}</td><td>{len(invalid)}</td><td>{len(unknown)}</td><td>{compared}</td>"
            f"<td>{escape(first)}</td></tr>"
        )
    yield _table("", "".join(f'<th scope="col">{name}</th>' for name in names), "\n".join(rows))
    yield '<p class="soft">Compared 0: nothing in these histories is what the law speaks of; that is neither praise nor blame.</p>'


def _reproduce(suite: Suite) -> Iterator[str]:
    if suite.again:
        yield f"<pre>{escape(suite.again)}</pre>"
    if suite.first is None:
        yield "<p>Nothing failed. The seed above gives the same cases again.</p>"
        return
    if suite.first.file:
        yield f"<p>The schedule is in <code>{escape(suite.first.file)}</code>:</p>"
    yield f"<pre>{escape(schedules.dumps(suite.first.schedule))}</pre>"


def _trust(suite: Suite) -> Iterator[str]:
    fired, planned = suite.fired()
    yield "<ul>"
    yield f"<li>Faults that fired where they were planned: {fired} of {planned}. "
    yield "One that did not makes its case unknown, never valid.</li>"
    for axis, words in suite.verdict.coverage.fired.items():
        told = ", ".join(f"{_axis_word(axis, word)} {count}" for word, count in sorted(words.items()))
        missing = suite.verdict.coverage.missing.get(axis, ())
        never = f" Never fired: {', '.join(_axis_word(axis, word) for word in missing)}." if missing else ""
        yield f"<li>{escape(axis.replace('_', ' '))}: {escape(told or 'none')}.{escape(never)}</li>"
    for each in suite.played:
        if each.verdict.trouble:
            yield f"<li>{escape(each.id)}: {escape(each.verdict.trouble)}</li>"
    yield from (f"<li>{escape(note)}</li>" for note in suite.notes)
    yield "</ul>"


def _axis_word(axis: str, word: str) -> str:
    return fault_words(word) if axis == "fault" else word.replace("-", " ")


def _cases(suite: Suite, drawn: list[str]) -> Iterator[str]:
    leading = suite.first.id if suite.first is not None else None
    for each in suite.played:
        if each.id in drawn and each.id != leading:
            yield f"<details><summary>{SIGNS[each.verdict.word]} {escape(each.verdict.sentence())}</summary>"
            yield from _timeline(each)
            yield "</details>"
    rows = []
    for each in suite.played:
        word = each.verdict.word
        why = "" if word == "valid" else each.verdict.sentence()
        named = f'<td class="mono">{escape(each.id)}</td>'
        rows.append(f'<tr>{named}<td class="{word}">{SIGNS[word]} {word}</td><td>{escape(why)}</td></tr>')
    yield f"<details><summary>All {len(suite.played)} cases</summary>"
    yield _table("", "".join(f'<th scope="col">{name}</th>' for name in ("case", "verdict", "why")), "\n".join(rows))
    yield "</details>"


def _embedded(suite: Suite, drawn: list[str]) -> str:
    """Return the run's data as JSON that no parser of HTML can take for the end of its element."""
    text = json.dumps(as_json(suite, drawn), ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
