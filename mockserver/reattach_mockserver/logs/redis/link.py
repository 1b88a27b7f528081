"""The way to Redis: connections, and the certainty that behind them is still the Redis that we knew.

A connection does not survive the process that it leads to. So each new one of a `Link` first asks which process it has reached; if
that is not the one that was examined last, nothing is done over it: what the log knows of the old one is examined first
(`examine`), and whoever was about to ask is told to begin anew (`Moved`). No command is repeated here on its own.

Failures become `LogUnavailable`, in words that hold no password. Checked by tests/mockserver/test_redis_log.py.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

from reattach_mockserver.logs.base import LogUnavailable
from reattach_mockserver.logs.redis.scripts import Script

T = TypeVar("T")

Word: TypeAlias = str | bytes

_CONNECTIONS = 32
_PATIENCE = 5.0  # seconds for an answer; Redis takes milliseconds, and an fsync longer than this is a failure

_MOVES = 5  # times that Redis may be restarted under one call


class Moved(LogUnavailable):
    """Redis has been restarted or replaced; what was asked for was not done, and what is known now was examined."""


class _Unknown(RedisError):
    """A process was reached that was not examined."""


def plain_name(url: str) -> str:
    """Return an address without user, password and options."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


class Way:
    """Connections to one address.

    Args:
        url: `redis://`, `rediss://` or `unix://`.
        process: The only process that may be reached; None: the first that is. Known afterwards.
    """

    def __init__(self, url: str, process: str | None = None) -> None:
        self._url = url
        self.process = process
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=_PATIENCE,
            redis_connect_func=self._greet,
            **_settings(),
        )
        self._client = Redis(connection_pool=pool)
        # Whoever comes first is served first. The pool's own queue lets newcomers by, and one that waits may wait for ever.
        self._turn = asyncio.Semaphore(_CONNECTIONS)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.connection_pool.disconnect()

    async def script(self, script: Script, *words: Word | int) -> Any:
        """Run a script.

        Raises:
            Moved: Another process was reached than was known; the script did not run.
            LogUnavailable: It may or may not have run.
        """
        try:
            return await self._ask("EVALSHA", script.sha, 0, *words)
        except NoScriptError:
            return await self._ask("EVAL", script.text, 0, *words)

    async def command(self, *words: Word | int) -> Any:
        """Run one command. Raises as `script` does."""
        return await self._ask(*words)

    async def _ask(self, *words: Word | int) -> Any:
        try:
            async with self._turn:
                return await heedful(self._client.execute_command(*words))  # type: ignore[no-untyped-call]  # redis-py's is not typed
        except NoScriptError:
            raise
        except _Unknown:
            await self._reached_unknown()
            raise Moved("Redis was restarted") from None
        except (RedisError, OSError) as error:
            raise LogUnavailable(f"Redis cannot be asked ({error})") from error

    async def _reached_unknown(self) -> None:
        """Nothing can be done about it here."""

    async def _greet(self, connection: AbstractConnection) -> None:
        await connection.on_connect()
        await connection.send_command("INFO", "server")
        told = await connection.read_response()
        facts = dict(line.partition(b":")[::2] for line in told.splitlines())
        process = facts[b"run_id"].decode()
        if self.process is None:
            self.process = process
        if self.process != process:
            raise _Unknown


class Link(Way):
    """Connections to the Redis that was examined last.

    Args:
        url: See `Way`.
        examine: Awaited with a way to a new process, before anything else is done there.
    """

    def __init__(self, url: str, examine: Callable[[Way], Awaitable[None]]) -> None:
        super().__init__(url, process="")
        self._examine = examine
        self._examining = asyncio.Lock()
        self._examined = 0

    def own_connection(self) -> AbstractConnection:
        """Return a connection of one's own, not yet connected; it does not ask what it has reached."""
        pool = BlockingConnectionPool.from_url(self._url, **_settings())
        connection: AbstractConnection = pool.make_connection()  # type: ignore[no-untyped-call]  # redis-py's is not typed
        return connection

    async def _reached_unknown(self) -> None:
        before = self._examined
        async with self._examining:
            if self._examined != before:
                return  # somebody else has seen to it
            way = Way(self._url)
            try:
                await way.command("PING")
                await self._examine(way)
            finally:
                await way.close()
            self.process = way.process
            self._examined += 1


async def heedful(asking: Awaitable[T]) -> T:
    """Await something of redis-py's, and be cancelled by what it swallows: its `asyncio.wait_for` does, before Python 3.12."""
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    try:
        return await asking
    finally:
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError


async def again(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask once more when Redis was restarted: what had been shown was looked for in between."""
    for _ in range(_MOVES):
        try:
            return await ask()
        except Moved:
            continue
    return await ask()


def _settings() -> dict[str, Any]:
    return {
        "socket_timeout": _PATIENCE,
        "socket_connect_timeout": _PATIENCE,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
    }
