"""HTTP/1.1 for the API: one conversation a connection, kept alive; parsed by h11, which comes with httpx.

Small on purpose: a body is read whole and is at most 1 MiB; a request that has begun must arrive within 15 s, as with Toxiproxy.
"""

import asyncio
import contextlib

import h11

from reattach_chaos.toxiproxy.embedded.api import Api, Reply

_READ_S = 15.0
_IDLE_S = 120.0
_BODY_BYTES = 1024 * 1024


class _Ended(Exception):
    """The client has left, or is no HTTP client."""


class Conversation:
    """Answers the requests of one connection, one after the other.

    Args:
        api: What answers.
        reader: The socket.
        writer: The same socket.
    """

    def __init__(self, api: Api, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._api = api
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)

    async def run(self) -> None:
        """Answer until the client leaves."""
        try:
            with contextlib.suppress(_Ended, OSError):
                while await self._one():
                    self._http.start_next_cycle()
        except h11.RemoteProtocolError as error:
            with contextlib.suppress(h11.LocalProtocolError, OSError):
                await self._send(
                    Reply(error.error_status_hint, "text/plain; charset=utf-8", b"400 Bad Request\n"), True
                )
        finally:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    async def _one(self) -> bool:
        """Answer one request; return whether another may follow."""
        async with asyncio.timeout(_IDLE_S):
            event = await self._next()
        if not isinstance(event, h11.Request):
            return False
        body = bytearray()
        async with asyncio.timeout(_READ_S):
            while not isinstance(part := await self._next(), h11.EndOfMessage):
                if isinstance(part, h11.Data):
                    body += part.data
                    if len(body) > _BODY_BYTES:
                        await self._send(Reply(413, "text/plain; charset=utf-8", b"too large\n"), close=True)
                        return False
                elif isinstance(part, h11.ConnectionClosed):
                    return False
        reply = await self._api.answer(
            event.method.decode("ascii"),
            event.target.decode("ascii", "replace"),
            bytes(body),
            from_a_page=any(name == b"origin" for name, _ in event.headers),
        )
        await self._send(reply)
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    async def _next(self) -> h11.Event:
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    await self._write(h11.InformationalResponse(status_code=100, headers=[]))
                self._http.receive_data(await self._reader.read(64 * 1024))
            elif isinstance(event, h11.Event):
                return event
            else:
                raise _Ended  # PAUSED: a second request before our answer is left to the next cycle, an upgrade is not offered

    async def _send(self, reply: Reply, close: bool = False) -> None:
        headers = [("Content-Type", reply.media)] if reply.media else []
        if reply.status != 204:
            headers.append(("Content-Length", str(len(reply.body))))
        if close:
            headers.append(("Connection", "close"))
        await self._write(h11.Response(status_code=reply.status, headers=headers))
        if reply.body:
            await self._write(h11.Data(data=reply.body))
        await self._write(h11.EndOfMessage())

    async def _write(self, event: h11.Event) -> None:
        if (data := self._http.send(event)) is not None:
            self._writer.write(data)
            await self._writer.drain()
