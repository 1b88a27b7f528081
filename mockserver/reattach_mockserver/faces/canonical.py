"""Bodies as JSON values: strict parsing, and a digest that is equal for equal values.

Equal means equal in the canonical form of RFC 8785: member order, spacing, escapes and the way a number is written do
not count. A member named twice has no value, so such a body is refused.

Where the rules come from: PROTOCOL, section 2. Checked by tests/mockserver/test_values.py.
"""

import hashlib
import json
from math import isfinite
from typing import Any, NoReturn


class NotJson(ValueError):
    """The text is no JSON that has one meaning."""


def parse_json(body: bytes) -> Any:
    """Return the value of a UTF-8 JSON text.

    Raises:
        NotJson: It is none, a member is named twice, or a number is outside what RFC 8785 can write.
    """
    try:
        return json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_double,
        )
    except RecursionError:
        raise NotJson("nested too deeply") from None
    except NotJson:
        raise
    except (UnicodeDecodeError, ValueError) as error:
        raise NotJson(str(error)) from None


def is_utf_8(text: str) -> bool:
    """Tell whether a text of a JSON value can be an id: half of a surrogate pair is a legal escape and no character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def digest_of(value: Any) -> str:
    """Return a digest that two values share exactly if they are equal in RFC 8785 form.

    Raises:
        NotJson: It is nested so deeply that it can be parsed, but no more.
    """
    try:
        canonical = _canonical(value)
    except RecursionError:
        raise NotJson("nested too deeply") from None
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _canonical(value: Any) -> str:
    match value:
        case dict():
            # RFC 8785 sorts by UTF-16 code units, which differs from code points above the basic plane.
            names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
            return "{" + ",".join(f"{json.dumps(name)}:{_canonical(value[name])}" for name in names) + "}"
        case list():
            return "[" + ",".join(map(_canonical, value)) + "]"
        case bool() | None:
            return json.dumps(value)
        case int() | float():
            # A number is a double there: 1, 1.0 and 1e0 are one value, and so are -0 and 0.
            return repr(float(value) + 0.0)
        case _:
            return json.dumps(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise NotJson(f"the member {name[:40]!r} is named twice")
        members[name] = value
    return members


def _double(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise NotJson(f"{text[:40]} is beyond what a JSON number of RFC 8785 can be")
    return value


def _integer(text: str) -> int:
    if len(text) > 308 or abs(int(text)) >= 1 << 1023:
        raise NotJson(f"a number of {len(text)} digits is no JSON number of RFC 8785")
    return int(text)


def _no_constant(name: str) -> NoReturn:
    raise NotJson(f"{name} is no JSON number")
