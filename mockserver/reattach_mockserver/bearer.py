"""Bearer tokens: which principal a token speaks for, and with which rights.

A run belongs to the principal, not to the token, so a renewed token goes on where the old one stood. Tokens are
kept as digests only: what is looked up, written to a log or shown in a traceback is never one.

Where the rules come from: PROTOCOL, section 8; the file's form, the surface page, `serve --tokens`.
Checked by tests/mockserver/test_values.py.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hmac import compare_digest


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `token` is a digest, "" where nobody is asked; without `rights` every call is forbidden."""

    principal: str
    rights: bool = True
    token: str = ""


ANYONE = Caller("anyone")
"""The one principal of a server without tokens."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Callers by the digest of their token."""

    callers: Mapping[str, Caller]

    def caller(self, token: str) -> Caller | None:
        """Return who this token speaks for.

        What is looked up is a digest, so how far it agrees with another says nothing of a token; and the last word has a
        comparison that takes the same time wherever they differ, also where there is none to compare with.
        """
        given = digest(token)
        found = self.callers.get(given)
        known = compare_digest(given, _NO_DIGEST if found is None else found.token)
        return found if known else None


_NO_DIGEST = "-" * 64


def digest(token: str) -> str:
    """Return what stands for a token wherever it is kept."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def parse_tokens(lines: Iterable[str]) -> Tokens:
    """Read lines `principal token` and `principal token none`; blank lines and `#` comments are passed over.

    Raises:
        ValueError: A line is neither, or a token stands twice. Says the line's number, never its token.
    """
    callers: dict[str, Caller] = {}
    for number, line in enumerate(lines, 1):
        match line.split():
            case []:
                continue
            case [first, *_] if first.startswith("#"):
                continue
            case [principal, token] | [principal, token, "none"] as words:
                key = digest(token)
                if key in callers:
                    raise ValueError(f"line {number}: this token stands on an earlier line already")
                callers[key] = Caller(principal, rights=len(words) == 2, token=key)
            case _:
                raise ValueError(f"line {number}: expected 'principal token' or 'principal token none'")
    return Tokens(callers)
