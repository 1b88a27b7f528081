"""The agent loop: a work whose session is its log.

It asks one question again and again: what does the log want next? Calls without a result: do them. Something a person is to
answer: pause. Nothing said by the user yet: say it. The model's turn without a call: the run is done. Else: ask the model.
Each answer is published before it is acted on and comes back through the fold, so a process that takes the run over asks
the same question of the same log. Nothing behind the frontier is done again.

    Settings(scripts={"agent": AgentWork(model=my_model, tools=[charge])}, default="agent")

Never here: how a model is asked (`asking.py`), how a call is done (`calling.py`). Checked by tests/mockserver/agent and, killed
at every step, by tests/system/test_agent_killed.py.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reattach_mockserver.agent.asking import Asking, call_note, kind_of
from reattach_mockserver.agent.calling import Calling
from reattach_mockserver.agent.conversation import CallState, Conversation
from reattach_mockserver.agent.flow import CALL
from reattach_mockserver.agent.model import Called, Model, ToolCall
from reattach_mockserver.agent.plan import json_of
from reattach_mockserver.agent.tool import Tool
from reattach_mockserver.engine.work import Completed, Desk, Failed, Outcome, Paused, RunCancelled
from reattach_mockserver.event import json_text


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWork:
    """An agent, as the work of a run. One value plays any number of runs, side by side.

    The user's turn is the run's `input`: a text, its member `text`, or its JSON. A session's earlier runs are what the model
    knows of. The result is `{"text": …}`, the model's last words.

    Attributes:
        model: What is asked. See `model.py`.
        tools: What it may call. See `tool.py`.
        release: The agent's version; what another one asked approval for is stale.
        model_attempts: How often one turn is asked for before the run fails (`model_failed`).
        retry_seconds: The pause before the second attempt, doubled before each after it.
        max_turns: How many turns one run may have (`too_many_turns`).
        parallel: How many calls of a turn are under way at once.
    """

    model: Model
    tools: Sequence[Tool] = ()
    release: str | None = None
    model_attempts: int = 3
    retry_seconds: float = 0.5
    max_turns: int = 64
    parallel: int = 8

    async def __call__(self, desk: Desk) -> Outcome:
        """Go on with the run of this desk. See `engine/work.py`."""
        return await self.steps(desk).run()

    def steps(self, desk: Desk) -> "AgentSteps":
        """Return the loop of this desk's run, for who does its steps one by one. See `flow.py`."""
        return AgentSteps(self, desk)

    def asks(self, action: Mapping[str, Any]) -> bool:
        """Tell whether a required action would still be done as it was asked for. See `engine/work.py`."""
        return any(
            tool.name == action["tool"] and kind_of(tool, Called(tool.name, action["arguments"])) == action["kind"]
            for tool in self.tools
        )


class AgentSteps:
    """One run, from where its log ends to its outcome."""

    def __init__(self, agent: AgentWork, desk: Desk) -> None:
        self._agent = agent
        self._desk = desk
        self._talk = Conversation()
        self._reading = asyncio.Lock()
        self._was_read = False
        self._asking = Asking(
            desk, self._talk, agent.model, agent.tools, attempts=agent.model_attempts, pause=agent.retry_seconds
        )
        self._calling = Calling(desk, self._talk, agent.tools, parallel=agent.parallel)

    async def run(self) -> Outcome:
        """Take all steps."""
        while True:
            plan = await self.advance()
            if not isinstance(plan, list):
                return plan
            await self._calling.do_all(plan)

    async def step(self, name: str) -> Any:
        """Take one, by the name that `flow.py` has for it; return its plan as JSON."""
        if name.startswith(CALL):
            await self.call(name.removeprefix(CALL))
            return None
        plan = await self.advance()
        if isinstance(plan, list):
            return {"calls": [call.call_id for call in plan]}
        return {"outcome": json_of(plan)}

    async def advance(self) -> list[ToolCall] | Outcome:
        """Go on until there are calls to be done, or to the run's outcome. What the log holds is not done again."""
        talk, desk = self._talk, self._desk
        if lost := await self._read():
            return lost
        await self._asking.close_half()
        while True:
            if desk.cancelled.is_set():
                raise RunCancelled
            ready, waiting = await self._open_calls()
            if ready:
                return ready
            if waiting:
                return Paused(waiting)
            if not talk.user_spoke and desk.input is not None:
                await self._say()
            if (text := talk.last_words()) is not None:
                return Completed({"text": text})
            if talk.model_turns >= self._agent.max_turns:
                return Failed("too_many_turns", f"the model made {talk.model_turns} turns without an end")
            failed = await self._asking.ask()
            if failed is not None:
                return failed

    async def call(self, call_id: str) -> None:
        """Do one of the calls that `advance` returned, unless the log has its result."""
        await self._read()
        for state in self._talk.open_calls():
            if state.call.call_id == call_id:
                await self._calling.do(state.call)

    async def _read(self) -> Failed | None:
        """Read the session, once; return why that cannot be done."""
        async with self._reading:
            if self._was_read:
                return None
            talk, desk = self._talk, self._desk
            try:
                for run in await desk.earlier():
                    talk.begin(continues=run.continues is not None)
                    async for event in desk.events(run.id):
                        talk.apply(event)
                talk.begin(continues=desk.run.continues is not None)
                async for event in desk.events():
                    talk.apply(event)
            except LookupError as error:
                return Failed("history_lost", f"the session cannot be read to its beginning: {error}")
            self._was_read = True
            return None

    async def _say(self) -> None:
        message_id = f"msg_{self._desk.run.id.removeprefix('run_')}_user"
        data = {"message_id": message_id, "role": "user", "text": _text_of(self._desk.input)}
        self._talk.apply(await self._desk.publish("user", "message.completed", data))

    async def _open_calls(self) -> tuple[list[ToolCall], list[Mapping[str, Any]]]:
        """Return the calls that are to be done, and the actions that are still to be answered."""
        waiting: list[Mapping[str, Any]] = []
        ready: list[ToolCall] = []
        for state in self._talk.open_calls():
            if state.begun or await self._answered(state):
                ready.append(state.call)
            elif state.outcome is None and state.action is not None:
                waiting.append(state.action)
        return ready, waiting

    async def _answered(self, state: CallState) -> bool:
        """Record what a person or the client said of a call; return whether it is now to be done."""
        match self._talk.responses.get(state.call.call_id):
            case {"decision": "approve"}:
                call = state.call
                tool = next((tool for tool in self._agent.tools if tool.name == call.tool), None)
                note = call_note(call.call_id, call.operation_id, call.tool, call.arguments, tool)
                for event in await self._desk.publish_all([note]):
                    self._talk.apply(event)
                return True
            case {"decision": "reject", **more}:
                message = more.get("reason") or "the user did not approve it; it was not done"
                await self._calling.refuse(state.call, {"code": "rejected", "message": message})
            case {"error": error}:
                await self._calling.refuse(state.call, error)
            case {"result": result}:
                await self._calling.take(state.call, result)
            case _:
                pass
        return False


def _text_of(given: Any) -> str:
    """Return what the user said with a run's input."""
    match given:
        case str():
            return given
        case {"text": str(text)}:
            return text
        case dict():
            return json_text({name: value for name, value in given.items() if name != "scenario"})
        case _:
            return json_text(given)
