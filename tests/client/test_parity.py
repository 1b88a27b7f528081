"""Two faces, the same names: what differs is listed here with its reason."""

import inspect

import pytest

from reattach import AsyncClient, AsyncRun, AsyncTransaction, Client, Run, Transaction

PAIRS = [(Client, AsyncClient), (Run, AsyncRun), (Transaction, AsyncTransaction)]

ONLY_ASYNC = {"http_client": "a caller's own client lives in the caller's loop; the blocking face has none"}
PROTOCOL = {
    "__enter__": "__aenter__",
    "__exit__": "__aexit__",
    "__iter__": "__aiter__",
    "__next__": "__anext__",
}
NOT_AWAITED = {
    "attach": "touches neither disk nor network",
    "transaction": "is entered by `async with`, which awaits",
    "views": "is iterated by `async for`, which awaits",
}


def public(kind):
    own = {name for base in kind.__mro__[:-1] for name in vars(base)}
    return {name for name in own if not name.startswith("_") or name in (*PROTOCOL, *PROTOCOL.values())}


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS)
def test_the_names_are_the_same(blocking, awaited):
    assert {PROTOCOL.get(name, name) for name in public(blocking)} == public(awaited)


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS)
def test_the_parameters_are_the_same(blocking, awaited):
    """Names, kinds, defaults and order."""
    for name in {*public(blocking), "__init__"} - set(PROTOCOL):
        first, second = getattr(blocking, name), getattr(awaited, PROTOCOL.get(name, name))
        if not callable(first) or (name == "__init__" and blocking is not Client):
            continue
        expected = [(p.name, p.kind, p.default) for p in inspect.signature(first).parameters.values()]
        found = [
            (p.name, p.kind, p.default)
            for p in inspect.signature(second).parameters.values()
            if p.name not in ONLY_ASYNC
        ]
        assert found == expected, f"{blocking.__name__}.{name}"


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS)
def test_all_that_touches_disk_or_network_is_awaited(blocking, awaited):
    for name in public(blocking) - set(PROTOCOL):
        method = getattr(awaited, name)
        if inspect.isfunction(method) and name not in NOT_AWAITED:
            assert inspect.iscoroutinefunction(method), f"{awaited.__name__}.{name}"
        assert not inspect.iscoroutinefunction(getattr(blocking, name))


def test_properties_are_properties_in_both():
    for name in public(Run):
        assert isinstance(inspect.getattr_static(Run, name), property) == isinstance(
            inspect.getattr_static(AsyncRun, PROTOCOL.get(name, name)), property
        ), name


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS)
def test_every_public_member_says_what_it_does(blocking, awaited):
    for kind in (blocking, awaited):
        for name in public(kind) - {"__enter__", "__exit__", "__aenter__", "__aexit__"}:
            member = inspect.getattr_static(kind, name)
            assert inspect.getdoc(member), f"{kind.__name__}.{name}"
