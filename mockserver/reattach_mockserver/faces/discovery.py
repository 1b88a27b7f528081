"""`GET /.well-known/reattach`: what this server offers. Each word of it must be true.

Where the rules come from: PROTOCOL, section 7. Checked by tests/mockserver/test_http.py.
"""

from reattach_mockserver.engine.engine import Engine
from reattach_mockserver.faces.call import Call
from reattach_mockserver.faces.checks import check_json

_LIMITS = (
    "heartbeat_ms",
    "stream_age_ms",
    "retention_ms",
    "retention_events",
    "key_retention_ms",
    "event_bytes",
    "body_bytes",
    "streams_per_principal",
    "runs_per_principal",
)


async def read_discovery(engine: Engine, call: Call) -> None:
    """Answer with the discovery document; no token is asked for."""
    check_json(call)
    settings = engine.settings
    limits = engine.limits_for(settings.default)
    levels = ["pollable", "resumable"]
    if engine.log.durability != "memory":
        levels += ["durable", "effect_safe"]
    await call.answer_json(
        {
            "protocol": 1,
            "levels": levels,
            "limits": {name: getattr(limits, name) for name in _LIMITS},
            "deterministic": settings.deterministic,
            "durability": engine.log.durability,
            "endpoints": {
                "runs": call.path("/v1/runs"),
                "sessions": call.path("/v1/sessions"),
                "operations": call.path("/v1/operations"),
                "socket": call.path("/v1/socket"),
            },
        }
    )
