"""Which test shows that the server keeps which requirement, and which mutant breaks it, written as a page.

`python tests/requirements_table.py` writes mockserver/REQUIREMENTS.md anew; tests/mockserver/test_requirements.py compares it. A
test counts for a requirement if its docstring begins with, or holds, the id, and if it runs our server: only the folders
of `PLACES` are looked at. The ids are the catalogue's of the compliance suite and are never used twice.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from reattach_mockserver.mutants.registry import SERVER_MUTANTS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "mockserver" / "REQUIREMENTS.md"
PLACES = ("tests/mockserver", "tests/contracts", "tests/system")
_ID = re.compile(r"\bRS-([0-9]{2})\b")

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Identity": (
        "RS-01 A run has an id, and answers to it, before its first event is sent.",
        "RS-02 The id is the run's: every connection and every event shows the same one.",
        "RS-03 Each event carries a cursor.",
        "RS-04 An event has the same cursor and the same bytes whenever it is delivered.",
        "RS-05 A cursor stands for one event; equal events have different ones.",
        "RS-06 A stream holds events of one run.",
        "RS-07 The cursor of another run is refused.",
        "RS-08 Heartbeats and control frames leave the cursor where it was.",
        "RS-09 There is a cursor from the first block on.",
    ),
    "Order and boundary": (
        "RS-10 Events have one order, and it grows on every connection.",
        "RS-11 A replay has the order that was live.",
        "RS-12 A resume begins with the event after the cursor.",
        "RS-13 That holds at every position: the first, the last, the edges of pages.",
        "RS-14 Without a cursor a stream begins where the page says, and the beginning can be asked for.",
        "RS-15 A client can prove that it misses nothing.",
        "RS-16 An event that did not arrive whole comes again whole.",
        "RS-17 A connection that breaks again and again still gets on.",
    ),
    "The seam, several readers and writers": (
        "RS-18 Nothing is lost between replay and live.",
        "RS-19 Nothing comes twice there.",
        "RS-20 What was seen live can be replayed at once.",
        "RS-21 Producers in parallel leave one order, in which nothing appears late.",
        "RS-22 Readers with the same cursor get the same events.",
        "RS-23 A slow reader holds up nobody.",
        "RS-24 One reader does not silently take the place of another.",
    ),
    "Deltas and snapshots": (
        "RS-25 The pieces put together are the message.",
        "RS-26 Applying an event twice changes nothing.",
        "RS-27 A snapshot says at which cursor it is true.",
        "RS-28 No replay merges pieces, so a cursor between two stays good.",
    ),
    "Whether a cursor is good": (
        "RS-29 What is no cursor is refused.",
        "RS-30 A cursor beyond the end is refused, and hides nothing that comes later.",
        "RS-31 One whose events are gone is told so, with what is left.",
        "RS-32 Retention is stated, and kept.",
        "RS-33 A finished run is replayed to its settling event, and the stream ends.",
        "RS-34 Status and result are there when the events are gone.",
        "RS-35 A new incarnation of a log is visible, and cursors of the old one are refused.",
        "RS-36 A failed resume makes no run.",
        "RS-37 Each refusal has a code of its own.",
    ),
    "No work by reconnecting; creating; effects": (
        "RS-38 Reconnecting makes no work.",
        "RS-39 Leaving neither cancels nor pauses a run.",
        "RS-40 A run that nobody watches completes.",
        "RS-41 The same key and body are the same run.",
        "RS-42 The same key at the same time makes one run.",
        "RS-43 The same key with another body is a conflict.",
        "RS-44 A key is remembered past the run's end and the server's restart.",
        "RS-45 A call whose result is recorded is not executed again.",
        "RS-46 A call in doubt is reconciled, or shown to be in doubt.",
        "RS-47 An operation has one id in every attempt, and events show it.",
    ),
    "Ends, cancels, actions": (
        "RS-48 A run has one settling event, and it is the last.",
        "RS-49 A stream whose run goes on does not end as if it were over.",
        "RS-50 Who saw the settling event reads a settled status.",
        "RS-51 A settled status stays, and nothing that is read goes back.",
        "RS-52 The status is never behind what was delivered.",
        "RS-53 A cancel is a call of its own, may be repeated, and its end is in the log.",
        "RS-54 A cancel against completion has one outcome.",
        "RS-55 All pending actions are listed, each with the event that it came from.",
        "RS-56 An answer counts once, and another one conflicts.",
        "RS-57 A run that waits for an answer ends its stream with that reason.",
        "RS-58 A failure is an event, with its error, and can be replayed.",
        "RS-59 What goes wrong with a stream is told apart from what goes wrong with a run.",
    ),
    "Several servers, and their deaths": (
        "RS-60 Any replica serves a resume.",
        "RS-61 What anybody saw survives the death of a server, unchanged.",
        "RS-62 After a death the run goes on, or is settled in bounded time.",
        "RS-63 A change of replica takes nobody back.",
        "RS-64 A server that goes down closes streams between events, with a hint.",
    ),
    "Who may": (
        "RS-65 All calls need the rights of the create; another's run is as absent as none.",
        "RS-66 A run belongs to the principal: a renewed token resumes it.",
        "RS-67 A cursor grants nothing and tells nothing.",
    ),
    "On the wire": (
        "RS-68 Only a stream is 200 with the stream's type; a refusal is an error.",
        "RS-69 `Last-Event-ID` counts, so does the parameter, and which of them first is as stated.",
        "RS-70 An id comes back unchanged in a header and in an address.",
        "RS-71 It is short, and of characters that a header may have.",
        "RS-72 Any text arrives as it was, live and replayed.",
        "RS-73 No answer may be kept by a cache.",
        "RS-74 Every stream declines to be changed or held back on its way.",
        "RS-75 An event is sent when it is appended.",
        "RS-76 A quiet stream is kept alive within the stated time, by what is no event.",
        "RS-77 When to come back is hinted, in sane bounds.",
        "RS-78 A stream that broke off can be told from one that ended.",
        "RS-79 A planned close comes between two events, and can be resumed.",
        "RS-80 A slow reader costs bounded memory, and no event is left out for it.",
        "RS-81 Too much is said as such, never as an empty stream.",
        "RS-82 A browser of another origin can resume.",
        "RS-83 What the server can do is told to machines.",
        "RS-84 And it is true.",
    ),
    "Found by modelling": (
        "RS-85 An append that is sent again adds nothing.",
        "RS-86 A writer that was taken over appends nothing more.",
        "RS-87 A log that lost its tail can be recognised.",
        "RS-88 The key is looked up before anything else can refuse.",
        "RS-89 A continuation and what it resolves become visible together.",
        "RS-90 A replay that is overtaken by trimming ends aloud.",
        "RS-91 Who saw the settling event can start the session's next run.",
        "RS-92 What was found not to have happened will not happen late.",
        "RS-93 What is stated about durability is true when the power fails.",
    ),
}
"""What a server has to do to be called resumable, in a sentence each."""

_HEAD = """\
# Requirements, and the tests that hold them

