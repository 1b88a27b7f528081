"""A vendor for 10_poll_only_vendor.py: it tells how its jobs stand and nothing else. Stop it with Ctrl-C.

python examples/jobs_vendor.py &
python examples/10_poll_only_vendor.py
"""

import contextlib
import http.server
import json
import sys


class Jobs(http.server.BaseHTTPRequestHandler):
    """One job: one message more at every second look, done with the third."""

    looks = 0

    def do_POST(self) -> None:
        self._answer({"id": "job_1"})

    def do_GET(self) -> None:
        type(self).looks += 1
        count = min(3, type(self).looks // 2)
        messages = [{"id": f"m{number}", "text": f"step {number}"} for number in range(1, count + 1)]
        state = "done" if count == 3 else "working"
        self._answer(
            {"id": "job_1", "state": state, "revision": count, "messages": messages, "result": {"steps": count}}
        )

    def _answer(self, value: dict[str, object]) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8710
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), Jobs) as vendor:
        print(f"jobs on http://127.0.0.1:{vendor.server_port}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            vendor.serve_forever()
