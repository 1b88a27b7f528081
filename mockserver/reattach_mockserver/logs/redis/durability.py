"""What a Redis's settings make of an answer: how much of a disaster it survives. Asked when the log is opened.

`power`: every answer comes after an fsync, and nothing promotes a copy that may lack it. `process`: written to the append-only
file, so every death of ours is survived, but not each of Redis's own or of its machine. `memory`: nothing outlives Redis.

Where the words come from: PROTOCOL, section 7. Checked by tests/mockserver/test_redis_log.py.
"""

import logging

from reattach_mockserver.logs.base import Durability, LogUnavailable
from reattach_mockserver.logs.redis.link import Way

_logger = logging.getLogger(__name__)


async def durability_of(way: Way) -> Durability:
    """Find out what the Redis there makes durable, and say aloud what is missing."""
    settings = await _settings(way)
    if settings.get("appendonly") != "yes":
        _logger.warning("the log is lost with Redis's process: set 'appendonly yes'")
        return "memory"
    if settings.get("maxmemory") != "0" and settings.get("maxmemory-policy") != "noeviction":
        _logger.warning("Redis may evict what the log needs: set 'maxmemory-policy noeviction'")
        return "memory"
    if settings.get("appendfsync") != "always":
        _logger.warning("the last moments may be lost with Redis or its machine: set 'appendfsync always'")
        return "process"
    if not await _stands_alone(way):
        _logger.warning("a failover may lose the last moments: use a Redis without replicas, sentinels or a cluster")
        return "process"
    return "power"


async def _settings(way: Way) -> dict[str, str]:
    told: list[bytes] = []
    try:
        for pattern in ("append*", "maxmemory*"):
            told += await way.command("CONFIG", "GET", pattern)
    except LogUnavailable:
        _logger.warning("Redis does not tell its settings (CONFIG GET), so nothing is promised")
        return {}
    texts = [each.decode() for each in told]
    return dict(zip(texts[::2], texts[1::2], strict=True))


async def _stands_alone(way: Way) -> bool:
    """Tell whether no other Redis could take this one's place without all that it answered."""
    replication = await way.command("INFO", "replication")
    server = await way.command("INFO", "server")
    _, sentinels = await way.command("PUBSUB", "NUMSUB", "__sentinel__:hello")
    return (
        replication["role"] == "master"
        and replication["connected_slaves"] == 0
        and server["redis_mode"] == "standalone"
        and int(sentinels) == 0
    )
