"""`OwnRedis`: the Redis that two instances of a server share, one for all cases of a run, started when the first needs it.

It keeps nothing on disk, listens on a loopback port of its own, and asks for a password that a file in our private folder has. The
nursery forks it and knows it by its process id: it ends with our connection to that, and with the nursery, whatever becomes of us.
A case has a database of it for itself. Never here: what a server keeps in it.
"""

import asyncio
import importlib.util
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NoReturn

from reattach_chaos.cases.processes.process import BornProcess
from reattach_chaos.cases.servers.control import ServerTrouble
from reattach_chaos.ports import HOST, held

MODULE = "reattach_chaos.cases.servers.own_redis"
PROGRAM = "redis-server"
START_S, END_S = 60.0, 30.0
_READY = "Ready to accept connections"
_DATABASES = 1_000
"""So many cases side by side at most."""
_CONF = """
bind {host}
port {port}
requirepass {password}
databases {databases}
dir "{folder}"
save ""
appendonly no
daemonize no
logfile ""
loglevel notice
"""


def why_none() -> str:
    """Return why no Redis can be had here; "" where one can."""
    if shutil.which(PROGRAM) is None:
        return f"no {PROGRAM} here"
    return "" if importlib.util.find_spec("redis") else "no redis here, run: pip install 'reattach[redis]'"


class OwnRedis:
    """The Redis of a run; nothing is started before `database` is asked for one.

    Args:
        nursery: Where it is born.
        folder: For its settings; private.
    """

    def __init__(self, nursery: Path, folder: Path) -> None:
        self._nursery = nursery
        self._folder = folder / "redis"
        self._busy = asyncio.Lock()
        self._process: BornProcess | None = None
        self._hearing: asyncio.Task[int] | None = None
        self._held = AsyncExitStack()
        self._address = ""
        self._free = list(range(_DATABASES))

    @asynccontextmanager
    async def database(self) -> AsyncIterator[str]:
        """Lend an empty database; yield its address, which holds the password.

        Raises:
            ServerTrouble: There is no Redis, or it does not start.
        """
        address = await self._started()
        number = self._free.pop()
        try:
            yield f"{address}/{number}"
        finally:
            await _empty(f"{address}/{number}")
            self._free.append(number)

    async def end(self) -> None:
        """End it, and wait for that.

        Raises:
            ServerTrouble: It does not end.
        """
        process, self._process = self._process, None
        if process is not None:
            process.signal("kill")
            try:
                await asyncio.wait_for(self._hearing or process.code(), END_S)
            except TimeoutError as error:
                raise ServerTrouble(f"the Redis of the cases did not end within {END_S:g} s") from error
            finally:
                process.close()
        await self._held.aclose()

    async def _started(self) -> str:
        async with self._busy:
            if self._process is None:
                try:
                    self._address = await self._start()
                except (OSError, TimeoutError) as error:
                    raise ServerTrouble(f"the Redis of the cases did not start: {error!r}") from error
            return self._address

    async def _start(self) -> str:
        program = shutil.which(PROGRAM)
        if program is None:
            raise ServerTrouble(why_none())
        port = self._held.enter_context(held()).getsockname()[1]
        password = secrets.token_hex(16)
        conf = _CONF.format(host=HOST, port=port, password=password, databases=_DATABASES, folder=self._folder)
        file = await asyncio.to_thread(self._write, conf)
        process = await BornProcess.bear(self._nursery, MODULE, [program, str(file)], {}, self._folder / "stderr")
        last = ""
        try:
            async with asyncio.timeout(START_S):
                while _READY not in (line := await process.line() or ""):
                    if not line:
                        raise ServerTrouble(f"the Redis of the cases did not start: {last or 'it ended'}")
                    last = line
        except BaseException:
            process.close()
            raise
        self._process = process
        self._hearing = asyncio.create_task(process.code())  # what it says meanwhile has to be read
        return f"redis://:{password}@{HOST}:{port}"

    def _write(self, conf: str) -> Path:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        file = self._folder / "redis.conf"
        file.write_text(conf, encoding="utf-8")
        return file


async def _empty(address: str) -> None:
    """Forget what a case left in its database."""
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

    client = Redis.from_url(address)
    try:
        await client.flushdb()
    except RedisError as error:
        raise ServerTrouble(f"the Redis of the cases cannot be asked: {error}") from error
    finally:
        await client.aclose()


def main(argv: Sequence[str]) -> NoReturn:
    """Become the program with its settings, in a process that the nursery forked; what ends that ends it."""
    os.execv(argv[0], list(argv))
