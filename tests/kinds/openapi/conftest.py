"""A real HTTP server on this machine, which answers as a test tells it and remembers what it was asked."""

import http.server
import json
import threading
from dataclasses import dataclass, field

import pytest


@dataclass
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


@dataclass
class Api:
    """Answers are functions of the request, by `METHOD /path`; each returns (status, headers, body)."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, object] = field(default_factory=dict)

    def answer(self, where, *answers):
        """Answer with these, one after the other; the last one again and again."""
        left = list(answers)
        self.answers[where] = lambda asked: left.pop(0) if len(left) > 1 else left[0]

    @property
    def last(self):
        return self.asked[-1]


def ok(value, status=200, **headers):
    return status, {"Content-Type": "application/json", **headers}, json.dumps(value).encode()


@pytest.fixture
def api():
    state = Api()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def _serve(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = Asked(self.command, self.path, dict(self.headers.items()), body)
            state.asked.append(asked)
            given = state.answers.get(f"{self.command} {self.path.partition('?')[0]}")
            answer = given(asked) if given else ok({"path": self.path})
            if answer is None:  # cut off
                self.close_connection = True
                self.connection.close()
                return
            status, headers, content = answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "Transfer-Encoding" not in headers:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

    for method in ("GET", "PUT", "POST", "DELETE", "HEAD", "PATCH", "OPTIONS"):
        setattr(Handler, f"do_{method}", Handler._serve)

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request, client_address):
            pass

    server = Server(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    state.ok = ok
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()
