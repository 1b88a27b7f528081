"""The timeline as SVG. Text reaches the markup through `html.escape` alone; each mark can be focused and says what it is."""

from html import escape

from reattach_chaos.history import Record
from reattach_chaos.report.rows import fault_words, place_words, row
from reattach_chaos.report.timeline import LANES, Block, Timeline

_WIDTH, _LEFT, _RIGHT = 1000, 76, 984
_BLOCK, _BLOCK_ROWS = 22, 4
_LANES_TOP = 24 + _BLOCK * _BLOCK_ROWS + 14
_LANES_HEIGHT = 240
_TICKS_TOP = _LANES_TOP + _LANES_HEIGHT + 22
_HEIGHT = _TICKS_TOP + 34
_MARKS = 400  # of one kind; a case of thousands of events is drawn by its lines, and told in full by the table
_DASHES = {"received": "none", "committed": "7 3", "applied": "2 3", "log": "12 3 2 3"}


def drawing(timeline: Timeline, words: str) -> str:
    """Return the timeline as one SVG element; `words` is what it shows, for who cannot see it."""
    x = _Scale(timeline.end_ms)
    parts = [
        f'<svg class="timeline" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="group" aria-label="{escape(words)}">',
        *(_wait(since, until, x) for since, until in timeline.waits[:_MARKS]),
        *(_block(number, block, x) for number, block in enumerate(timeline.blocks[:_MARKS])),
        _axis(timeline, x),
        *(_lane(lane, timeline, x) for lane in reversed(LANES)),
        *(
            f'<path class="tick" tabindex="0" d="M{x(each.at_ms):.1f} {_TICKS_TOP}v9">{_title(_told(each))}</path>'
            for each in timeline.ticks[:_MARKS]
        ),
        *(
            _cut(x(each.at_ms), f"{fault_words(each.fault)} {place_words(each.position, each.sequence)}", each.around)
            for each in timeline.cuts[:_MARKS]
        ),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part)


class _Scale:
    def __init__(self, end_ms: float) -> None:
        self._per_ms = (_RIGHT - _LEFT) / max(end_ms, 1.0)

    def __call__(self, at_ms: float) -> float:
        return _LEFT + at_ms * self._per_ms


def _block(number: int, block: Block, x: _Scale) -> str:
    left, right = x(block.since_ms), x(block.until_ms)
    top = 24 + number % _BLOCK_ROWS * _BLOCK
    where = f" at {block.instance}" if block.instance else ""
    words = f"connection {block.conn}{where}, {block.asked or 'no stream'}, {block.ended or 'open'}"
    label = f"{block.conn} {block.asked}" if right - left > 90 else str(block.conn)
    return (
        f'<g class="block{"" if block.ok else " refused"}" tabindex="0">{_title(words)}'
        f'<rect x="{left:.1f}" y="{top}" width="{max(right - left, 3):.1f}" height="{_BLOCK - 5}" rx="2"/>'
        f'<text x="{left + 3:.1f}" y="{top + 12}">{escape(label)}</text></g>'
    )


def _axis(timeline: Timeline, x: _Scale) -> str:
    bottom = _LANES_TOP + _LANES_HEIGHT
    lines = [f'<text x="8" y="16">connections</text><text x="8" y="{_TICKS_TOP + 8}">status, effects</text>']
    for part in range(5):
        at = timeline.end_ms * part / 4
        lines.append(f'<path class="grid" d="M{x(at):.1f} 20V{bottom}"/>')
        anchor = "end" if part == 4 else "middle" if part else "start"
        lines.append(f'<text x="{x(at):.1f}" y="{bottom + 14}" text-anchor="{anchor}">{at:.0f} ms</text>')
    for part in range(3):
        place = round(timeline.events * part / 2)
        lines.append(
            f'<text x="{_LEFT - 6}" y="{_height(place, timeline.events) + 4:.1f}" text-anchor="end">{place}</text>'
        )
    lines.append(f'<text x="8" y="{_LANES_TOP - 4}">events</text>')
    return "".join(lines)


def _lane(lane: str, timeline: Timeline, x: _Scale) -> str:
    steps, events = timeline.lanes[lane], timeline.events
    if not steps:
        return ""
    first = steps[0]
    path = [f"M{x(first.at_ms):.1f} {_height(first.place - 1, events):.1f}V{_height(first.place, events):.1f}"]
    path += [f"H{x(step.at_ms):.1f}V{_height(step.place, events):.1f}" for step in steps[1:]]
    marks = ""
    if len(steps) <= _MARKS and lane in ("received", "applied"):
        marks = "".join(
            f'<circle class="{lane}" tabindex="0" cx="{x(step.at_ms):.1f}" cy="{_height(step.place, events):.1f}" r="2.5">'
            f"{_title(_told(step.record))}</circle>"
            for step in steps
        )
    style = f'class="lane {lane}" fill="none" stroke-dasharray="{_DASHES[lane]}"'
    return f'<path {style} d="{"".join(path)}">{_title(timeline.word(lane))}</path>{marks}'


def _cut(at: float, words: str, around: str) -> str:
    caption = f"{words}: {around}" if around else words
    bolt = f"M{at + 3:.1f} 6l-7 12h5l-3 10 9 -13h-5l4 -9z"
    return (
        f'<g class="cut" tabindex="0">{_title(caption)}<path class="line" d="M{at:.1f} 20V{_LANES_TOP + _LANES_HEIGHT}"/>'
        f'<path class="bolt" d="{bolt}"/></g>'
    )


def _wait(since: float, until: float, x: _Scale) -> str:
    left, right = x(since), min(x(until), _RIGHT)
    return (
        f'<rect class="wait" x="{left:.1f}" y="20" width="{max(right - left, 0):.1f}" height="{_LANES_TOP + _LANES_HEIGHT - 20}">'
        f"{_title(f'waits {until - since:.0f} ms')}</rect>"
    )


def _height(place: int, events: int) -> float:
    return _LANES_TOP + _LANES_HEIGHT - place * _LANES_HEIGHT / max(events, 1)


def _told(record: Record) -> str:
    told = row(record)
    return f"{told.at_ms:.0f} ms  {told.who} {told.what} {told.of}"


def _title(words: str) -> str:
    return f"<title>{escape(words)}</title>"
