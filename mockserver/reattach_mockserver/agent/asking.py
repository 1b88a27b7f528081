"""Asks the model for one turn, and records it: text while it comes, then the turn as a whole.

Pieces of text are published as they come, since people watch. So a process may die with half a message in the log. What was
shown is never taken back: the half is closed as it stands (`message.completed {…, interrupted: true}`), is no part of what
the model is asked with, and the turn is asked for anew under another message id. (A model cannot be made to say the same
twice, and to splice another text onto the half would put words together that nobody said.)

The turn itself is one append: its text, its calls, and what it asks approval for, all or nothing.

Never here: what becomes of a call (`calling.py`). Checked by tests/mockserver/agent/test_asking.py.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal

from reattach_mockserver.agent.conversation import Conversation
from reattach_mockserver.agent.model import Called, Model, ModelError, Piece
from reattach_mockserver.agent.tool import Tool
from reattach_mockserver.engine.work import Desk, Failed, Note, RunCancelled
from reattach_mockserver.event import Operation, json_text

_logger = logging.getLogger(__name__)


class Asking:
    """One run's questions to its model.

    Args:
        attempts: How often one turn is asked for by this process before the run fails.
        pause: Seconds before the second attempt, doubled before each after it.
    """

    def __init__(
        self, desk: Desk, talk: Conversation, model: Model, tools: Sequence[Tool], *, attempts: int, pause: float
    ) -> None:
        self._desk = desk
        self._talk = talk
        self._model = model
        self._tools = {tool.name: tool for tool in tools}
        self._attempts = attempts
        self._pause = pause

    async def ask(self) -> Failed | None:
        """Record the model's next turn; return why the run has failed, if there is none to be had."""
        message = "it gave no turn"
        for attempt in range(self._attempts):
            if attempt:
                await self._desk.resting(self._pause * 2 ** (attempt - 1))
            await self.close_half()
            try:
                await self._turn()
            except ModelError as error:
                message = str(error)
                _logger.warning("run %s: the model failed", self._desk.run.id, exc_info=True)
                if error.permanent:
                    break
            else:
                return None
        await self.close_half()
        return Failed("model_failed", f"the model failed: {message}")

    async def close_half(self) -> None:
        """Close a message that was begun and will not be gone on with, exactly as it was shown."""
        if self._talk.half is None:
            return
        message_id, text = self._talk.half
        data = {"message_id": message_id, "role": "assistant", "text": text, "interrupted": True}
        self._talk.apply(await self._desk.publish(f"{message_id}.interrupted", "message.completed", data))

    async def _turn(self) -> None:
        talk, number = self._talk, self._talk.model_turns
        message_id = f"msg_{self._tag()}_{number}_{talk.attempts}"
        texts: list[str] = []
        calls: list[Called] = []
        await self._desk.reached(f"ask {message_id}")
        pieces = self._model.turn(talk.turns(), tuple(self._tools.values()))
        try:
            while (piece := await _next(pieces)) is not None:
                if self._desk.cancelled.is_set():
                    raise RunCancelled
                if isinstance(piece, Called):
                    calls.append(piece)
                elif piece.text:
                    data = {"message_id": message_id, "index": len(texts), "text": piece.text}
                    talk.apply(await self._desk.publish(f"{message_id}.{len(texts)}", "message.delta", data))
                    texts.append(piece.text)
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()
        await self._desk.reached(f"said {message_id}")
        notes = self._calls(number, calls)
        if texts or not calls:
            said = {"message_id": message_id, "role": "assistant", "text": "".join(texts)}
            notes.insert(0, Note(step=f"{message_id}.said", type="message.completed", data=said))
        for event in await self._desk.publish_all(notes):
            talk.apply(event)

    def _calls(self, turn: int, calls: Sequence[Called]) -> list[Note]:
        """Say what is done about each call: begin it, or ask for it."""
        notes: list[Note] = []
        equal: Counter[str] = Counter()
        for index, call in enumerate(calls):
            # What the operation is called comes from what it is. Where a log has lost its tail and the turn is asked for again,
            # the same call is the same operation, whose effect may stand, and another call is another one.
            digest = hashlib.sha256(json_text([call.tool, dict(call.arguments)]).encode()).hexdigest()[:12]
            equal[digest] += 1
            place = f"{self._tag()}_{turn}"
            operation_id = f"op_{place}_{digest}" + (f"_{equal[digest]}" if equal[digest] > 1 else "")
            notes.append(self._call(f"call_{place}_{index}", operation_id, call))
        return notes

    def _call(self, call_id: str, operation_id: str, call: Called) -> Note:
        tool = self._tools.get(call.tool)
        kind = None if tool is None else kind_of(tool, call)
        if tool is not None and kind is not None:
            return self._desk.required(
                f"{call_id}.asked",
                kind,
                id=call_id,
                tool=call.tool,
                arguments=call.arguments,
                operation_id=operation_id,
                expires_in_ms=tool.expires_in_ms,
            )
        return call_note(call_id, operation_id, call.tool, call.arguments, tool)

    def _tag(self) -> str:
        return self._desk.run.id.removeprefix("run_")


def kind_of(tool: Tool, call: Called) -> Literal["approval", "client_tool"] | None:
    """Return what a call of this tool is to be asked for, None if it is simply done."""
    if tool.run is None:
        return "client_tool"
    try:
        return "approval" if tool.needs_approval(call.arguments) else None
    except Exception:
        # Made for other arguments than a model thought of: a person sees them before anything is done with them.
        _logger.warning("whether %s needs approval cannot be told", tool.name, exc_info=True)
        return "approval"


def call_note(call_id: str, operation_id: str, name: str, arguments: Mapping[str, Any], tool: Tool | None) -> Note:
    """Make the `tool.call` of a call."""
    told = Operation(
        id=operation_id,
        tool=name,
        reversible=None if tool is None else tool.is_reversible,
        external=tool is not None and tool.external,
    )
    data = {"call_id": call_id, "operation_id": operation_id, "tool": name, "arguments": dict(arguments)}
    return Note(step=f"{call_id}.call", type="tool.call", data=data, operation=told)


async def _next(pieces: AsyncIterator[Piece]) -> Piece | None:
    """Return the model's next piece, None at the turn's end; what it raises is the model's, never the log's."""
    try:
        piece = await anext(pieces, None)
        if isinstance(piece, Called):
            json_text(dict(piece.arguments))  # refused here, where asking again may help
        return piece
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(type(error).__name__) from error
