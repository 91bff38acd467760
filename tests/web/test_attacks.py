"""What somebody who only wants to be in the way can do: not much, and not for long."""

from __future__ import annotations

import logging
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest

from conftest import RunningServer
from narratoria.web.repeated_records import ALIKE, RepeatedRecords

HALF = b"GET /stories HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
LOG_BYTES = 100_000
MakeServer = Callable[..., RunningServer]


@contextmanager
def crowd(server: RunningServer, count: int, sends: bytes) -> Iterator[list[socket.socket]]:
    """So many connections that have sent so much."""
    with ExitStack() as stack:
        sockets = []
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            one.sendall(sends)
            sockets.append(one)
        yield sockets


def answer_to(server: RunningServer, sent: bytes, seconds: float = 10) -> bytes:
    """Everything that comes back until the other side closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as one:
        one.sendall(sent)
        return everything(one)


def everything(one: socket.socket) -> bytes:
    received = b""
    try:
        while part := one.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


def has_ended(one: socket.socket) -> bool:
    """Tell if the other side has ended the connection, with or without a last word."""
    ready, _, _ = select.select([one], [], [], 0)
    if not ready:
        return False
    try:
        word = one.recv(65536)
    except ConnectionResetError:
        return True
    return word == b"" or b" 408 " in word


@pytest.mark.parametrize("files", [256, 20_000])
def test_half_sent_requests_lock_nobody_out(make_server: MakeServer, files: int) -> None:
    server = make_server(files=files)
    with crowd(server, 600, HALF), server.client() as player:
        for _ in range(5):
            begun = time.monotonic()
            assert player.get("/stories", headers={"Connection": "close"}).status_code == 200
            assert time.monotonic() - begun < 5
    assert server.log.stat().st_size < LOG_BYTES


def test_a_half_sent_request_is_given_up_however_slowly_it_goes_on(make_server: MakeServer) -> None:
    server = make_server(limits={"header": 1})
    with crowd(server, 3, HALF) as (silent, trickling, after_answer):
        complete = b"GET /static/icon.svg HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        after_answer.sendall(b"\r\n\r\n" + complete)
        given_up: set[socket.socket] = set()
        deadline = time.monotonic() + 10
        while len(given_up) < 3:
            assert time.monotonic() < deadline
            for one in {silent, trickling, after_answer} - given_up:
                if has_ended(one):
                    given_up.add(one)
                elif one is not silent:
                    with suppress(OSError):
                        one.sendall(b"x")
            select.select([], [], [], 0.1)


@pytest.mark.parametrize("pause", [0.1, None])
def test_a_body_that_does_not_come_is_given_up(make_server: MakeServer, pause: float | None) -> None:
    server = make_server(limits={"body": 1, "header": 60, "rate": 1_000})
    head = (
        f"POST /sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    )
    with crowd(server, 1, head.encode()) as (one,):
        deadline = time.monotonic() + 8
        while not has_ended(one):
            assert time.monotonic() < deadline
            select.select([], [], [], pause or 0.1)
            if pause:
                try:
                    one.sendall(b" ")
                except OSError:
                    break
    assert "Traceback" not in server.log.read_text()
    assert server.log.stat().st_size < 500


def test_an_answer_nobody_reads_is_given_up(make_server: MakeServer) -> None:
    server = make_server(limits={"unread": 1})
    asked = f"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode()
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.settimeout(10)
        one.connect(("127.0.0.1", server.port))
        with pytest.raises(OSError):
            for _ in range(2_000):
                one.sendall(asked)
                select.select([], [], [], 0.01)
        with server.client() as player:
            assert player.get("/stories").status_code == 200


def ahead(server: RunningServer, count: int, path: str = "/static/css/views.css") -> bytes:
    """So many requests, sent without waiting for an answer; nobody has to sign in for these."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode() * count


def test_requests_that_are_sent_ahead_are_answered_in_order(make_server: MakeServer) -> None:
    server = make_server()
    one, last = (
        ahead(server, 1),
        ahead(server, 1, "/static/none.js").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
    )
    answers = answer_to(server, one * 20 + last, 30)
    assert answers.count(b"HTTP/1.1 200") == 20
    assert answers.rindex(b"HTTP/1.1 404") > answers.rindex(b"HTTP/1.1 200")


def test_requests_that_are_sent_ahead_and_not_read_lock_nobody_out(make_server: MakeServer) -> None:
    server = make_server()
    session = server.new_session()
    with crowd(server, 380, ahead(server, 300)), server.client() as client:
        for _ in range(3):
            began = time.monotonic()
            assert client.get(f"/sessions/{session}").status_code == 200
            assert time.monotonic() - began < 3
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 10
    assert "Traceback" not in server.log.read_text()


def test_a_stream_outlives_every_deadline(make_server: MakeServer) -> None:
    server = make_server(limits={"header": 0.4, "body": 0.4, "unread": 0.4})
    session = server.new_session()
    with server.client() as player, player.stream("GET", f"/sessions/{session}/events") as stream:
        chunks = stream.iter_raw()
        next(chunks)
        select.select([], [], [], 2)
        player.post(f"/sessions/{session}/prompt", json={"prompt": "look"}).raise_for_status()
        while b"turn_committed" not in next(chunks):
            pass


