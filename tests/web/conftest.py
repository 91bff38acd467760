"""Real servers and a real Chromium for the tests of the client."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests import warm_start

from narratoria.events import Narration, TurnCommitted, TurnStarted
from narratoria.session import Session
from narratoria.session.draft_operations import PatchMade
from narratoria.store.default_store import default_store

sys.path.insert(0, str(Path(__file__).parent))
from workshop import write_workshop

CHROMIUM = os.environ.get("NARRATORIA_CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]  # fmt: skip
PATIENCE_MS = 20_000  # that the page gets for anything: the machine is busy with other tests
WINDOW = {"width": 1280, "height": 860}
SCREENS = Path(os.environ.get("NARRATORIA_SCREENS", Path(__file__).parents[2] / "build" / "screens"))


@dataclass
class RunningServer:
    """A server in a process of its own, with a home of its own."""

    home: Path
    process: subprocess.Popen[bytes] | warm_start.Started = field(init=False)
    printed: str = field(init=False)
    port: int = 0
    limits: dict[str, float] | None = None  # other than the usual ones
    files: int | None = None  # that it may have open
    watched: bool = False  # stories are read anew when their files are saved, as under `narratoria dev`
    covers: bool = False  # the covers of the library are drawn, which starts tools

    def start(self) -> None:
        script = Path(__file__).with_name("run_server.py")
        arguments = [str(self.home), str(self.port), json.dumps(self.limits)]
        arguments += ["watched"] if self.watched else []
        arguments += ["covers"] if self.covers else []
        env = os.environ | {"NARRATORIA_HOME": str(self.home)}
        with self.log.open("ab") as log:
            if self.files is None:
                self.process = warm_start.Started(
                    *arguments,
                    env=env,
                    kind="web",
                    script=script,
                    stdin=subprocess.DEVNULL,
                    stderr=log.fileno(),
                )
            else:
                limited = ["bash", "-c", f'ulimit -n {self.files}; exec "$@"', "bash", sys.executable, script]
                self.process = subprocess.Popen(
                    [*limited, *arguments], stdout=subprocess.PIPE, stderr=log, env=env
                )
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], 30)
        assert ready, "the server did not say its address within 30 s"
        self.printed = self.process.stdout.readline().decode().strip()
        assert self.printed, "the server ended before it said its address"
        self.port = urlsplit(self.printed).port or 0

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self._reap()

    def stop(self) -> None:
        self.end(signal.SIGTERM)

    def end(self, number: int) -> None:
        """Ask it to end, and wait until it has."""
        self.process.send_signal(number)
        self._reap()

    def _reap(self) -> None:
        self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()

    @property
    def log(self) -> Path:
        """What it writes to stderr."""
        return self.home / "server.log"

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        """The token that was printed, which is for the program that these tests are."""
        return parse_qs(urlsplit(self.printed).query)["token"][0]

    @property
    def address(self) -> str:
        """An address for one more browser."""
        return self.at("/")

    def at(self, path: str, fragment: str = "") -> str:
        """The address of a page for one more browser."""
        with self.client() as client:
            token = client.post("/tokens").raise_for_status().json()["token"]
        return f"{self.origin}{path}?token={token}{fragment}"

    def client(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.origin, headers={"Authorization": f"Bearer {self.token}"}, timeout=30
        )

    def new_session(self, story: str = "workshop") -> str:
        with self.client() as client:
            answer = client.post("/sessions", json={"story": story})
            answer.raise_for_status()
            return str(answer.json()["id"])

    def ring(self) -> None:
        """Let the tool that waits at the gate go on; blocks until it is there."""
        with (self.home / "gate").open("w") as gate:
            gate.write("ding")


def write_long_session(home: Path, turns: int, state: dict[str, Any] | None = None) -> str:
    """A session of so many turns on the shelf of the server in `home`, written without playing them."""

    async def write() -> str:
        store = default_store(home)
        session = Session(state={"count": 0} | (state or {}), assets=store.assets)
        journal = store.create(session, story="workshop", title="A long story")
        for number in range(1, turns + 1):
            session.turn = session.turn_count = number
            session.record(TurnStarted(turn=number, prompt=f"step {number}"))
            session.commit("", [PatchMade({"count": number})])
            session.record(Narration(text=f"You take step {number}.\n\nThe road goes on."))
            session.record(TurnCommitted(turn=number))
            session.turn = None
        await journal.close()
        store.close()
        return session.id

    with ThreadPoolExecutor(1) as thread:  # this one may run Playwright's loop
        return thread.submit(asyncio.run, write()).result()


def _start_in(home: Path, *, words: dict[str, dict[str, Any]] | None = None, **options: Any) -> RunningServer:
    """Start a server; `words` are catalogues of languages that do not come with it."""
    write_workshop(home)
    for language, catalogue in (words or {}).items():
        (home / "words").mkdir(exist_ok=True)
        (home / "words" / f"{language}.json").write_text(json.dumps(catalogue), encoding="utf-8")
    os.mkfifo(home / "gate")
    (home / "lines").write_text("200")
    server = RunningServer(home, **options)
    server.start()
    return server


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., RunningServer]]:
    """Servers of a test's own, for what sees everything on them or changes them for good."""
    started: list[RunningServer] = []

    def make(**options: Any) -> RunningServer:
        started.append(_start_in(tmp_path / f"home{len(started)}", **options))
        return started[-1]

    yield make
    for server in started:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    server = _start_in(tmp_path_factory.mktemp("shared") / "home")
    yield server
    if server.process.poll() is None:
        server.stop()


