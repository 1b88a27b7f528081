"""A run of cases as JUnit XML, for build servers: invalid is a failure, not known is an error, neither is ever a pass."""

import re
from xml.etree import ElementTree

from reattach_chaos.report.screen import witness_lines
from reattach_chaos.report.suite import Played, Suite

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 (section 2.2) has no place for, not even as a reference."""


def as_junit(suite: Suite) -> str:
    """Return the document, with its declaration, as text that is UTF-8 when written."""
    verdict = suite.verdict
    root = ElementTree.Element(
        "testsuite",
        name="reattach chaos",
        tests=str(len(suite.played)),
        failures=str(verdict.count("invalid")),
        errors=str(verdict.count("unknown")),
        time=f"{suite.seconds:.1f}",
    )
    properties = ElementTree.SubElement(root, "properties")
    for name, value in (
        ("target", suite.target),
        ("client", suite.client),
        ("backend", suite.backend),
        ("sample", suite.sample),
        ("seed", str(suite.seed)),
        ("again", suite.again),
    ):
        ElementTree.SubElement(properties, "property", name=name, value=_text(value))
    for played in suite.played:
        _add(root, played)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add(root: ElementTree.Element, played: Played) -> None:
    verdict = played.verdict
    case = ElementTree.SubElement(root, "testcase", classname="reattach.chaos", name=_text(played.id))
    if verdict.word == "invalid":
        found = next(iter(verdict.broken.values()))
        failure = ElementTree.SubElement(case, "failure", type=found.anomaly, message=_text(verdict.sentence()))
        failure.text = _text("\n".join(witness_lines(played)))
    elif verdict.word == "unknown":
        error = ElementTree.SubElement(case, "error", type="unknown", message=_text(verdict.sentence()))
        error.text = _text("\n".join(verdict.unknown))


def _text(value: str) -> str:
    return _FORBIDDEN.sub("\ufffd", value)