def test_thousands_of_streams_leave_room_for_the_player(make_server: MakeServer) -> None:
    server = make_server(files=256)
    session = server.new_session()
    known = f"Host: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    asked = f"GET /sessions/{session}/events HTTP/1.1\r\n{known}"
    with ExitStack() as stack:
        for _ in range(2_000):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            one.setblocking(False)
            try:
                one.send(asked.encode())
            except OSError:
                continue
        with server.client() as player:
            deadline = time.monotonic() + 30
            while player.get("/stories").status_code != 200:
                assert time.monotonic() < deadline
            player.post(f"/sessions/{session}/prompt", json={"prompt": "look"}).raise_for_status()
    assert server.log.stat().st_size < LOG_BYTES


@pytest.mark.parametrize(
    "line",
    [
        "Origin: http://[", "Origin: http://]", "Origin: http://\udcff", "Origin: http://[::1", "Host: [",
        "Cookie: \udcff=\udcfe", "Cookie: narratoria=\"\\", "Authorization: Bearer \udcff",
        "Last-Event-ID: \udcff", "Content-Type: \udcff", "Sec-Fetch-Site: \udcff",
    ],
)  # fmt: skip
def test_a_header_that_makes_no_sense_is_refused_and_no_error_of_ours(
    server: RunningServer, line: str
) -> None:
    known = f"Authorization: Bearer {server.token}\r\n"
    for path in (
        "/stories",
        "/?token=%ff",
        "/?token=\udcff",
        "/sessions/%ff",
        "/sessions/%ff/events?after=%ff",
        "/%ff",
    ):
        for more in ("", known):
            host = "" if line.startswith("Host") else "Host: 127.0.0.1\r\n"
            text = f"GET {path} HTTP/1.1\r\n{host}{more}{line}\r\nConnection: close\r\n\r\n"
            status = int(answer_to(server, text.encode("utf-8", "surrogateescape")).split()[1])
            assert status < 500, (path, line)
            if line.startswith("Origin") and "\udcff" not in path:
                assert status >= 400


@pytest.mark.parametrize(
    "body",
    [
        b'{"story": "\xff"}', b"\xff\xfe", b"[" * 100_000, b'{"story": "workshop", "more": ' + b"[" * 100_000,
        b'{"story":"workshop","x":' + b'{"a":' * 900 + b"1" + b"}" * 901, b'{"story": "\\ud800"}', b"",
        b'{"title": "\\udfff"}', b'{"prompt": "\xc3"}', b'{"settings": ' + b'{"narrators":[' * 2000,
    ],
)  # fmt: skip
def test_a_body_that_makes_no_sense_is_refused(server: RunningServer, body: bytes) -> None:
    session = server.new_session()
    ways = [
        ("POST", "/sessions"), ("PATCH", f"/sessions/{session}"), ("POST", f"/sessions/{session}/prompt"),
        ("PUT", f"/sessions/{session}/settings"), ("POST", f"/sessions/{session}/retry"),
        ("POST", f"/sessions/{session}/branch"), ("POST", f"/sessions/{session}/restore"),
    ]  # fmt: skip
    with server.client() as client:
        for method, path in ways:
            answer = client.request(method, path, content=body, headers={"Content-Type": "application/json"})
            assert 400 <= answer.status_code < 500, (method, path, answer.text[:200])


def test_bad_requests_do_not_fill_the_log(make_server: MakeServer) -> None:
    server = make_server()
    for _ in range(300):
        assert b" 400 " in answer_to(server, b"\x16\x03\x01 nonsense\r\n\r\n")
        answer_to(
            server, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: upgrade, close\r\nUpgrade: x\r\n\r\n"
        )
    for _ in range(50):
        with crowd(server, 1, b"POST /sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{"):
            pass
    assert httpx.get(server.origin + "/static/icon.svg").status_code == 200
    assert server.log.stat().st_size < 5_000


def test_a_log_tells_how_often_it_kept_silent() -> None:
    now = [0.0]
    short = RepeatedRecords(lambda: now[0])

    def record(text: str) -> logging.LogRecord:
        return logging.LogRecord("x", logging.WARNING, "", 0, text, (), None)

    assert sum(short.filter(record("again")) for _ in range(1_000)) == ALIKE
    assert short.filter(record("another"))
    now[0] = 61
    told = record("again")
    assert short.filter(told)
    assert told.getMessage() == f"again (and {1_000 - ALIKE:,} like it in the minute before)"
    assert sum(short.filter(record(f"kind {number}")) for number in range(10_000)) < 100


def test_half_sent_bodies_leave_no_traceback_when_the_server_ends(make_server: MakeServer) -> None:
    server = make_server()
    half = "".join(
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
        'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"sto'
        for path in ("/sessions",)
    )
    with crowd(server, 3, half.encode()), crowd(server, 3, half.replace("/sessions", "/import").encode()):
        with server.client() as player:  # by then the others are being read
            assert player.get("/stories").status_code == 200
        server.stop()
    assert "Traceback" not in server.log.read_text() and "ERROR" not in server.log.read_text()
