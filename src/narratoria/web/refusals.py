"""Answers to requests that fail: a document for a program, a page for a person."""

from __future__ import annotations

import html
import re
from typing import Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from narratoria.web.catalogues import VARY, shipped

WAYS_OUT: Final = frozenset({404, 405})
TITLES: Final = {
    401: "refusal.who",
    403: "refusal.from_elsewhere",
    404: "refusal.nothing",
    405: "refusal.nothing_to_read",
    421: "refusal.another_name",
}
TEXTS: Final = {
    "wrong_host": "refusal.wrong_host",
    "wrong_origin": "refusal.wrong_origin",
    "not_signed_in": "refusal.not_signed_in",
    "wrong_token": "refusal.wrong_token",
    "wrong_method": "refusal.wrong_method",
    "not_found": "refusal.not_found",
    "database": "refusal.database",
    "too_many": "refusal.too_many",
    "sign_in_failed": "refusal.sign_in_failed",
    "too_large": "refusal.too_large",
}
WAY_OUT: Final = '<p><a class="way-out" href="/">{{page.to_library}}</a></p>'
WAY_IN: Final = '<p><a class="way-out" href="ADDRESS">{{refusal.sign_in}}</a></p>'
PAGE: Final = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Narratoria</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<link rel="icon" href="/static/icon.svg" type="image/svg+xml">'
    '<link rel="stylesheet" href="/static/css/theme.css">'
    '<link rel="stylesheet" href="/static/css/reference.css">'
    '</head><body><main class="refusal">'
)


def refusal(
    headers: Headers,
    status: int,
    error: str,
    message: str | None = None,
    *,
    text: str | None = None,
    sign_in: str | None = None,
    **values: object,
) -> Response:
    """Return the answer in the client's format and language. `error` says which text it is, unless `text` names another
    or `message` is given; `like this` stands for code in it. `sign_in` is an address where a person can sign in.
    """
    words = shipped().chosen(headers)
    message = message or words.say(text or TEXTS[error], **values)
    if "text/html" not in headers.get("accept", ""):
        return JSONResponse({"error": error, "message": message}, status, {"Vary": VARY})
    marked = re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(message))
    title = html.escape(words.say(TITLES.get(status, "refusal.other")))
    way_out = words.document(WAY_OUT) if status in WAYS_OUT else ""
    if sign_in is not None:
        way_out = words.document(WAY_IN).replace("ADDRESS", html.escape(sign_in))
    return HTMLResponse(
        f"{words.document(PAGE)}<h1>{title}</h1><p>{marked}</p>{way_out}"
        f'<p class="status">{html.escape(words.say("refusal.status", status=status))}</p></main></body></html>',
        status,
        {"Vary": VARY},
    )


async def explain_route(request: Request, error: Exception) -> Response:
    """Answer a request for an unknown address or method."""
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == 405:
        response = refusal(request.headers, 405, "wrong_method", method=request.method)
    else:
        response = refusal(request.headers, error.status_code, "not_found")
    response.headers.update(error.headers or {})
    return response
