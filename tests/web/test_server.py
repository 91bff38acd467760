"""`narratoria play`, its address and its end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests import warm_start
from workshop import write_workshop

Start = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_workshop(tmp_path)
    return tmp_path


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    """Start `narratoria play` with these arguments and return the address it prints."""
    started: list[warm_start.Started] = []

    def run(*arguments: str, port: int | None = 0) -> str:
        where = [] if port is None else ["--port", str(port)]
        process = warm_start.Started(
            *("play", "--no-browser", *where, *arguments),
            env=os.environ | {"NARRATORIA_HOME": str(home)},
            kind="web",
            stdin=subprocess.DEVNULL,
            stderr=2,
        )
        started.append(process)
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 30)[0], "no address within 30 s"
        return process.stdout.readline().decode().strip()

    yield run
    for process in started:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in {0, 130}
        assert process.stdout is not None
        process.stdout.close()


def page_of(address: str) -> str:
    with httpx.Client(follow_redirects=True) as client:
        answer = client.get(address)
        assert answer.status_code == 200
        assert "Narratoria" in answer.text
        return answer.url.path


def test_a_story_opens_on_a_new_game_of_it(start: Start, home: Path) -> None:
    address = start("workshop")
    parts = urlsplit(address)
    assert parts.hostname == "127.0.0.1"
    assert parts.query.startswith("token=")
    assert page_of(address).startswith("/play/")


def test_a_folder_is_a_story_too(start: Start, home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (home / "stories" / "workshop").rename(elsewhere / "workshop")
    assert page_of(start(str(elsewhere / "workshop"))).startswith("/play/")


def test_without_a_story_one_is_where_one_was(start: Start) -> None:
    first = urlsplit(start("workshop")).path
    assert urlsplit(start()).path == first


def test_a_session_is_named_by_the_beginning_of_its_id(start: Start) -> None:
    path = urlsplit(start("workshop")).path
    assert urlsplit(start("--session", path.removeprefix("/play/")[:8])).path == path


def test_a_server_others_can_reach_lets_nobody_in_without_the_token(start: Start) -> None:
    address = start("workshop", "--host", "0.0.0.0")  # noqa: S104 - this is what is tested
    parts = urlsplit(address)
    name, token = socket.gethostname(), parts.query.removeprefix("token=")
    assert parts.hostname == name.lower()
    assert len(token) >= 32
    for host in (name, "127.0.0.1", "192.0.2.7"):
        headers = {"Host": f"{host}:{parts.port}"}
        there = f"http://127.0.0.1:{parts.port}"
        for path in ("/", "/stories", parts.path, "/sessions"):
            assert httpx.get(there + path, headers=headers).status_code == 401, (host, path)
        assert httpx.get(f"{there}/?token=", headers=headers).status_code == 401
        let_in = headers | {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{there}/stories", headers=let_in).status_code == 200, host
    elsewhere = {"Host": "evil.example", "Authorization": f"Bearer {token}"}
    assert httpx.get(f"http://127.0.0.1:{parts.port}/stories", headers=elsewhere).status_code == 421


def test_a_port_that_is_taken_is_said(start: Start, home: Path) -> None:
    port = urlsplit(start("workshop")).port
    env = os.environ | {"NARRATORIA_HOME": str(home)}
    second = warm_start.run("play", "--no-browser", "--port", port, env=env, timeout=30, kind="web")
    assert second.returncode == 1
    assert "--port" in second.stderr
    assert "ARGS=--port" in second.stderr


def test_a_second_game_takes_a_port_of_its_own(start: Start) -> None:
    first, second = start("workshop", port=None), start("workshop", port=None)
    assert urlsplit(first).port != urlsplit(second).port
    assert page_of(first).startswith("/play/")
    assert page_of(second).startswith("/play/")


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_a_browser_in_the_foreground_keeps_no_server_alive_and_no_token_stays(
    home: Path, number: int
) -> None:
    stale = home / "open-0123456789abcdef.html"
    stale.write_text("left by a server that was killed")
    os.utime(stale, (time.time() - 3600,) * 2)
    told = home / "opened"
    browser = home / "browser.sh"
    browser.write_text(f'#!/bin/sh\necho "$1" >{told}.part; mv {told}.part {told}; exec sleep 60\n')
    browser.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "narratoria", "play", "--port", "0"],
        env=os.environ | {"NARRATORIA_HOME": str(home), "BROWSER": f"{browser} %s", "DISPLAY": ":9"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + 30
        while not told.exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert not stale.exists()
        assert [one.name for one in home.glob("open-*.html")] == [Path(told.read_text().strip()).name]
        process.send_signal(number)
        assert process.wait(10) == 128 + number
        assert list(home.glob("open-*.html")) == []
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
