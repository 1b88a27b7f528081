"""`host:port`, as Toxiproxy writes addresses: `127.0.0.1:0`, `[::1]:80`, `:6379` (all interfaces), `localhost:80`."""

import socket

LOOPBACK = "127.0.0.1:0"


def split(address: str) -> tuple[str, int]:
    """Return host (empty: all interfaces) and port.

    Raises:
        ValueError: It is no address; the text says what is wrong.
    """
    host, colon, port = address.rpartition(":")
    if not colon:
        raise ValueError(f"address {address}: missing port in address")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"address {address}: too many colons in address")
    if not (port.isascii() and port.isdecimal() and int(port) <= 65_535):
        raise ValueError(f"address {address}: unknown port {port!r}")
    return host, int(port)


def join(host: str, port: int) -> str:
    """Return the address as it is shown."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listener(host: str, port: int, family: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        OSError: The address is in use, or is none of ours.
    """
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)
    return socket.create_server(
        (host, port), family=socket.AF_INET6 if family == socket.AF_INET6 else socket.AF_INET, backlog=512
    )
