"""A server that lists the first of several pending actions."""

from starlette.types import Scope

from reattach_mockserver.mutants.answer import Answer
from reattach_mockserver.mutants.wrong import WrongServer, is_status


class ListsOneAction(WrongServer):
    """See the module."""

    id = "lists-one-action"
    words = "lists the first of several pending actions"
    breaks = ("RS-55",)
    unseen = (
        "a session waits for one thing at a time, and where it waits for more the control reader cannot answer either"
    )

    async def answered(self, scope: Scope, answer: Answer) -> Answer:
        """List one."""
        if is_status(scope) and answer.status == 200 and answer.json["required_actions"]:
            return answer.saying(required_actions=answer.json["required_actions"][:1])
        return answer
