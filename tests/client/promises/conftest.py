import pytest

from client_stage import FACES, SCRIPTS, TRIO
from reattach_mockserver.live import LiveServer

ON_TRIO_TOO = {
    "test_04_manual_ack",
    "test_12_messages",
    "test_callbacks",
    "test_cancelling",
    "test_commit",
    "test_intent",
    "test_marks",
    "test_needs",
    "test_observed",
    "test_once",
    "test_pauses",
    "test_transactions",
    "test_views",
}
"""Whose tests are quick and use no loop of their own: their asynchronous face runs under trio as well."""


def pytest_generate_tests(metafunc):
    """Each test speaks to both faces; many to the asynchronous one on both loops."""
    if "face" in metafunc.fixturenames:
        more = (TRIO,) if metafunc.module.__name__.rpartition(".")[2] in ON_TRIO_TOO else ()
        metafunc.parametrize("face", (*FACES, *more), ids=lambda face: face.name)


@pytest.fixture(scope="session")
def live():
    """A reference server on a free port, in a thread; runs are told apart by their keys."""
    with LiveServer(scripts=SCRIPTS) as server:
        yield server


@pytest.fixture
def anyio_backend(request):
    """The loop that the face of this test wants."""
    face = request.getfixturevalue("face") if "face" in request.fixturenames else None
    return "trio" if face is TRIO else "asyncio"


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "runs.db"
