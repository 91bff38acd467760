"""A browser as a resource: Chromium through Playwright, where both are installed.

Playwright ties its objects to one event loop, but a session may outlive loops and its calls may come from
worker threads. So the browser lives in a thread with a loop of its own; it is launched at the first page and
closed with the session's resources.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from narratoria.errors import NarratoriaError
from narratoria.extras import absent, needed
from narratoria.kinds.environment import standard

T = TypeVar("T")
CLOSING_TIME: Final = 10.0
NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_QUIET: Final = ("--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")


class BrowserMissingError(NarratoriaError):
    """No browser is available; the message says what to install."""


class PageError(NarratoriaError):
    """A page could not be read."""


@dataclass(frozen=True)
class PageContent:
    url: str
    title: str
    content: str


@runtime_checkable
class Browser(Protocol):
    """The browser that `web_scrape` needs; bind your own to use another one."""

    def check(self) -> None:
        """Raise `BrowserMissingError` when no page could be opened."""

    async def read(self, url: str, *, selector: str | None, wait: float) -> PageContent:
        """Open `url`, wait `wait` seconds, and return the text of `selector` or the page's HTML."""


class ChromiumBrowser:
    """Headless Chromium. Without an `executable`, one is looked for on the PATH."""

    def __init__(
        self, executable: str | None = None, *, args: Sequence[str] = (), timeout: float = 25.0
    ) -> None:
        self.executable = executable
        self.timeout = timeout
        # Chromium refuses to run sandboxed as root.
        unsandboxed = ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()
        self.args = (*_QUIET, *unsandboxed, *args)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._launching: asyncio.Task[Any] | None = None
        self._playwright: Any = None

    def check(self) -> None:
        """Raise `BrowserMissingError`, with what to install, if there is no browser."""
        if absent("browser"):
            raise BrowserMissingError(f"a browser {needed('browser')}")
        self._find()

    def _find(self) -> str:
        found = (
            self.executable
            if self.executable is not None
            else next(filter(None, map(shutil.which, NAMES)), None)
        )
        if found is None or not os.access(found, os.X_OK):
            missing = f"there is no browser at {found}" if found else "no Chromium is on the PATH"
            raise BrowserMissingError(f"{missing}; install Chromium, or pass ChromiumBrowser(executable=…)")
        return found

    async def read(self, url: str, *, selector: str | None = None, wait: float = 0.0) -> PageContent:
        """Open a page and return its text."""
        self.check()
        return await self._in_thread(lambda: self._read(url, selector, wait))

    async def _read(self, url: str, selector: str | None, wait: float) -> PageContent:
        from playwright.async_api import Error

        context = await (await self._launched()).new_context()
        try:
            context.set_default_timeout(self.timeout * 1000)
            page = await context.new_page()
            response = await page.goto(url)
            if response is not None and response.status >= 400:
                raise PageError(f"{url} answered {response.status} {response.status_text}".rstrip())
            if wait > 0:
                await page.wait_for_timeout(wait * 1000)
            content = await page.content() if selector is None else await _text(page, selector)
            return PageContent(page.url, await page.title(), content)
        except Error as problem:
            raise PageError(f"{url}: {problem.message.splitlines()[0]}") from None
        finally:
            await context.close()

    # --- the browser's own thread ------------------------------------------------------------------------

    async def _launched(self) -> Any:
        """Return the browser, launched once; a failed launch or a dead browser is tried again."""
        if self._launching is not None and self._launching.done() and not _alive(self._launching):
            self._launching = None
        if self._launching is None:
            self._launching = asyncio.ensure_future(self._launch())
        return await asyncio.shield(self._launching)

    async def _launch(self) -> Any:
        from playwright.async_api import async_playwright

        if self._playwright is None:
            self._playwright = await async_playwright().start()
        # A page's browser is a tool like others: it gets what they get.
        env = {os.fsdecode(name): os.fsdecode(value) for name, value in standard().items()}
        return await self._playwright.chromium.launch(
            executable_path=self._find(), args=list(self.args), env=env
        )

    async def _in_thread(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="browser", daemon=True)
                self._thread.start()
            future = asyncio.run_coroutine_threadsafe(make(), self._loop)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """End the browser and its thread. Safe to call twice; a later `read` launches another one."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        try:
            asyncio.run_coroutine_threadsafe(self._shut_down(), loop).result(CLOSING_TIME)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(CLOSING_TIME)
            if not thread.is_alive():
                loop.close()

    async def _shut_down(self) -> None:
        launching, self._launching = self._launching, None
        playwright, self._playwright = self._playwright, None
        try:
            if launching is not None and (not launching.done() or _alive(launching)):
                await (await launching).close()
        finally:
            if playwright is not None:
                await playwright.stop()


def _alive(launching: asyncio.Task[Any]) -> bool:
    return not launching.cancelled() and launching.exception() is None and launching.result().is_connected()


async def _text(page: Any, selector: str) -> str:
    found = await page.query_selector(selector)
    if found is None:
        raise PageError(f"nothing on {page.url} matches the selector {selector!r}")
    return await found.text_content() or ""
