"""Two built-in tools: `web_scrape` and `file_write`.

Neither does anything until the session grants its permission, and both work only on resources that the session
provides: a browser, a filesystem.
"""
# They are the examples of 004.

from __future__ import annotations

import base64
import binascii
import hashlib
import time
import zlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from narratoria.errors import NarratoriaError, ToolFailure
from narratoria.kinds.browser import Browser, PageError
from narratoria.session.resources.file_changes import LARGEST_KEPT, unpacked
from narratoria.session.resources.filesystem import Filesystem
from narratoria.session.resources.host_folder import PathRefusedError
from narratoria.tools.contract import (
    MemoryEffect,
    NotificationEffect,
    PermissionPrecondition,
    ResourcePrecondition,
    StateChangeEffect,
    StatePrecondition,
)
from narratoria.tools.retry import RetryPolicies
from narratoria.tools.tool import Tool, ToolContext, ToolResult

BROWSER: Final = "browser"
CACHE_KEY: Final = "web:cache"
CACHED_PAGES: Final = 20
LARGEST_PAGE: Final = 2_000_000  # characters


# --- web_scrape ----------------------------------------------------------------------------------------


class Scraped(msgspec.Struct, frozen=True):
    url: str
    content: str
    timestamp: float


async def _scrape(params: Mapping[str, Any], *, context: ToolContext) -> ToolResult[Scraped]:
    browser: Browser = context.resources.get(BROWSER)
    try:
        page = await browser.read(
            params["url"], selector=params.get("selector"), wait=max(0.0, params["waitFor"] / 1000)
        )
    except PageError as problem:
        raise ToolFailure(
            "SCRAPE_FAILED", str(problem), suggestions=["Check URL validity", "Verify page accessibility"]
        ) from None
    if len(page.content) > LARGEST_PAGE:
        raise ToolFailure(
            "SCRAPE_FAILED",
            f"{params['url']} has {len(page.content)} characters, more than {LARGEST_PAGE}",
            recoverable=False,
            suggestions=["Give a selector for the part you need"],
        )
    what = page.title or params["url"]
    return ToolResult.ok(Scraped(params["url"], page.content, time.time()), f"Read {what}.")


def _browser_is_available(context: ToolContext) -> bool:
    if not context.resources.has(BROWSER):
        return False
    context.resources.get(BROWSER).check()  # says what is missing; the precondition reports it
    return True


class _CachePage(MemoryEffect):
    """Keeps the page in memory under `web:cache` and its URL; inside the session, so it goes with the draft."""

    # 004, `web_scrape`.

    async def perform(self, a_call: Any) -> dict[str, Any]:
        page: Scraped = a_call.result.value
        cache = a_call.context.memory.read(self.scope, self.key) or {}
        before = cache.pop(page.url, None)
        cache[page.url] = {"content": page.content, "timestamp": page.timestamp}
        newest = dict(list(cache.items())[-CACHED_PAGES:])
        a_call.context.memory.write(self.scope, self.key, newest)
        return {"url": page.url, "before": before}

    def retract(self, context: ToolContext, receipt: Any) -> None:
        cache = context.memory.read(self.scope, self.key) or {}
        cache.pop(receipt["url"], None)
        if receipt["before"] is not None:
            cache[receipt["url"]] = receipt["before"]
        context.memory.write(self.scope, self.key, cache)


web_scrape: Final[Tool[Any, Scraped]] = Tool(
    name="web_scrape",
    description="Extract content from a web page",
    handler=_scrape,
    parameters={
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
    },
    preconditions=(
        ResourcePrecondition(
            resource=BROWSER, description="Browser must be available", check=_browser_is_available
        ),
        PermissionPrecondition(permission="web:scrape", description="Web scraping must be allowed"),
    ),
    effects=(
        _CachePage(
            scope="short-term",
            operation="write",
            key=CACHE_KEY,
            description="Cache scraped content",
        ),
    ),
    timeout=30.0,
    retry=RetryPolicies.STANDARD,
)


# --- file_write ----------------------------------------------------------------------------------------


class Written(msgspec.Struct, frozen=True, rename="camel"):
    path: str
    bytes_written: int
    timestamp: float


def _write(params: Mapping[str, Any], *, context: ToolContext) -> ToolResult[Written]:
    path, files = params["path"], context.filesystem
    data = _encoded(params["content"], params["encoding"])
    try:
        before = files.read_bytes(path) if files.exists(path) else None
        own = before == data and _interrupted(context)
        if before is not None and not own and not params["overwrite"]:
            raise ToolFailure(
                "FILE_EXISTS",
                f"File '{path}' already exists",
                suggestions=["Set overwrite: true", "Choose different path"],
            )
        context.receipt = _receipt(context, path, before, data)
        if own:
            context.receipt = _receipt_of_the_interrupted(context.receipt, overwrite=params["overwrite"])
        files.write_bytes(path, data)
    except (OSError, PathRefusedError) as problem:
        raise _write_failed(problem) from None
    message = f"Wrote {len(data)} bytes to {path}."
    if "lost" in context.receipt:
        message += " What it held before is too large to be brought back by an undo."
    return ToolResult.ok(Written(path, len(data), time.time()), message)


