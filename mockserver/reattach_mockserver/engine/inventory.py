"""What a run has done to the world so far, for whoever cancels it: cancelled does not mean rolled back.

Checked by tests/mockserver/test_cancel.py. Where the rules come from: PROTOCOL, section 5, cancel.
"""

from reattach_mockserver.scenarios.expand import PlannedCall


class Inventory:
    """The operations of one run, each in exactly one list."""

    def __init__(self) -> None:
        self._in_flight: dict[str, PlannedCall] = {}
        self._settled: dict[str, PlannedCall] = {}

    def called(self, operation_id: str, call: PlannedCall) -> None:
        """A tool was called: from here on its effect may happen."""
        self._in_flight[operation_id] = call

    def settled(self, operation_id: str, call: PlannedCall) -> None:
        """Its outcome is in the log."""
        self._in_flight.pop(operation_id, None)
        self._settled[operation_id] = call

    def lists(self) -> dict[str, list[str]]:
        """Return the ids: of known outcome, of unknown outcome, known and not to be undone; and those outside of us."""
        irreversible = [
            operation_id for operation_id, call in self._settled.items() if not call.reversible and call.error is None
        ]
        return {
            "known": [operation_id for operation_id in self._settled if operation_id not in irreversible],
            "unknown": list(self._in_flight),
            "irreversible": irreversible,
            "external": [
                operation_id for operation_id, call in {**self._settled, **self._in_flight}.items() if call.external
            ],
        }
