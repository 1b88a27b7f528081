"""Unix sockets under long paths: a person's TMPDIR may be deep, and a nursery must still be reached."""

import asyncio
import os
import socket

from reattach_chaos.socket_path import short


def test_a_socket_in_a_deep_folder_is_bound_and_reached(tmp_path):
    """By both; the plain path is refused by the system."""
    deep = tmp_path.joinpath(*["a folder with a rather long name"] * 4)
    deep.mkdir(parents=True)
    path = deep / "nursery"
    assert len(os.fsencode(path)) > 107
    before = len(os.listdir("/proc/self/fd"))

    async def reach():
        with short(path) as address:
            reader, writer = await asyncio.open_unix_connection(address)
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"here")
        told = await reader.read()
        writer.close()
        await writer.wait_closed()
        return told

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        with short(path) as address:
            listener.bind(address)
        listener.listen()
        assert path.is_socket()
        assert asyncio.run(reach()) == b"here"
    assert len(os.listdir("/proc/self/fd")) == before
