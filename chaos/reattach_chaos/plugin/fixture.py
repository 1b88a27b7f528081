"""What the plugin's hooks do, once a test wants a case: the matrix of a marked test, the fixture, the stage of the process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reattach_chaos.cases.servers.control import ServerTrouble
from reattach_chaos.plugin.case import ChaosCase
from reattach_chaos.plugin.matrix import Cuts, MarkerError, cuts_of, expand
from reattach_chaos.plugin.options import options_of
from reattach_chaos.plugin.stage import Stage
from reattach_chaos.schedules import Schedule

MARKER, FIXTURE = "reattach_cuts", "reattach_chaos"
_STAGE = pytest.StashKey[Stage]()


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Make of a marked test one for each place and fault.

    Raises:
        pytest.fail.Exception: The marker's words make no sense, or the test takes no case.
        pytest.UsageError: The options do not.
    """
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None:
        return
    if FIXTURE not in metafunc.fixturenames:
        pytest.fail(f"{MARKER}: a test with this marker takes the fixture {FIXTURE}", pytrace=False)
    stage = stage_of(metafunc.config)
    try:
        cuts = _cuts(marker)
        replay = stage.options.replay
        schedules = (
            [replay]
            if replay
            else expand(cuts, stage.shape(cuts.scenario), stage.options.seed, full=stage.options.full)
        )
    except (ServerTrouble, ValueError) as error:
        raise pytest.fail.Exception(f"{MARKER}: {error}", pytrace=False) from None  # else pytest tells it twice
    stage.names.update(each.id for each in schedules)
    metafunc.parametrize(FIXTURE, schedules, ids=[each.id for each in schedules], indirect=True)


def _cuts(marker: pytest.Mark) -> Cuts:
    try:
        return cuts_of(*marker.args, **marker.kwargs)
    except TypeError as error:  # of the call: it has another argument, or too many
        said = str(error).removeprefix("cuts_of() ")
        raise MarkerError(f"{said}; there are scenario, positions, faults, on") from None


def case_of(request: pytest.FixtureRequest) -> Iterator[ChaosCase]:
    """Yield the case of one test; without the marker, one without a fault."""
    stage = stage_of(request.config)
    schedule = getattr(request, "param", None) or Schedule(id="no-fault", seed=stage.options.seed, scenario="hello")
    case = ChaosCase(stage, schedule, request.node.nodeid)
    request.node.user_properties.append(("reattach_seed", stage.options.seed))
    failed = request.session.testsfailed
    case.open()
    try:
        yield case
    finally:
        case.close()
    if case.checked:
        return
    if request.session.testsfailed > failed:
        request.node.add_report_section("teardown", "reattach", f"history: {case.save()}")
    else:
        pytest.fail("nothing was judged: reattach_chaos.check(shown) was not called", pytrace=False)


def stage_of(config: pytest.Config) -> Stage:
    """Return the stage of this process; it is made when it is asked for first, and ends with pytest."""
    if _STAGE not in config.stash:
        config.stash[_STAGE] = Stage(options_of(config))
        config.add_cleanup(config.stash[_STAGE].close)
    return config.stash[_STAGE]
