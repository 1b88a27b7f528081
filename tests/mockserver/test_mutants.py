"""Each wrong server is wrong in its one decision, and right where it is not said to be wrong."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from mockserver_probes import ALSO, PROBES, TOKENS, WITH_TOKENS, settings
from mockserver_stage import Site
from reattach_mockserver.app import Application, create_app
from reattach_mockserver.mutants import stays_open
from reattach_mockserver.mutants.registry import SERVER_MUTANTS, UnknownMutant, server_mutant
from requirements_table import GROUPS

pytestmark = pytest.mark.anyio

PATIENCE = 2.0
"""Seconds until an answer of a wrong server that does not come is none."""


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    """Who stays open does so for little longer than the patience."""
    monkeypatch.setattr(stays_open, "STAYS_S", PATIENCE + 0.5)


@asynccontextmanager
async def a_site(make: Callable[..., Application], mutant: str) -> AsyncIterator[Site]:
    """Yield a server in this test's own loop."""
    app = make(settings(tokens=TOKENS if mutant in WITH_TOKENS else None))
    await app.engine.start()
    site = Site(app)
    try:
        yield site
    finally:
        await site.close()


async def is_right(make: Callable[..., Application], mutant: str, probe: Callable[[Site], Awaitable[None]]) -> bool:
    async with a_site(make, mutant) as site:
        try:
            async with asyncio.timeout(PATIENCE):
                await probe(site)
        except (AssertionError, TimeoutError, ConnectionError, ValueError, LookupError, TypeError):
            return False
        return True


@pytest.mark.parametrize("mutant", sorted(SERVER_MUTANTS))
async def test_a_mutant_fails_its_probe_and_the_right_server_passes_it(mutant):
    """What is asked is answered by the right server as it should be, and by the wrong one not."""
    async with a_site(create_app, mutant) as site:
        await PROBES[mutant](site)
    assert not await is_right(server_mutant(mutant), mutant, PROBES[mutant])


@pytest.mark.slow
@pytest.mark.parametrize("mutant", sorted(SERVER_MUTANTS))
async def test_a_mutant_is_right_where_it_is_not_said_to_be_wrong(mutant):
    """It fails its own question, those in `ALSO`, and no other of the thirty and more."""
    probes = {PROBES[other] for other in SERVER_MUTANTS if other not in WITH_TOKENS}
    failed = {probe.__name__ for probe in probes if not await is_right(server_mutant(mutant), "", probe)}
    own = set() if mutant in WITH_TOKENS else {PROBES[mutant].__name__}
    assert failed == own | ALSO.get(mutant, set())


def test_every_mutant_says_what_it_is():
    """An id, a sentence, requirements of the page; and either the laws that find it or why none can."""
    known = {line.split()[0] for lines in GROUPS.values() for line in lines}
    for name, wrong in SERVER_MUTANTS.items():
        assert wrong.id == name
        assert wrong.words
        assert set(wrong.breaks) <= known
        assert wrong.breaks
        assert bool(wrong.unseen) != bool(wrong.found_by and wrong.anomaly), name


def test_who_errs_in_a_name_is_told_the_nearest():
    with pytest.raises(UnknownMutant, match="Did you mean skips-one"):
        server_mutant("skip-one")
