"""The example tools of 004 for real: a page served on this machine, real Chromium, real files."""

from __future__ import annotations

import base64
import threading
import tracemalloc
import uuid
import zlib
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from narratoria.events import Committed, EffectApplied, Notification
from narratoria.kinds.browser import Browser, ChromiumBrowser, PageContent
from narratoria.kinds.builtin_tools import Scraped, Written, file_write, web_scrape
from narratoria.narrator.protocol import NarratorRequest
from narratoria.play.history import undo
from narratoria.play.turn import take_turn
from narratoria.run.executor import ToolExecutor
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.run.registry import ToolRegistry
from narratoria.session import Draft, Session
from narratoria.session.assets import AssetStore
from narratoria.session.resources.file_changes import LARGEST_KEPT
from narratoria.session.resources.filesystem import Filesystem
from narratoria.session.resources.host_filesystem import HostFilesystem
from narratoria.session.resources.memory_filesystem import MemoryFilesystem
from narratoria.store.sqlite import SqliteStore
from narratoria.tools.contract import NotificationEffect
from narratoria.tools.retry import RetryPolicies
from narratoria.tools.tool import Tool, ToolContext, ToolResult

PAGE = """<!doctype html><title>The inn</title><h1>The Prancing Cat</h1>
<p id="late">soon</p>
<script>setTimeout(() => document.getElementById("late").textContent = "now", 50)</script>"""


def context_for(tool: Tool[Any, Any], draft: Draft, registry: ToolRegistry) -> ToolContext:
    executor = ToolExecutor(registry)
    return ToolContext(tool=tool, session=draft, call_id="undo", executor=executor, scope=executor.scope)


class Recorder:
    """A sink that keeps every event of a session."""

    full = False

    def __init__(self, session: Session) -> None:
        self.events: list[Any] = []
        session.attach(self)

    def push(self, record: Any) -> None:
        self.events.append(record.event)

    async def wait(self) -> None: ...

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


# --- file_write ------------------------------------------------------------------------------------------


class Desk:
    def __init__(self, files: Filesystem, assets: AssetStore) -> None:
        self.files = files
        self.session = Session(permissions=["file:write"], assets=assets)
        self.session.resources.provide(Filesystem, files)
        self.registry = ToolRegistry([file_write])
        self.recorder = Recorder(self.session)

    async def write(self, path: str, content: str, **options: Any) -> ToolResult[Written]:
        args = {"path": path, "content": content, **options}
        return await self.registry.execute("file:write", args, session=self.session)

    def effects(self) -> list[EffectApplied]:
        return [effect for event in self.recorder.of(Committed) for effect in event.effects]


