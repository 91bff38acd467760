"""Answers to requests that fail: a document for a program, a page for a person."""

from __future__ import annotations

import html
import re
from typing import Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

TITLES: Final = {
    401: "Who is there?",
    403: "Not from there",
    404: "Nothing is written here",
    405: "Nothing to read here",
    421: "Another name",
}
LIBRARY: Final = '<p><a class="way-out" href="/">To the library</a></p>'


def refusal(headers: Headers, status: int, error: str, message: str) -> Response:
    """Return the answer in the client's format. `message` says what to do; `like this` stands for code."""
    if "text/html" not in headers.get("accept", ""):
        return JSONResponse({"error": error, "message": message}, status)
    text = re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(message))
    way_out = LIBRARY if status in {404, 405} else ""
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Narratoria</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="/static/icon.svg" type="image/svg+xml">'
        '<link rel="stylesheet" href="/static/css/theme.css">'
        '<link rel="stylesheet" href="/static/css/reference.css">'
        '</head><body><main class="refusal">'
        f"<h1>{TITLES.get(status, 'This cannot be done')}</h1><p>{text}</p>{way_out}"
        f'<p class="status">Answer {status}</p></main></body></html>',
        status,
    )


async def explain_route(request: Request, error: Exception) -> Response:
    """Answer a request for an unknown address or method."""
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code == 405:
        answer = f"{request.method} is not how this is asked. `/api` lists what a program can ask for."
        response = refusal(request.headers, 405, "wrong_method", answer)
    else:
        answer = (
            "There is no such page. The library has every story; `/api` lists what a program can ask for."
        )
        response = refusal(request.headers, error.status_code, "not_found", answer)
    response.headers.update(error.headers or {})
    return response
