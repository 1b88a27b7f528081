"""One connection that hears what other replicas have changed. A loss of it is noticed, and then everything is read again.

Nothing here is a source of truth: a message only says that there may be more to read. So a lost one must be noticed, not repeated:
the connection is asked for a sign of life whenever it is quiet, and a new one reports that anything may have been missed.
"""

import asyncio
from collections.abc import Awaitable, Callable

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from reattach_mockserver.logs.base import Listener, LogUnavailable
from reattach_mockserver.logs.redis.keys import WAKES
from reattach_mockserver.logs.redis.link import Link, heedful

_QUIET = 2.0  # seconds without a message before a sign of life is asked for, and then until it must have come
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0


class Subscription:
    """The ear of one replica.

    Args:
        link: The way to Redis.
        replica: Our own name, `<database>.<chance>`: what we said ourselves is no news.
        listener: Told what was heard.
        lost: Awaited when a new connection stands: what was missed may be anything.
    """

    def __init__(self, link: Link, replica: str, listener: Listener, lost: Callable[[], Awaitable[None]]) -> None:
        self._link = link
        self._replica = replica
        self._listener = listener
        self._lost = lost
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin to hear; what happens from now on is heard.

        Raises:
            LogUnavailable: Redis cannot be reached.
        """
        connection = self._link.own_connection()
        try:
            await self._subscribe(connection)
        except (RedisError, OSError) as error:
            await connection.disconnect()
            raise LogUnavailable(f"Redis cannot be reached ({error})") from error
        self._task = asyncio.create_task(self._run(connection), name="reattach redis subscription")

    async def close(self) -> None:
        """Hear no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self, connection: AbstractConnection) -> None:
        pause, whole = _FIRST_PAUSE, True
        try:
            while True:
                try:
                    if not whole:
                        await self._subscribe(connection)
                        await self._lost()
                        whole, pause = True, _FIRST_PAUSE
                    await self._hear(connection)
                except (RedisError, OSError, TimeoutError, LogUnavailable):
                    whole = False
                    await connection.disconnect()
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)
        finally:
            await connection.disconnect()

    async def _subscribe(self, connection: AbstractConnection) -> None:
        await heedful(connection.connect())  # type: ignore[no-untyped-call]  # redis-py's is not typed
        await heedful(connection.send_command("SUBSCRIBE", WAKES))
        await connection.read_response()

    async def _hear(self, connection: AbstractConnection) -> None:
        message = await connection.read_response(timeout=_QUIET)
        if message is None:
            await heedful(connection.send_command("PING"))
            message = await connection.read_response(timeout=_QUIET)
            if message is None:
                raise TimeoutError
        if message[0] == b"message":
            self._tell(message[2].decode(errors="replace"))

    def _tell(self, text: str) -> None:
        replica, _, news = text.partition(" ")
        # A channel is one for all databases of a Redis; those of another have another log.
        if replica == self._replica or replica.partition(".")[0] != self._replica.partition(".")[0]:
            return
        match news.split(" ", 1):
            case ["run", run_id]:
                self._listener.changed(run_id)
            case ["orphans"]:
                self._listener.orphaned()
            case ["revoked", token]:
                self._listener.revoked(token)
            case _:
                self._listener.missed()  # from a newer version of this code: whatever it means
