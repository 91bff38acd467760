"""The parts of a request to the API, checked: its session, its numbers and flags, and its body."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest

from narratoria.errors import NarratoriaError
from narratoria.store.story_search import LONGEST_QUERY, MOST_WORDS, words_of
from narratoria.strict_json import check_whole, why_unreadable
from narratoria.tools.schema.excerpts import excerpt
from narratoria.typed_values import decoder
from narratoria.unicode_text import as_one_line
from narratoria.web import documents
from narratoria.web.cards import LONGEST_TITLE

MAX_BODY: Final = 1024 * 1024
MAX_DIGITS: Final = 15

T = TypeVar("T", bound=documents.Request)
R = TypeVar("R")


class BadRequest(NarratoriaError):
    """The body does not fit the operation."""


class BodyTooLarge(NarratoriaError):
    """The body is larger than any that is read."""


def session_id(request: HttpRequest) -> str:
    return str(request.path_params["id"])


def named_call(request: HttpRequest) -> tuple[str, int | None]:
    """Return the call and the turn that the address names."""
    call, turn = request.query_params.get("call"), request.query_params.get("turn")
    if call is None:
        raise BadRequest("name the call, as in ?call=9d2c:weigh")
    return call, None if turn is None else number("turn", turn)


async def unless_left(request: HttpRequest, doing: Coroutine[Any, Any, R]) -> R:
    """Await something for a client; cancel it when the client closes the connection."""
    task = asyncio.ensure_future(doing)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait([task, leaving], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise ClientDisconnect
        return task.result()
    finally:
        leaving.cancel()
        if not task.done():  # we are cancelled ourselves
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _left(request: HttpRequest) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def one_line(what: str, given: str) -> str:
    """Return text as one readable line: a title stands on cards, in menus and in the names of files."""
    title = as_one_line(given)
    if not title or len(title) > LONGEST_TITLE:
        raise BadRequest(f"{what} has 1 to {LONGEST_TITLE} letters in one line; this one has {len(title):,}")
    return title


def search_words(query: str) -> list[str]:
    """Return the words of a query, or refuse it."""
    if len(query) > LONGEST_QUERY:
        raise BadRequest(
            f"words: at most {LONGEST_QUERY} letters are searched for, these are {len(query):,}; take fewer"
        )
    words = words_of(query)
    if not words:
        raise BadRequest("words: say what to search for, as in ?words=lamp")
    if len(words) > MOST_WORDS:
        raise BadRequest(
            f"words: at most {MOST_WORDS} words are searched for, these are {len(words)}; take fewer"
        )
    return words


def number(name: str, given: str) -> int:
    if not given.isascii() or not given.isdecimal() or len(given) > MAX_DIGITS:
        raise BadRequest(f"{name} must be a number such as 50, not {given[:40]!r}")
    return int(given)


def flag(request: HttpRequest, name: str) -> bool:
    given = request.query_params.get(name, "false")
    if given not in ("true", "false"):
        raise BadRequest(f"{name} must be true or false, not {given[:40]!r}")
    return given == "true"


async def body_of(request: HttpRequest, kind: type[T], without: T | None = None) -> T:
    """Return the body as `kind`, or `without` if it is missing and may be.

    The content type is required: a form on another site cannot send JSON.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > MAX_DIGITS or int(declared) > MAX_BODY):
        raise BodyTooLarge(f"the body has more than {MAX_BODY:,} bytes")  # before it is waited for
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > MAX_BODY:
            raise BodyTooLarge(f"the body has more than {MAX_BODY:,} bytes")
    if without is not None and not content:
        return without
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise BadRequest("send the body as JSON, with Content-Type: application/json")
    if not content:
        raise BadRequest("the body is empty; send a JSON object")
    try:
        body = decoder(kind).decode(content)
        check_whole(bytes(content))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        why = why_unreadable(bytes(content), error)
        raise BadRequest(f"the body does not fit: {excerpt(why)}") from None
    return body