@pytest.fixture(params=["host", "memory"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    (tmp_path / "files").mkdir()
    files = HostFilesystem(tmp_path / "files") if request.param == "host" else MemoryFilesystem()
    return Desk(files, AssetStore(tmp_path / "assets"))


def test_file_write_takes_the_parameters_of_004() -> None:
    properties = file_write.parameters["properties"]
    assert list(properties) == ["path", "content", "encoding", "overwrite"]
    assert properties["encoding"]["enum"] == ["utf-8", "ascii", "base64"]
    assert (properties["encoding"]["default"], properties["overwrite"]["default"]) == ("utf-8", False)
    assert file_write.parameters["required"] == ["path", "content"]
    assert (file_write.timeout, file_write.retry) == (10.0, RetryPolicies.QUICK)


async def test_a_file_is_written_and_the_result_has_path_and_bytes(desk: Desk) -> None:
    result = await desk.write("notes/inn.txt", "Käse")
    assert result.success
    assert desk.files.read_text("notes/inn.txt") == "Käse"
    assert result.value is not None
    assert msgspec.to_builtins(result.value) | {"timestamp": 0} == {
        "path": "notes/inn.txt",
        "bytesWritten": 5,
        "timestamp": 0,
    }


async def test_without_the_permission_nothing_is_written(desk: Desk) -> None:
    desk.session.revoke("file:write")
    result = await desk.write("a", "x")
    assert result.error is not None
    assert result.error.code == "PRECONDITION_FAILED"
    assert "File write permission required" in result.message
    assert desk.files.list() == []


async def test_without_a_filesystem_the_call_is_refused() -> None:
    session = Session(permissions=["file:write"])
    result = await ToolRegistry([file_write]).execute(
        "file_write", {"path": "a", "content": ""}, session=session
    )
    assert "A filesystem must be provided" in result.message


async def test_an_existing_file_is_kept_unless_overwrite_is_true(desk: Desk) -> None:
    desk.files.write_text("a", "old")
    result = await desk.write("a", "new")
    assert result.error is not None
    assert result.error.code == "FILE_EXISTS"
    assert result.error.message == "File 'a' already exists"
    assert result.error.recoverable
    assert result.error.suggestions == ("Set overwrite: true", "Choose different path")
    assert desk.files.read_text("a") == "old"
    assert desk.recorder.of(Notification) == []
    assert (await desk.write("a", "new", overwrite=True)).success
    assert desk.files.read_text("a") == "new"


@pytest.mark.parametrize(
    ("encoding", "content", "data"),
    [("utf-8", "ä", b"\xc3\xa4"), ("ascii", "a", b"a"), ("base64", "AP8=", b"\x00\xff")],
)
async def test_the_three_encodings(desk: Desk, encoding: str, content: str, data: bytes) -> None:
    result = await desk.write("a", content, encoding=encoding)
    assert desk.files.read_bytes("a") == data
    assert result.value is not None
    assert result.value.bytes_written == len(data)


@pytest.mark.parametrize(
    ("encoding", "content"), [("ascii", "ä"), ("base64", "not base64!"), ("base64", "AA")]
)
async def test_content_that_does_not_fit_its_encoding_is_not_written(
    desk: Desk, encoding: str, content: str
) -> None:
    result = await desk.write("a", content, encoding=encoding)
    assert result.error is not None
    assert (result.error.code, result.error.recoverable) == ("WRITE_FAILED", False)
    assert encoding in result.message
    assert desk.files.list() == []


async def test_an_encoding_beyond_the_enum_is_invalid_arguments(desk: Desk) -> None:
    result = await desk.write("a", "x", encoding="latin-1")
    assert result.error is not None
    assert result.error.code == "INVALID_ARGUMENTS"


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", ".", "file/below"])
async def test_a_path_that_cannot_be_written_is_write_failed_and_not_retried(desk: Desk, path: str) -> None:
    desk.files.write_text("file", "")
    result = await desk.write(path, "x", overwrite=True)
    assert result.error is not None
    assert (result.error.code, result.error.recoverable) == ("WRITE_FAILED", False)
    assert result.metadata is not None
    assert result.metadata.attempts == 1
    assert desk.files.list() == ["file"]


async def test_a_write_notifies_file_changed_with_path_and_action(desk: Desk) -> None:
    await desk.write("a", "x")
    (notification,) = desk.recorder.of(Notification)
    assert notification.event == "file:changed"
    assert notification.payload | {"timestamp": 0} == {"path": "a", "action": "write", "timestamp": 0}


@pytest.mark.parametrize("existing", [None, "old"])
async def test_when_a_later_effect_fails_the_file_is_removed_or_restored(
    desk: Desk, existing: str | None
) -> None:
    if existing is not None:
        desk.files.write_text("notes/a", existing)

    def refuse() -> None:
        raise RuntimeError("the bus is down")

    failing = Tool[Any, Written](
        name="file_write",
        description="Write, then fail.",
        handler=file_write.handler,
        parameters=file_write.parameters,
        effects=(*file_write.effects, NotificationEffect(event="x", apply=refuse)),
    )
    desk.registry = ToolRegistry([failing])
    result = await desk.write("notes/a", "new", overwrite=True)
    assert result.error is not None
    assert result.error.code == "EFFECT_FAILED"
    assert desk.files.glob("**") == ([] if existing is None else ["notes", "notes/a"])
    if existing is not None:
        assert desk.files.read_text("notes/a") == existing
    assert desk.recorder.of(Notification) == []


async def undo_later(desk: Desk, **receipt: Any) -> str | None:
    """What an undo in a later run does: the receipt from the journal, a new draft, the effect's rollback."""
    (recorded,) = desk.effects()
    recorded = msgspec.json.decode(msgspec.json.encode(recorded), type=EffectApplied)
    assert recorded.reversible
    assert (recorded.tool, recorded.description) == ("file_write", "The file holds the content")
    draft = desk.session.draft()
    context = context_for(file_write, draft, desk.registry)
    try:
        await file_write.effects[recorded.effect].roll_back(context, {**recorded.receipt, **receipt})
    except Exception as problem:
        draft.discard()
        return str(problem)
    draft.commit("undo")
    return None


async def test_a_later_undo_removes_a_new_file_and_the_folders_it_needed(desk: Desk) -> None:
    desk.files.mkdir("kept")
    await desk.write("kept/new/a", "x")
    assert await undo_later(desk) is None
    assert desk.files.glob("**") == ["kept"]


@pytest.mark.parametrize("size", [0, 3, 300_000])
async def test_a_later_undo_restores_what_was_overwritten(desk: Desk, size: int) -> None:
    desk.files.write_bytes("a", b"\xff" * size)
    await desk.write("a", "new", overwrite=True)
    assert await undo_later(desk) is None
    assert desk.files.read_bytes("a") == b"\xff" * size


async def test_what_is_too_large_to_be_restored_later_is_said_at_once(desk: Desk) -> None:
    desk.files.write_bytes("a", b"x" * (LARGEST_KEPT + 1))
    result = await desk.write("a", "new", overwrite=True)
    assert result.message.endswith("too large to be brought back by an undo.")
    problem = await undo_later(desk)
    assert problem is not None
    assert f"had {LARGEST_KEPT + 1} bytes before" in problem
    assert desk.files.read_text("a") == "new"


async def test_a_receipt_that_unpacks_to_far_more_than_is_kept_is_not_unpacked(desk: Desk) -> None:
    await desk.write("a", "new", overwrite=True)
    bomb = base64.b64encode(zlib.compress(bytes(64_000_000))).decode()
    tracemalloc.start()
    problem = await undo_later(desk, before=bomb)
    assert tracemalloc.get_traced_memory()[1] < 4 * LARGEST_KEPT
    tracemalloc.stop()
    assert problem is not None and "a: what it held before is not kept in a form that can be read" in problem
    assert desk.files.read_text("a") == "new"


class Scribe:
    """A narrator whose every plan writes one file."""

    name = "scribe"

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        args = {"path": "diary/today.txt", "content": request.prompt, "overwrite": True}
        call = PlannedCall(tool_id="write", tool_path="file_write", input=args)
        tools = [] if request.prompt == "wait" else [call]
        return PlanDocument(request_id=str(uuid.uuid4()), narrative="You write.", tools=tools)


async def test_undoing_turns_after_a_restart_restores_and_then_removes_the_file(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    diary = tmp_path / "files" / "diary" / "today.txt"
    registry = ToolRegistry([file_write])

    def provide(session: Session) -> None:
        session.resources.provide(Filesystem, HostFilesystem(tmp_path / "files"))

    store = SqliteStore(tmp_path / "sessions.db")
    journal = store.create(Session("diary", permissions=["file:write"]))
    provide(journal.session)
    for prompt in ("wait", "rain", "sun"):
        await take_turn(journal.session, prompt, narrator=Scribe(), registry=registry)
    assert diary.read_text() == "sun"
    await journal.close()
    store.close()

    store = SqliteStore(tmp_path / "sessions.db")
    journal = store.open("diary")
    provide(journal.session)
    outcome = await undo(journal, registry)
    assert outcome.compensated == ["The file holds the content"]
    assert outcome.failed == []
    assert diary.read_text() == "rain"
    await undo(journal, registry)
    assert not diary.parent.exists()
    await journal.close()
    store.close()


async def test_a_later_undo_leaves_a_file_that_was_changed_since(desk: Desk) -> None:
    await desk.write("a", "x")
    desk.files.write_text("a", "by hand")
    problem = await undo_later(desk)
    assert problem is not None
    assert "left as it is" in problem
    assert desk.files.read_text("a") == "by hand"


# --- web_scrape ------------------------------------------------------------------------------------------


def test_web_scrape_takes_the_parameters_of_004() -> None:
    assert web_scrape.parameters == {
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "URL to scrape", "pattern": "^https?://"},
            "selector": {"type": "string", "description": "CSS selector for content extraction"},
            "waitFor": {
                "type": "number",
                "description": "Milliseconds to wait before scraping",
                "default": 0,
            },
        },
        "required": ["url"],
    }
    assert (web_scrape.timeout, web_scrape.retry) == (30.0, RetryPolicies.STANDARD)


@pytest.fixture(scope="module")
def inn() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == "/inn"
            body = PAGE.encode() if found else b"nothing here"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


class Scraper:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.registry = ToolRegistry([web_scrape])

    async def scrape(self, url: str, **options: Any) -> ToolResult[Scraped]:
        return await self.registry.execute("web:scrape", {"url": url, **options}, session=self.session)


@pytest.fixture
async def scraper() -> AsyncIterator[Scraper]:
    session = Session(permissions=["web:scrape"])
    session.resources.bind(
        Browser,
        lambda: ChromiumBrowser(
            args=["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"], timeout=15
        ),
        name="browser",
    )
    yield Scraper(session)
    session.resources.close()


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.short
async def test_web_scrape_reads_pages_with_real_chromium(scraper: Scraper, inn: str) -> None:
    whole = await scraper.scrape(f"{inn}/inn")
    assert whole.success, whole.message
    assert whole.value is not None
    assert whole.value.url == f"{inn}/inn"
    assert "<h1>The Prancing Cat</h1>" in whole.value.content
    assert whole.message == "Read The inn."
    part = await scraper.scrape(f"{inn}/inn", selector="h1")
    assert part.value is not None
    assert part.value.content == "The Prancing Cat"
    late = await scraper.scrape(f"{inn}/inn", selector="#late", waitFor=500)
    assert late.value is not None
    assert late.value.content == "now"

    cache = scraper.session.memory.read("short-term", "web:cache")
    assert list(cache) == [f"{inn}/inn"]
    assert cache[f"{inn}/inn"]["content"] == "now"

    missing = await scraper.scrape(f"{inn}/nowhere")
    unmatched = await scraper.scrape(f"{inn}/inn", selector="h7")
    refused = await scraper.scrape("http://127.0.0.1:9/")
    for result, says in ((missing, "answered 404"), (unmatched, "'h7'"), (refused, "ERR_")):
        assert result.error is not None
        assert result.error.code == "SCRAPE_FAILED"
        assert result.error.recoverable
        assert result.error.suggestions == ("Check URL validity", "Verify page accessibility")
        assert says in result.message
    assert list(scraper.session.memory.read("short-term", "web:cache")) == [f"{inn}/inn"]


@pytest.mark.browser
async def test_a_closed_browser_is_launched_anew_and_leaves_no_thread(inn: str) -> None:
    browser = ChromiumBrowser()
    for _ in range(2):
        assert (await browser.read(f"{inn}/inn", selector="h1")).content == "The Prancing Cat"
        browser.close()
        browser.close()
    assert "browser" not in [thread.name for thread in threading.enumerate()]


class Offline:
    """A browser for tests of everything but the browser."""

    def check(self) -> None: ...

    async def read(self, url: str, *, selector: str | None, wait: float) -> PageContent:
        return PageContent(url, "", "x" * (3_000_000 if url.endswith("huge") else 10))


def offline() -> Scraper:
    session = Session(permissions=["web:scrape"])
    session.resources.provide("browser", Offline())
    return Scraper(session)


async def test_without_the_permission_no_page_is_opened() -> None:
    scraper = offline()
    scraper.session.revoke("web:scrape")
    result = await scraper.scrape("http://127.0.0.1/")
    assert result.error is not None
    assert result.error.code == "PRECONDITION_FAILED"
    assert "Web scraping must be allowed" in result.message


async def test_without_a_browser_the_call_is_refused() -> None:
    result = await Scraper(Session(permissions=["web:scrape"])).scrape("http://127.0.0.1/")
    assert "Browser must be available" in result.message


async def test_where_chromium_is_not_installed_the_call_says_so() -> None:
    session = Session(permissions=["web:scrape"])
    session.resources.bind("browser", lambda: ChromiumBrowser("/nowhere/chromium"))
    result = await Scraper(session).scrape("http://127.0.0.1/")
    assert result.error is not None
    assert result.error.code == "PRECONDITION_FAILED"
    assert "there is no browser at /nowhere/chromium; install Chromium" in result.message


@pytest.mark.parametrize("url", ["ftp://example.org", "example.org", "file:///etc/passwd"])
async def test_a_url_that_is_not_http_is_invalid_arguments(url: str) -> None:
    result = await offline().scrape(url)
    assert result.error is not None
    assert result.error.code == "INVALID_ARGUMENTS"


async def test_the_cache_keeps_the_newest_pages_only() -> None:
    scraper = offline()
    for number in range(25):
        await scraper.scrape(f"http://127.0.0.1/{number}")
    cache = scraper.session.memory.read("short-term", "web:cache")
    assert list(cache) == [f"http://127.0.0.1/{number}" for number in range(5, 25)]


async def test_a_page_too_large_for_any_memory_is_refused() -> None:
    result = await offline().scrape("http://127.0.0.1/huge")
    assert not result.success
    assert result.error is not None
    assert result.error.suggestions == ("Give a selector for the part you need",)


async def test_the_cache_is_the_session_s_own_and_goes_with_a_failing_call() -> None:
    def refuse() -> None:
        raise RuntimeError("no")

    scraper = offline()
    recorder = Recorder(scraper.session)
    await scraper.scrape("http://127.0.0.1/kept")
    assert [committed.effects for committed in recorder.of(Committed)] == [[]]  # nothing reached outside
    failing = Tool[Any, Scraped](
        name="web_scrape",
        description="Scrape, then fail.",
        handler=web_scrape.handler,
        parameters=web_scrape.parameters,
        effects=(*web_scrape.effects, NotificationEffect(event="x", apply=refuse)),
    )
    scraper.registry = ToolRegistry([failing])
    assert not (await scraper.scrape("http://127.0.0.1/dropped")).success
    assert list(scraper.session.memory.read("short-term", "web:cache")) == ["http://127.0.0.1/kept"]


async def test_the_rollback_removes_the_cache_entry_or_brings_the_old_one_back() -> None:
    scraper = offline()
    (effect,) = web_scrape.effects
    old = {"http://127.0.0.1/": {"content": "old", "timestamp": 1.0}}
    for before in ({}, old):
        draft = scraper.session.draft()
        draft.memory.write("short-term", "web:cache", {**before, "http://127.0.0.1/": {"content": "new"}})
        receipt = {"url": "http://127.0.0.1/", "before": before.get("http://127.0.0.1/")}
        await effect.roll_back(context_for(web_scrape, draft, scraper.registry), receipt)
        assert draft.memory.read("short-term", "web:cache") == before
