"""`reattach proxy`: the embedded server on its own, with a configuration file like the original's.

The file is a JSON array of `{"name", "listen", "upstream", "enabled"}`. Flags, first line and exit codes: the surface page,
section 2.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import signal
import socket
import sys
from pathlib import Path

from reattach_chaos.toxiproxy.embedded import address, bodies
from reattach_chaos.toxiproxy.embedded.errors import ApiError
from reattach_chaos.toxiproxy.embedded.proxy import Proxy
from reattach_chaos.toxiproxy.embedded.server import Server

_USAGE, _NOT_KNOWN = 64, 3
_INTERRUPTED, _TERMINATED = 130, 143


def run(listen: str, config: Path | None, *, as_json: bool, quiet: bool) -> int:
    """Serve until a signal comes; return the exit code.

    Args:
        listen: Where the API is.
        config: The proxies to begin with.
        as_json: Whether the first line is JSON.
        quiet: Whether the proxies of the file are not named on stderr.
    """
    try:
        entries = bodies.proxies(json.loads(config.read_text(encoding="utf-8"))) if config is not None else []
    except OSError as error:
        return _declined(f"--config {config}: cannot be read ({error.strerror or error})")
    except (ValueError, RecursionError) as error:
        return _declined(f"--config {config}: is no JSON ({error})")
    except ApiError as error:
        return _declined(f"--config {config}: {error.text.removeprefix('bad request body: ')}")
    try:
        host, port = address.split(listen)
    except ValueError as error:
        return _declined(f"--listen {listen}: {error}")
    try:
        found = socket.getaddrinfo(host or "127.0.0.1", port, type=socket.SOCK_STREAM)[0]
        listener = address.listener(str(found[4][0]), port, found[0])
    except OSError as error:
        return _declined(f"--listen {listen}: {error.strerror or error}", _NOT_KNOWN)
    return asyncio.run(_serve(listener, entries, as_json=as_json, quiet=quiet))


async def _serve(listener: socket.socket, entries: list[bodies.ProxySettings], *, as_json: bool, quiet: bool) -> int:
    code = 0
    stop = asyncio.Event()

    def end(exit_code: int) -> None:
        nonlocal code
        code = exit_code
        stop.set()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, end, _INTERRUPTED)
    loop.add_signal_handler(signal.SIGTERM, end, _TERMINATED)
    async with Server(listener) as server:
        done: list[Proxy] = []
        try:
            await server.proxies.populate(entries, done)
        except ApiError as error:
            return _declined(f"--config: {error.text}", _NOT_KNOWN)
        url = f"http://{address.join(*listener.getsockname()[:2])}"
        if as_json:
            print(json.dumps({"kind": "serving", "url": url, "pid": os.getpid()}), flush=True)
        else:
            print(f"reattach proxy on {url}", flush=True)
        if not ipaddress.ip_address(listener.getsockname()[0]).is_loopback:
            print("reattach proxy: whoever reaches this address can open ports on this machine", file=sys.stderr)
        if not quiet:
            for proxy in done:
                state = "" if proxy.enabled else " (disabled)"
                print(f"  {proxy.name}: {proxy.listen} -> {proxy.upstream}{state}", file=sys.stderr, flush=True)
        await stop.wait()
    return code


def _declined(text: str, code: int = _USAGE) -> int:
    print(f"reattach proxy: {text}", file=sys.stderr)
    return code
