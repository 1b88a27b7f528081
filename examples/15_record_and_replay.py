"""Record a run of a real server once, then test your application against it for ever, with a hand on the server.

Start a server, then: `python examples/15_record_and_replay.py URL`. The recording is `run.jsonl` in a folder of its own; in your
project it lies beside the tests. Any client in any language can be tested so: what it needs is two addresses.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

import reattach


def program(*words: str) -> list[str]:
    return [sys.executable, "-c", "import sys; from reattach.cli import main; sys.exit(main())", *words]


def application(url: str, journal: pathlib.Path) -> str:
    """Stand for what you test: something that shows a run's text."""
    with reattach.Client(url, journal) as client:
        return "".join(event.text for event in client.start("anything", key="k"))


def admin(url: str, path: str, **members: object) -> dict[str, object]:
    """Call the admin interface of the mock."""
    body = json.dumps(members).encode()
    request = urllib.request.Request(url + path, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return dict(json.load(answer))


def main(url: str, folder: pathlib.Path) -> None:
    """Record, replay, look."""
    recording = folder / "run.jsonl"
    with reattach.Client(url, folder / "real.db") as client:
        real = client.start({"scenario": "tools"}, key="the-run-to-record")
        subprocess.run(program("record", url, real.id, "-o", str(recording)), check=True)
        text = "".join(event.text for event in real)
    serve = program("serve", "--port", "0", "--admin-port", "0", "--json", "--recording", str(recording))
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as mock:
        try:
            assert mock.stdout is not None
            where = json.loads(mock.stdout.readline())
            assert application(where["url"], folder / "test.db") == text
            admin(where["admin_url"], "/restart")
            with urllib.request.urlopen(where["admin_url"] + "/counts", timeout=30) as answer:
                counts = json.load(answer)
            print(f"the same text from the mock; {counts['runs']} run, {counts['calls']['POST /v1/runs']} create")
        finally:
            mock.terminate()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8700", pathlib.Path(temporary))
