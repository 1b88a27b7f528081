"""The end of `reattach chaos run`, as text for a terminal."""

from reattach_chaos.history import printable
from reattach_chaos.report.story import story
from reattach_chaos.report.suite import Played, Suite

LINE = 300


def as_text(suite: Suite, page: str = "") -> str:
    """Return the verdict, its witness, the counts, and how to play the leading case again. Ends without a line end.

    Args:
        suite: The run.
        page: The path of the HTML report, "" where none was written.
    """
    lines = [suite.verdict.sentence()]
    if suite.first is not None:
        lines += witness_lines(suite.first)
        if words := last_line(suite.first.stderr):
            lines.append(f"  the client's last words on stderr: {words}")
    verdict, total = suite.verdict, len(suite.played)
    short = f" of {suite.planned}" if suite.planned > total else ""
    lines.append(
        f"cases {total}{short}   fired {suite.all_fired()}   valid {verdict.count('valid')}   "
        f"invalid {verdict.count('invalid')}   unknown {verdict.count('unknown')}   seed {suite.seed}   {suite.seconds:.0f} s"
    )
    if suite.again:
        lines.append(f"again: {suite.again} (or shrink)" + (f"  page {page}" if page else ""))
    elif page:
        lines.append(f"page {page}")
    # An id that the client or the server chose could give the terminal orders, or not be had in its encoding.
    return "\n".join(printable(line, len(line)) for line in lines)


def witness_lines(played: Played) -> list[str]:
    """Return the records that cannot both be right as a small table; nothing where no law is broken."""
    broken = next(iter(played.verdict.broken.values()), None)
    if broken is None or not broken.witness:
        return []
    told = story(broken.witness, played.history)
    rows = [("conn", "who", "what", "", "")] + [(*each[1:], remark) for each, remark in told]
    widths = [max(len(cells[column]) for cells in rows) for column in range(4)]
    return ["  " + "  ".join((*map(str.ljust, cells, widths), cells[4])).rstrip() for cells in rows]


def last_line(text: str) -> str:
    """Return the last line that says something, cut to what a person reads; "" for none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:LINE] if lines else ""
