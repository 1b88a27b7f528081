import pytest

from client_stage import FACES, SCRIPTS
from reattach_mockserver.live import LiveServer


@pytest.fixture(params=FACES, ids=lambda face: face.name)
def face(request):
    """Each test speaks to both faces."""
    return request.param


@pytest.fixture(scope="session")
def live():
    """A reference server on a free port, in a thread; runs are told apart by their keys."""
    with LiveServer(scripts=SCRIPTS) as server:
        yield server


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "runs.db"
