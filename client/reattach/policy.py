"""The frozen Policy: every number that decides how patient and how polite a client is, with its reason.

Times are seconds, sizes bytes. Nothing else in the package holds such a number that a user might want to change.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How patient and how polite; the defaults fit a person's laptop against a public vendor.

    Args:
        give_up_after: Seconds without an attach and without a status answer until ReconnectExhausted; None is never.
            600: vendors keep a run's log for 120 to 600 s (one pages it out after 300).
        retry_floor: Least wait before any retry but the first after a connection that delivered something.
        retry_base: The first jittered wait is drawn from [retry_floor, retry_base], each further window is twice as wide.
        retry_ceiling: Widest window. A server's Retry-After is obeyed above it.
        connect_timeout: From the start of an attempt to its response's head.
        idle_timeout: Silence after which an open connection is lost, until the server's heartbeat is known; then three
            heartbeats. Common proxies cut at 60 (nginx) and 55 s (one PaaS router), so 45.
        poll_interval: Between two status reads of the safety net.
        stall_notice: Attached or answered, but no event for so long: a notice, nothing else.
        max_event_bytes: An event above it is RemoteProtocolError at once; the cursor does not move.
        max_buffered_events: Newest events kept in memory for a slow handler; older ones are read from the journal.
    """

    give_up_after: float | None = 600.0
    retry_floor: float = 0.25
    retry_base: float = 1.0
    retry_ceiling: float = 30.0
    connect_timeout: float = 10.0
    idle_timeout: float = 45.0
    poll_interval: float = 30.0
    stall_notice: float = 300.0
    max_event_bytes: int = 16_777_216
    max_buffered_events: int = 1_000

    def __post_init__(self) -> None:
        """Refuse what would make a hot loop or a client that hangs.

        Raises:
            ValueError: A number is not positive, or floor, base and ceiling are not in order.
        """
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None and each.name == "give_up_after":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0 or value == float("inf"):
                raise ValueError(f"Policy.{each.name}={value!r}: a positive, finite number is needed.")
        if not self.retry_floor <= self.retry_base <= self.retry_ceiling:
            raise ValueError(
                f"Policy: retry_floor={self.retry_floor}, retry_base={self.retry_base}, retry_ceiling={self.retry_ceiling}: "
                "they must not decrease in this order."
            )
