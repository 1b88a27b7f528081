"""A whole session, client and server over real sockets: completed, paused and continued, cancelled, failed; with restarts."""

import pytest

import reattach
from reattach import Status, errors
from reattach_mockserver.library import Library
from reattach_mockserver.live import LiveServer
from reattach_mockserver.logs.sqlite import SqliteLog
from reattach_mockserver.scenarios.script import Action, Ask, End, Problem, Say, Script, Tool, Wait
from reattach_mockserver.settings import Settings

ASKS = Script(
    name="asks",
    clock="virtual",
    steps=(
        Say(text="May I? "),
        Ask(
            actions=(
                Action(id="a", tool="refund", arguments={"cents": 9}, thread="billing"),
                Action(id="c", tool="clock", kind="client_tool"),
            ),
            approved=(
                Tool(tool="refund", arguments={"cents": 9}, reversible=False, external=True, result={"ok": True}),
            ),
            rejected=(End(status="cancelled"),),
        ),
        End(result="refunded"),
    ),
)
WORKS = Script(
    name="works",
    steps=(
        Tool(tool="mail", operation_id="op_mail", reversible=False, external=True, result={"sent": True}),
        Tool(tool="copy", operation_id="op_copy", takes_ms=3_600_000),
    ),
)
FAILS = Script(name="fails", clock="virtual", steps=(End(status="failed", problem=Problem(code="down", message="no")),))
OPEN = Script(name="open", clock="virtual", steps=(Say(text="hello"), Wait(ms=1)))
SCRIPTS = {script.name: script for script in (ASKS, WORKS, FAILS, OPEN)}


@pytest.fixture
def server(tmp_path):
    settings = Settings(scripts=Library(), default="hello", log=SqliteLog(tmp_path / "log.db"))
    with LiveServer(settings, scripts=SCRIPTS) as running:
        yield running


def test_a_session_of_runs_is_what_the_server_says_after_every_restart(server, tmp_path):
    """Pause, answers and their continuation, by two clients and over restarts; the turn after a cancel sees it."""
    with (
        reattach.Client(server.url, tmp_path / "one.db") as client,
        reattach.Client(server.url, tmp_path / "two.db") as other,
    ):
        first = client.start({"scenario": "asks"}, key="1", session_id="s")
        outcome = first.wait(timeout=20)
        approval, tool = outcome.required_actions
        assert (approval.kind, approval.thread, tool.kind) == ("approval", "billing", "client_tool")
        assert client.operation(approval.operation_id).status == "pending"
        server.restart()
        answers = (approval.approve(), tool.answer("12:00"))
        second = first.respond(*answers)
        assert second.wait(timeout=20).result == "refunded"
        server.restart()
        assert first.respond(*answers).id == second.id

        late = other.attach(first.id)
        late.wait(timeout=20)
        with pytest.raises(errors.ActionResolved) as refused:
            late.respond(approval.reject("too dear"), tool.answer("12:00"))
        assert second.id in str(refused.value)
        done = other.operation(approval.operation_id)
        assert (done.status, done.run_id, done.reversible, done.result) == ("committed", second.id, False, {"ok": True})

        third = client.start({"scenario": "works"}, key="3", session_id="s")
        while next(third).type != "tool.result":
            pass
        assert next(third).data["operation_id"] == "op_copy"
        with pytest.raises(errors.SessionBusy):
            other.start({"scenario": "open"}, key="busy", session_id="s")
        gone = third.cancel(timeout=20)
        assert gone.status is Status.CANCELLED
        assert {each.id: (each.status, each.external) for each in gone.operations} == {
            "op_mail": ("committed", True), "op_copy": ("unknown", False),
        }  # fmt: skip
        fourth = client.start({"scenario": "fails"}, key="4", session_id="s")
        assert fourth.wait(timeout=20).problem.code == "down"
        server.restart()
        runs = other.session_runs("s")
        assert [run.id for run in runs] == [first.id, second.id, third.id, fourth.id]
        assert [run.status() for run in runs] == [
            Status.REQUIRES_ACTION, Status.COMPLETED, Status.CANCELLED, Status.FAILED,
        ]  # fmt: skip
    assert (server.counts.runs, server.counts.effects) == (4, 2)
