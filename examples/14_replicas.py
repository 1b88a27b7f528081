"""Three replicas on one Redis behind nginx: kill them one after the other while a client follows, and the run goes on.

Needs redis-server, nginx and reattach[mockserver,redis]; starts everything itself, in a new folder and on free ports.

python examples/14_replicas.py
"""

import asyncio
import contextlib
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import reattach

HERE = pathlib.Path(__file__).parent


def free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [each.getsockname()[1] for each in found]


def wait_for(port: int) -> None:
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)


async def follow(url: str, journal: pathlib.Path, replicas: list["subprocess.Popen[bytes]"]) -> None:
    policy = reattach.Policy(retry_floor=0.1, retry_base=0.5)
    async with reattach.AsyncClient(url, journal, policy=policy) as client:
        run = await client.start({"scenario": "tools"}, key="order-41")
        async for event in run:
            print(event.type, event.data.get("tool", ""), flush=True)
            if event.type == "tool.result" and len(replicas) > 1:
                print("kill -9", replicas[0].pid, flush=True)
                replicas.pop(0).kill()
        print((await run.wait()).status)


with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
    folder = pathlib.Path(name)
    folder.chmod(0o755)  # nginx's workers are another user's where root starts it
    front, *ports, redis = free_ports(5)
    text = (HERE / "nginx.conf").read_text().replace(":8700", f":{front}")
    for number, port in enumerate(ports, 8701):
        text = text.replace(f":{number}", f":{port}")
    (folder / "nginx.conf").write_text(text)

    def start(*command: object) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
        stack.callback(process.wait)
        stack.callback(process.terminate)
        return process

    store = f"redis://127.0.0.1:{redis}/0"
    durable = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
    start("redis-server", "--bind", "127.0.0.1", "--port", redis, "--dir", folder, *durable)
    wait_for(redis)
    serve = (sys.executable, "-m", "reattach_mockserver.cli", "--log", store, "--lease", 1)
    replicas = [start(*serve, "--port", port) for port in ports]
    for port in ports:
        wait_for(port)
    start("nginx", "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "err")
    wait_for(front)
    asyncio.run(follow(f"http://127.0.0.1:{front}", folder / "journal.db", replicas))
