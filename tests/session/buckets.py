"""S3 servers for the tests: moto, which checks every signature, and a small one of our own that can misbehave."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from narratoria.store.bucket import Bucket
from narratoria.store.s3_signing import Keys

SOURCE = Path(os.environ.get("NARRATORIA_SOURCE") or Path(__file__).parents[2])
SECRET = "the-secret-of-the-bucket"
_POLICY = '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}'


class Moto:
    """A server of S3 in a process of its own, which refuses whoever has not the keys of its one user."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._manage("CreateUser")
        made = self._manage("CreateAccessKey")
        self._manage("PutUserPolicy", PolicyName="all", PolicyDocument=_POLICY)
        found = [re.search(rf"<{name}>([^<]+)<", made) for name in ("AccessKeyId", "SecretAccessKey")]
        self.keys = Keys(*(one[1] for one in found if one is not None))
        self._ask("POST", "/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"})

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def make_bucket(self) -> str:
        name = f"bucket-{uuid.uuid4().hex[:12]}"
        self._ask("POST", "/moto-api/reset-auth", b"1", {"Content-Type": "text/plain"})
        self._ask("PUT", f"/{name}", b"", {})
        return name

    def bucket(self, name: str, prefix: str = "") -> Bucket:
        return Bucket(name, self.keys, prefix=prefix, endpoint=self.endpoint)

    def _manage(self, action: str, **more: str) -> str:
        form = {"Action": action, "Version": "2010-05-08", "UserName": "narratoria", **more}
        scope = "Credential=x/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=x"
        headers = {
            "Authorization": f"AWS4-HMAC-SHA256 {scope}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        return self._ask("POST", "/", urllib.parse.urlencode(form).encode(), headers)

    def _ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        assert answer.status == 200, text
        return text


def moto(folder: Path) -> Iterator[Moto]:
    """Start moto, from the environment that `scripts/s3_server.sh` makes."""
    program = SOURCE / "build" / "s3-server" / "bin" / "moto_server"
    if not program.exists():
        pytest.skip("NO S3 SERVER: scripts/s3_server.sh python3 build/s3-server installs one")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(program), "-H", "127.0.0.1", "-p", str(port)]
    if shutil.which("setpriv"):  # a test run that is killed takes its server along
        command = ["setpriv", "--pdeathsig", "KILL", *command]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None and time.monotonic() < until, (folder / "log").read_text()[-2000:]
            time.sleep(0.05)
        yield Moto(port)
    finally:
        process.kill()
        process.wait(30)


class SmallStore(ThreadingHTTPServer):
    """Objects in memory. `mood` says how it answers: well, away, slow, half, refuse or altered."""

    daemon_threads = True

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__((host, 0), _Small)
        self.mood = "well"
        self.objects: dict[str, bytes] = {}
        self.put_times: dict[str, float] = {}
        self.asked: list[str] = []
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def bucket(self, prefix: str = "here") -> Bucket:
        endpoint = f"http://127.0.0.1:{self.server_address[1]}"
        return Bucket("assets", Keys("id", SECRET), prefix=prefix, endpoint=endpoint)

    def close(self) -> None:
        self.shutdown()
        self.thread.join(10)
        self.server_close()


class _Small(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SmallStore

    def _answer(self, status: int, body: bytes = b"", length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def _refused(self) -> bool:
        self.server.asked.append(f"{self.command} {self.path}")
        if self.server.mood == "away":
            self._answer(503, b"<Error><Code>SlowDown</Code></Error>")
        elif self.server.mood == "refuse":
            self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        elif self.server.mood == "slow":
            time.sleep(0.5)
            self._answer(503)
        else:
            return False
        return True

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self._refused():
            assert self.headers["x-amz-content-sha256"] == hashlib.sha256(body).hexdigest()
            self.server.objects[self.path] = body
            self.server.put_times[self.path] = time.time()
            self._answer(200)

    def do_GET(self) -> None:
        if self._refused():
            return
        if "list-type=2" in self.path:
            self._list()
            return
        body = self.server.objects.get(self.path)
        if body is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        elif self.server.mood == "half":
            self._answer(200, body[: len(body) // 2], len(body))
            self.close_connection = True
        elif self.server.mood == "altered":
            self._answer(200, b"?" * len(body))
        else:
            self._answer(200, body)

    def _list(self) -> None:
        asked = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        rows = []
        for path, put in self.server.put_times.items():
            key = path.removeprefix("/assets/")
            if path in self.server.objects and key.startswith(asked["prefix"][0]):
                when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(put))
                rows.append(f"<Contents><Key>{key}</Key><LastModified>{when}</LastModified></Contents>")
        name = "http://s3.amazonaws.com/doc/2006-03-01/"
        self._answer(200, f'<ListBucketResult xmlns="{name}">{"".join(rows)}</ListBucketResult>'.encode())

    def do_DELETE(self) -> None:
        if not self._refused():
            self.server.objects.pop(self.path, None)
            self._answer(204)

    def log_message(self, *_: object) -> None:
        return