@pytest.fixture
def server(shared_server: RunningServer) -> RunningServer:
    """One server for all tests, each of which has sessions of its own; started again where one left it dead."""
    if shared_server.process.poll() is not None:
        shared_server._reap()
        shared_server.start()
    return shared_server


@pytest.fixture
def fresh_server(make_server: Callable[[], RunningServer]) -> RunningServer:
    return make_server()


class _Browser:
    """One browser for all tests of the page that follow each other, since its start takes seconds.

    Playwright keeps an event loop running, which tests with loops of their own cannot bear: it ends before the first
    test without a browser.
    """

    def __init__(self, sync_api: Any) -> None:
        self.manager = sync_api.sync_playwright()
        playwright = self.manager.__enter__()
        self.chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        self.idle: list[Visitor] = []

    def close(self) -> None:
        for visitor in self.idle:
            visitor.context.close()
        self.chromium.close()
        self.manager.__exit__(None, None, None)


_browsers: list[_Browser] = []  # the one that runs


def _shows_pages(item: pytest.Item) -> bool:
    return "chromium" in getattr(item, "fixturenames", ())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of this folder that need a browser before the others, so that few browsers are started."""
    folder = Path(__file__).parent
    places = [at for at, item in enumerate(items) if item.path.parent == folder]
    ordered = sorted((items[at] for at in places), key=lambda item: not _shows_pages(item))
    for at, item in zip(places, ordered, strict=True):
        items[at] = item


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    yield
    if _browsers and (nextitem is None or not _shows_pages(nextitem)):
        _browsers.pop().close()


@pytest.fixture
def chromium() -> Any:
    sync_api = pytest.importorskip("playwright.sync_api", reason="the tests of the page need playwright")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"no Chromium at {CHROMIUM}; install it, or set NARRATORIA_CHROMIUM")
    if not _browsers:
        sync_api.expect.set_options(timeout=PATIENCE_MS)
        _browsers.append(_Browser(sync_api))
    return _browsers[0].chromium


@dataclass
class Visitor:
    """A browser as somebody has it who was never here: its own cookies, storage and cache.

    What has been used is emptied and given to the next test: a new one starts two processes, which costs more than
    opening the page. One blank window stays open, so that they live on.
    """

    context: Any
    origins: set[str] = field(default_factory=set)

    @classmethod
    def new(cls, chromium: Any, **options: Any) -> Visitor:
        # one server stands at many ports here, and a worker outlives it
        context = chromium.new_context(**({"viewport": WINDOW, "service_workers": "block"} | options))
        context.set_default_timeout(PATIENCE_MS)
        context.new_page()
        return cls(context)

    def leave(self) -> None:
        """Close every window but the blank one, and keep nothing of what was seen."""
        blank, *windows = self.context.pages
        for window in windows:
            window.close()
        self.context.clear_cookies()
        developer = self.context.new_cdp_session(blank)
        for origin in self.origins:
            developer.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        developer.send("Network.clearBrowserCache")
        developer.detach()
        self.origins.clear()


@pytest.fixture
def idle_visitors(chromium: Any) -> list[Visitor]:
    """Those that are not in use, of whatever test they were."""
    return _browsers[0].idle


@pytest.fixture
def open_page(chromium: Any, idle_visitors: list[Visitor]) -> Iterator[Callable[..., Any]]:
    """Open pages that fail the test when their script does, or when they ask another host for anything.

    Each is another visitor's. Options that belong to a whole browser, such as touch, make one that is used only once.
    """
    ordinary: list[Visitor] = []
    special: list[Visitor] = []
    problems: list[str] = []

    def open_one(
        address: str,
        *,
        theme: str = "dark",
        viewport: dict[str, int] = WINDOW,
        reduced_motion: str | None = None,
        **options: Any,
    ) -> Any:
        if options:
            visitor = Visitor.new(chromium, viewport=viewport, **options)
        else:
            visitor = idle_visitors.pop() if idle_visitors else Visitor.new(chromium)
        (special if options else ordinary).append(visitor)
        page = visitor.context.new_page()
        page.set_viewport_size(viewport)
        if reduced_motion is not None:
            page.emulate_media(reduced_motion=reduced_motion)
        prefs = json.dumps(json.dumps({"theme": theme}))
        script = f"localStorage.getItem('narratoria') ?? localStorage.setItem('narratoria', {prefs})"
        page.add_init_script(script)
        page.on("pageerror", lambda error: problems.append(f"script error: {error}"))
        parts = urlsplit(address)
        visitor.origins.add(f"{parts.scheme}://{parts.netloc}")
        page.on("request", lambda request: _note_foreign(request.url, parts.netloc, problems))
        page.goto(address)
        return page

    yield open_one
    for visitor in special:
        visitor.context.close()
    for visitor in ordinary:
        visitor.leave()
    idle_visitors.extend(ordinary)
    assert not problems, problems


@pytest.fixture
def shoot() -> Callable[[Any, str], None]:
    """Write a picture of the page to build/screens, to be looked at."""
    SCREENS.mkdir(parents=True, exist_ok=True)

    def take(page: Any, name: str) -> None:
        page.screenshot(path=str(SCREENS / f"{name}.png"), animations="disabled")

    return take


def _note_foreign(url: str, host: str, problems: list[str]) -> None:
    parts = urlsplit(url)
    if parts.scheme in {"http", "https", "ws", "wss"} and parts.netloc != host:
        problems.append(f"the page asked {parts.netloc} for {parts.path}")
