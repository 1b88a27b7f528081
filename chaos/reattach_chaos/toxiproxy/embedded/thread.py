"""The embedded server for a program that is not asynchronous, or whose loop is busy: in a thread of its own."""

import asyncio
import socket
import threading

from reattach_chaos.toxiproxy.embedded.server import Server

_START_S = 30.0


class ServerThread:
    """Runs a server on a free loopback port until it is closed. One thread, whatever the number of proxies.

    Args:
        seed: Of toxicity, jitter and sizes.
    """

    def __init__(self, *, seed: int | None = None) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._seed = seed
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reattach embedded toxiproxy", daemon=True)
        self._thread.start()
        if not self._ready.wait(_START_S):
            raise RuntimeError("the embedded proxy did not start")

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End it, with its proxies and their connections; at once, twice is fine."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_START_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with Server(self._listener, seed=self._seed):
            self._ready.set()
            await self._stop.wait()
