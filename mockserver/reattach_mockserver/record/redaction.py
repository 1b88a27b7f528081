"""Takes secrets out of what is recorded: the client's own token wherever it stands, and what looks like a key or a password.

A recording is made to be given away. What is taken out is replaced by `***` and counted; all else stays as it was, so the rules
are narrow: a value under a name that only secrets have, and texts of a form that only secrets have. A secret that a service
dictates letter by letter, over several events, can be seen only when it is complete: it is reported, not hidden.

Pure. Checked by tests/mockserver/record/test_redaction.py.
"""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

MASK = "***"

# fmt: off
_NAMES = frozenset({
    "authorization", "proxyauthorization", "cookie", "setcookie", "xapikey", "apikey", "password", "passwd", "passphrase",
    "secret", "clientsecret", "accesstoken", "refreshtoken", "idtoken", "authtoken", "bearertoken", "sessiontoken",
    "privatekey", "secretkey", "secretaccesskey", "awssecretaccesskey",
})
# fmt: on
"""Names of members whose text is a secret, in lower case, without - and _."""

_FORMS = (
    r"(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{16,}",
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{20,}",  # OpenAI, Anthropic and those who took after them
    r"\bgh[opusr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{35}",
    r"\bhf_[A-Za-z0-9]{30,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",  # a JSON Web Token
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    r"(?<=://)[^\s/:@]{1,256}:[^\s/@]{1,256}(?=@)",  # user and password of an address
)
_TAIL = 512
"""So many characters of a text are remembered, to find what is spread over its pieces."""
_TEXTS = 256
"""So many texts are looked at side by side."""


class Redactor:
    """Redacts the values of one recording.

    Args:
        secrets: Texts that are secret whatever they look like, such as the client's token.

    Attributes:
        count: How many places were replaced.
        spread: Names of the texts that have a secret spread over their pieces, which was not replaced.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        own = {form for secret in secrets if secret for form in (secret, quote(secret, safe=""))}
        # The longest first, so that one that begins with another goes as a whole.
        known = [re.escape(secret) for secret in sorted(own, key=len, reverse=True)]
        self._pattern = re.compile("|".join([*known, *_FORMS]))
        self._tail = max([_TAIL, *map(len, own)])
        self._tails: dict[str, str] = {}
        self.count = 0
        self.spread: set[str] = set()

    def text(self, text: str) -> str:
        """Return a text without its secrets."""
        clean, count = self._pattern.subn(MASK, text)
        self.count += count
        return clean

    def value(self, value: Any) -> Any:
        """Return a JSON value without its secrets, in the same order; the value given stays as it is."""
        match value:
            case str():
                return self.text(value)
            case list():
                items = []
                for item in value:
                    items.append(self.value(item))  # noqa: PERF401 (a comprehension would double the frames of deep values)
                return items
            case dict():
                members: dict[str, Any] = {}
                for name, member in value.items():
                    told = self.text(name)
                    while told in members:
                        told += MASK
                    if isinstance(member, str) and member and _plain(name) in _NAMES:
                        self.count += member != MASK
                        members[told] = MASK
                    else:
                        members[told] = self.value(member)
                return members
            case _:
                return value

    def look_across(self, name: str, piece: str) -> None:
        """Take note of the next piece of a growing text: a secret that began in an earlier one is in nobody's single piece."""
        before = self._tails.pop(name, "")
        if len(self._tails) >= _TEXTS:
            del self._tails[next(iter(self._tails))]
        self._tails[name] = (before + piece)[-self._tail :]
        if any(found.start() < len(before) < found.end() for found in self._pattern.finditer(before + piece)):
            self.spread.add(name)


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")
