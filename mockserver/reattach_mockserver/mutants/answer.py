"""`Answer`: a whole answer that is no stream, as a wrong server may change it."""

import json
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(slots=True)
class Answer:
    """Status, headers in lower case, body."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        """The body's value; None where it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    def saying(self, **members: Any) -> Self:
        """Return it with other members of its JSON object."""
        self.body = json.dumps({**self.json, **members}).encode()
        return self
