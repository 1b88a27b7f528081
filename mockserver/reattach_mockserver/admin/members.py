"""The body of an admin call: a JSON object whose members are each read with their type, or refused by name.

A member that is not known is refused too: a misspelt one would make a test pass for the wrong reason. Knows no run.

Checked by tests/mockserver/admin/test_abuse.py.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from reattach_mockserver.app import Application
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.canonical import NotJson, parse_json
from reattach_mockserver.faces.checks import check_body_type
from reattach_mockserver.faces.problem import Refusal, invalid_request

T = TypeVar("T")


class Members:
    """The members of one body. Each reader takes a name and returns None, or its default, where it is not there."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    @classmethod
    async def of(cls, app: Application, call: Call, *known: str) -> "Members":
        """Read the body of a call; none at all is {}.

        Raises:
            Refusal: It is too large, no JSON object, or has a member that is not `known`.
            Gone: The caller left before it was complete.
        """
        limit = app.engine.settings.limits.body_bytes
        if call.declared_length() > limit:
            raise Refusal("body_too_large", f"the body has more than {limit} bytes")
        body = await call.body(limit)
        if not body:
            return cls({})
        check_body_type(call)
        try:
            value = parse_json(body)
        except NotJson as error:
            raise invalid_request(f"the body is not JSON with one meaning: {error}") from None
        if not isinstance(value, dict):
            raise invalid_request("the body is to be an object")
        for name in value:
            if name not in known:
                told = ", ".join(known) or "no member"
                raise invalid_request(f"the member {name[:40]!r} is not known; expected {told}")
        return cls(value)

    def required(self, name: str, read: Callable[[str], T | None]) -> T:
        """Return what a reader of this object finds; it must be there."""
        value = read(name)
        if value is None:
            raise invalid_request(f"the member {name!r} is missing")
        return value

    def integer(self, name: str, low: int, high: int) -> int | None:
        """Return a whole number from `low` to `high`."""
        value = self._given.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise invalid_request(f"{name}={value!r:.40}: expected a whole number from {low} to {high}")
        return value

    def text(self, name: str) -> str | None:
        """Return a text."""
        value = self._given.get(name)
        if value is None or isinstance(value, str):
            return value
        raise invalid_request(f"{name}={value!r:.40}: expected a text")

    def word(self, name: str, words: tuple[str, ...]) -> str | None:
        """Return one of a few words."""
        value = self.text(name)
        if value is not None and value not in words:
            raise invalid_request(f"{name}={value!r:.40}: expected one of {', '.join(words)}")
        return value

    def object(self, name: str) -> dict[str, Any] | None:
        """Return an object."""
        value = self._given.get(name)
        if value is None or isinstance(value, dict):
            return value
        raise invalid_request(f"{name}={value!r:.40}: expected an object")
