"""The fold: committed events become the view."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reattach.core import fold as f
from reattach.core.fold import Change, Fold
from reattach.model import Event, Gap, Message, RequiredAction, Status, ToolCall

ACTION = RequiredAction(id="a", kind="approval", tool="pay")
OTHER = RequiredAction(id="b", kind="client_tool")


def event(position: int, text: str = "", *, cursor: str | None = "e1.1", gap: Gap | None = None) -> Event:
    return Event(
        id=f"x{position}",
        run_id="r",
        type="t",
        data={},
        kind="other",
        text=text,
        cursor=cursor,
        gap=gap,
        position=position,
    )


def folded(*changes: Change) -> Fold:
    fold = Fold("r")
    for position, change in enumerate(changes, 1):
        fold.add(event(position), (change,))
    return fold


def test_an_empty_journal_is_an_empty_view() -> None:
    view = Fold("r").view()
    assert (view.run_id, view.text, view.messages, view.status) == ("r", "", (), Status.UNKNOWN)


@given(st.lists(st.text(max_size=3)))
def test_deltas_merge_into_their_message(parts: list[str]) -> None:
    """Whole or looked at in between: the same text."""
    fold = Fold("r")
    for position, part in enumerate(parts, 1):
        fold.add(event(position, part), (f.MessageGrew("m", part),))
        assert fold.view().messages[0].text == "".join(parts[:position])
    assert fold.view().text == "".join(parts)


def test_a_whole_message_wins_over_its_deltas() -> None:
    """Absolute over increment; a late delta of it is old."""
    fold = folded(f.MessageGrew("m", "he"), f.MessageDone("m", "assistant", "hello"), f.MessageGrew("m", "lo"))
    assert fold.view().messages == (Message(id="m", role="assistant", text="hello", complete=True),)


def test_a_tool_call_keeps_what_it_was_called_with() -> None:
    """The result completes it."""
    fold = folded(f.ToolCalled("c", "pay", {"sum": 1}, "op"), f.ToolAnswered("c", "done"))
    (call,) = fold.view().tools
    assert call == ToolCall(id="c", name="pay", arguments={"sum": 1}, operation_id="op", result="done", complete=True)


def test_a_result_whose_call_was_never_seen_is_shown() -> None:
    """After a gap."""
    (call,) = folded(f.ToolAnswered("c", 7)).view().tools
    assert (call.name, call.result, call.complete) == ("", 7, True)


def test_actions_come_and_go_by_id() -> None:
    """One by one, or all at once; an unknown one that is done changes nothing."""
    assert folded(f.ActionNeeded(ACTION), f.ActionNeeded(OTHER), f.ActionDone("a")).view().required_actions == (OTHER,)
    assert folded(f.ActionNeeded(ACTION), f.ActionsPending((OTHER,))).view().required_actions == (OTHER,)
    assert folded(f.ActionDone("never")).view().required_actions == ()


def test_a_snapshot_replaces_everything_but_the_gaps() -> None:
    """And the text begins again after it."""
    gap = Gap(run_id="r", reason="expired", missing=3)
    message = Message(id="s", role="assistant", text="state", complete=True)
    call = ToolCall(id="c", name="pay", arguments=None)
    fold = folded(f.MessageGrew("m", "old"), f.Became(Status.QUEUED))
    fold.add(
        event(3, cursor="e1.9", gap=gap),
        (f.Replaced(Status.RUNNING, (message,), (call,), (ACTION,)),),
    )
    view = fold.view()
    assert (view.status, view.messages, view.tools, view.required_actions) == (
        Status.RUNNING,
        (message,),
        (call,),
        (ACTION,),
    )
    assert (view.gaps, view.cursor, fold.position, view.text) == ((gap,), "e1.9", 3, "")


def test_an_event_without_a_cursor_keeps_the_last_one() -> None:
    fold = folded(f.Became(Status.RUNNING))
    fold.add(event(2, cursor=None), ())
    assert (fold.view().cursor, fold.view().status) == ("e1.1", Status.RUNNING)