What a server must do to be called resumable, and by which tests this one is held to it. Written by
`python tests/requirements_table.py` from the docstrings of the tests; a test fails when the page is not what they say, or when a
requirement has no test. The compliance suite checks the same ids from outside, on any server.

The wrong servers break a requirement on purpose: `reattach serve --mutant ID`, [mutants/](reattach_mockserver/mutants/README.md).
"""


class Observed(NamedTuple):
    """A test that observes a requirement."""

    path: str
    name: str


def requirements() -> dict[str, str]:
    """Return each requirement's sentence by its id."""
    return {text[:5]: text[6:] for texts in GROUPS.values() for text in texts}


def observations() -> dict[str, list[Observed]]:
    """Return the tests of each id, in the order of files and lines; also of ids that no requirement has."""
    found: dict[str, list[Observed]] = {}
    for place in PLACES:
        for path in sorted((ROOT / place).rglob("test_*.py")):
            for name, docstring in _tests(path):
                for number in dict.fromkeys(_ID.findall(docstring)):
                    found.setdefault(f"RS-{number}", []).append(Observed(path.relative_to(ROOT).as_posix(), name))
    return found


def _tests(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def render() -> str:
    """Return the page."""
    found = observations()
    lines = [_HEAD]
    for group, texts in GROUPS.items():
        lines += [f"## {group}\n", "| | requirement | tests | wrong servers |", "| --- | --- | --- | --- |"]
        for text in texts:
            links = [f"[{_words(test.name)}](../{test.path})" for test in found.get(text[:5], [])]
            wrong = [f"[`{name}`]({path})" for name, path in mutants(text[:5]).items()]
            lines.append(f"| {text[:5]} | {text[6:]} | {'<br>'.join(links)} | {'<br>'.join(wrong)} |")
        lines.append("")
    return "\n".join(lines)


def mutants(requirement: str) -> dict[str, str]:
    """Return the servers that break a requirement on purpose, with their files."""
    return {
        name: f"reattach_mockserver/mutants/{name.replace('-', '_')}.py"
        for name, wrong in SERVER_MUTANTS.items()
        if requirement in wrong.breaks
    }


def _words(name: str) -> str:
    return name.removeprefix("test_").replace("_", " ")


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