def _interrupted(context: ToolContext) -> bool:
    """Tell if this call may have written before, in a process that was killed. The call is then repeated, and its own
    earlier file is no obstacle.
    """
    session = context.session.root
    return session.journal is not None and session.journal.resumes(session.turn)


def _receipt_of_the_interrupted(receipt: dict[str, Any], *, overwrite: bool) -> dict[str, Any]:
    """Return the receipt of a repeated call. The existing content is our own: without `overwrite` there was nothing
    before, with it the earlier content is unknown.
    """
    own = {key: value for key, value in receipt.items() if key not in ("before", "lost")}
    return {**own, "forgotten": True} if overwrite else own


def _encoded(content: str, encoding: str) -> bytes:
    """Return `content` as bytes in `encoding`; refuse content that does not fit."""
    # 004 has `Buffer.from(content, encoding)`, which mangles it instead.
    try:
        return base64.b64decode(content, validate=True) if encoding == "base64" else content.encode(encoding)
    except (UnicodeEncodeError, binascii.Error) as problem:
        raise _write_failed(f"the content is not {encoding}: {problem}") from None


def _write_failed(problem: object) -> ToolFailure:
    return ToolFailure("WRITE_FAILED", str(problem), recoverable=False)


def _receipt(context: ToolContext, path: str, before: bytes | None, data: bytes) -> dict[str, Any]:
    """Return all that an undo needs, also in a later run of the program: the earlier content, and the written one."""
    files = context.filesystem
    parts = path.split("/")
    above = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
    receipt: dict[str, Any] = {
        "path": path,
        "written": hashlib.sha256(data).hexdigest(),
        "made": [folder for folder in above if folder and not files.exists(folder)],
    }
    if before is not None and len(before) <= LARGEST_KEPT:
        receipt["before"] = base64.b64encode(zlib.compress(before)).decode()
    elif before is not None:
        receipt["lost"] = len(before)
    return receipt


def _take_back(context: ToolContext) -> None:
    """Remove the file, or put back the content it replaced; unless somebody else has changed it since.

    A file already taken back counts as success: an interrupted undo is repeated.
    """
    receipt, files = context.receipt, context.filesystem
    path = receipt["path"]
    now = files.read_bytes(path) if files.exists(path) else None
    known = "lost" not in receipt and "forgotten" not in receipt  # what was there before, if anything was
    try:
        before = unpacked(receipt["before"]) if "before" in receipt else None
    except (ValueError, zlib.error) as error:
        raise NarratoriaError(f"{path}: {error}; it is left as it is") from None
    if not known or now != before:
        if now is None or hashlib.sha256(now).hexdigest() != receipt["written"]:
            raise NarratoriaError(f"{path} was changed after it was written, so it is left as it is")
        if "lost" in receipt:
            raise NarratoriaError(
                f"{path} had {receipt['lost']} bytes before, too many to be kept for an undo"
            )
        if "forgotten" in receipt:
            raise NarratoriaError(f"what {path} held before was lost in a crash, so it is left as it is")
        if before is not None:
            files.write_bytes(path, before)
        else:
            files.delete(path)
    if before is None:
        for folder in reversed(receipt["made"]):
            if files.is_dir(folder) and not files.list(folder):
                files.delete(folder)


file_write: Final[Tool[Any, Written]] = Tool(
    name="file_write",
    description="Write content to a file",
    handler=_write,
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "File path to write to"},
            "content": {"type": "string", "description": "Content to write"},
            "encoding": {
                "type": "string",
                "description": "File encoding",
                "enum": ["utf-8", "ascii", "base64"],
                "default": "utf-8",
            },
            "overwrite": {"type": "boolean", "description": "Overwrite existing file", "default": False},
        },
        "required": ["path", "content"],
    },
    preconditions=(
        PermissionPrecondition(permission="file:write", description="File write permission required"),
        ResourcePrecondition(
            resource="filesystem",
            description="A filesystem must be provided",
            check=lambda context: context.resources.has(Filesystem),
        ),
        StatePrecondition(
            state="file:exists",
            description="File must not exist unless overwrite is true",
            critical=False,
            check=lambda: True,  # 004: "This check happens during execution"
        ),
    ),
    effects=(
        StateChangeEffect(
            state="file",
            description="The file holds the content",
            apply=lambda context: context.receipt,  # the handler knows what was there before it wrote
            rollback=_take_back,
        ),
        NotificationEffect(
            event="file:changed",
            description="Notify on file change",
            payload={"path": {"$result": "path"}, "action": "write", "timestamp": {"$result": "timestamp"}},
        ),
    ),
    timeout=10.0,
    retry=RetryPolicies.QUICK,
)
