"""Request bodies: JSON to settings. Unknown members are ignored, null is as good as absent, wrong types are declined."""

import json
from dataclasses import dataclass
from typing import Any

from reattach_chaos.toxiproxy.embedded.errors import ApiError
from reattach_chaos.toxiproxy.embedded.stage import Fitted
from reattach_chaos.toxiproxy.toxics import TOXICS
from reattach_chaos.toxiproxy.toxics.base import Toxic, Unusable

_LARGEST = 2**63  # settings are 64-bit numbers


def _bad(text: str) -> ApiError:
    return ApiError(400, f"bad request body: {text}")


def parse(body: bytes) -> Any:
    """Return the JSON of a body.

    Raises:
        ApiError: 400.
    """
    if not body.strip():
        raise _bad("EOF")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _bad(str(error)) from error


def _object(given: Any, what: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise _bad(f"{what} must be an object")
    return {name.lower(): value for name, value in given.items() if value is not None}


def _text(members: dict[str, Any], name: str, default: str) -> str:
    value = members.get(name, default)
    if not isinstance(value, str):
        raise _bad(f"{name} must be a string")
    return value.encode("utf-8", "replace").decode()  # half of a surrogate pair could not be shown again


def _flag(members: dict[str, Any], name: str, default: bool) -> bool:
    value = members.get(name, default)
    if not isinstance(value, bool):
        raise _bad(f"{name} must be true or false")
    return value


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """What a request says of a proxy."""

    name: str
    listen: str
    upstream: str
    enabled: bool


def proxy(given: Any, default: ProxySettings | None = None) -> ProxySettings:
    """Return a proxy's settings, the default's where the request is silent.

    Raises:
        ApiError: 400.
    """
    members = _object(given, "a proxy")
    default = default or ProxySettings("", "", "", True)
    return ProxySettings(
        name=_text(members, "name", default.name),
        listen=_text(members, "listen", default.listen),
        upstream=_text(members, "upstream", default.upstream),
        enabled=_flag(members, "enabled", default.enabled),
    )


def new_proxy(given: Any, place: str = "") -> ProxySettings:
    """Return the settings of a proxy to make; name and upstream are required.

    Args:
        given: The parsed body, or one entry of it.
        place: Added to what is said of a missing field.

    Raises:
        ApiError: 400.
    """
    settings = proxy(given)
    for name in ("name", "upstream"):
        if not getattr(settings, name):
            raise ApiError(400, f"missing required field: {name}{place}")
    return settings


def proxies(given: Any) -> list[ProxySettings]:
    """Return the settings of many.

    Raises:
        ApiError: 400, naming the entry.
    """
    if not isinstance(given, list):
        raise _bad("an array of proxies is wanted")
    return [new_proxy(each, f" at proxy {number}") for number, each in enumerate(given, 1)]


def new_toxic(given: Any) -> Fitted:
    """Return a toxic to add.

    Raises:
        ApiError: 400; also for settings that would end Toxiproxy's process.
    """
    members = _object(given, "a toxic")
    kind = _text(members, "type", "")
    stream = _text(members, "stream", "") or "downstream"
    name = _text(members, "name", "") or f"{kind}_{stream}"
    if stream.lower() not in ("upstream", "downstream"):
        raise ApiError(400, "stream was invalid, can be either upstream or downstream")
    if kind not in TOXICS:
        raise ApiError(400, "invalid toxic type")
    return Fitted(name, stream, _toxicity(members, 1.0), _settings(members, TOXICS[kind], {}))


def changed_toxic(given: Any, old: Fitted) -> Fitted:
    """Return a toxic's new settings: attributes are merged, anything but them and the toxicity is ignored.

    Raises:
        ApiError: 400.
    """
    members = _object(given, "a toxic")
    settings = _settings(members, type(old.toxic), old.toxic.attributes())
    return Fitted(old.name, old.stream, _toxicity(members, old.toxicity), settings)


def _toxicity(members: dict[str, Any], default: float) -> float:
    value = members.get("toxicity", default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e38:
        raise _bad("toxicity must be a number")
    return float(value)


def _settings(members: dict[str, Any], kind: type[Toxic], old: dict[str, int]) -> Toxic:
    given = _object(members.get("attributes", {}), "attributes")
    names = kind.names()
    values = {names[name]: value for name, value in old.items()}
    for name, value in given.items():
        if name in names:
            if isinstance(value, bool) or not isinstance(value, int) or not -_LARGEST <= value < _LARGEST:
                raise _bad(f"{name} of a {kind.kind} must be a whole number")
            values[names[name]] = value
    try:
        return kind(**values)
    except Unusable as error:
        raise _bad(str(error)) from error
