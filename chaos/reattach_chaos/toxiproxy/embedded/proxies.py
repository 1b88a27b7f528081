"""All proxies of a server, by name: made, moved, removed one request after the other, so that no name or port is taken twice."""

import asyncio
from random import Random

from reattach_chaos.toxiproxy.embedded.bodies import ProxySettings
from reattach_chaos.toxiproxy.embedded.errors import ApiError, proxy_not_found
from reattach_chaos.toxiproxy.embedded.proxy import Proxy


class Proxies:
    """The proxies of one server.

    Args:
        chance: Where toxicity, jitter and sizes come from.
    """

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._by_name: dict[str, Proxy] = {}
        self._turn = asyncio.Lock()  # only listening and closing wait, and both have a time limit

    def all(self) -> dict[str, Proxy]:
        """Return all, by name, sorted."""
        return dict(sorted(self._by_name.items()))

    def find(self, name: str) -> Proxy:
        """Return one.

        Raises:
            ApiError: 404.
        """
        if name not in self._by_name:
            raise proxy_not_found()
        return self._by_name[name]

    async def create(self, settings: ProxySettings) -> Proxy:
        """Make one, and start it unless it is to be disabled.

        Raises:
            ApiError: 409: the name is taken. 500: the address is. Nothing is left then.
        """
        async with self._turn:
            if settings.name in self._by_name:
                raise ApiError(409, "proxy already exists")
            return await self._make(settings)

    async def update(self, name: str, settings: ProxySettings) -> Proxy:
        """Change one; see `Proxy.update`.

        Raises:
            ApiError: 404, 500.
        """
        async with self._turn:
            proxy = self.find(name)
            await proxy.update(settings.listen, settings.upstream, settings.enabled)
            return proxy

    async def delete(self, name: str) -> None:
        """Remove one, with its connections.

        Raises:
            ApiError: 404.
        """
        async with self._turn:
            await self.find(name).stop()
            del self._by_name[name]

    async def populate(self, entries: list[ProxySettings], done: list[Proxy]) -> None:
        """See that these are there. One with the same addresses is left as it is, its toxics and `enabled` included.

        Args:
            entries: What is wanted.
            done: Gets each that is there, also before an error.

        Raises:
            ApiError: 500: an address cannot be listened on; the earlier ones stay changed.
        """
        async with self._turn:
            for settings in entries:
                there = self._by_name.get(settings.name)
                if there is not None and (there.listen, there.upstream) == (settings.listen, settings.upstream):
                    done.append(there)
                    continue
                if there is not None:
                    await there.stop()
                    del self._by_name[settings.name]
                done.append(await self._make(settings))

    async def reset(self) -> None:
        """Enable all, remove every toxic of all.

        Raises:
            ApiError: 500: a port was taken meanwhile.
        """
        async with self._turn:
            for proxy in self.all().values():
                await proxy.start()
                for fitted in proxy.in_order():
                    proxy.remove(fitted)

    async def close(self) -> None:
        """Remove all."""
        async with self._turn:
            for proxy in self._by_name.values():
                await proxy.stop()
            self._by_name.clear()

    async def _make(self, settings: ProxySettings) -> Proxy:
        proxy = Proxy(settings.name, settings.listen, settings.upstream, self._chance)
        if settings.enabled:
            await proxy.start()
        self._by_name[settings.name] = proxy
        return proxy
