"""The API described for other clients: one table makes the routes, the OpenAPI document and its page."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec

from narratoria import __version__
from narratoria.web.documents import Document, Problem, Request
from narratoria.web.narration_html import FeedRecord

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
BINARY: Final = "application/octet-stream"
STREAM: Final = "text/event-stream"
SECURITY: Final[list[dict[str, list[str]]]] = [{"token": []}, {"page": []}]
"""The sign-ins that each operation asks for, one of them: `access.py` lets nobody in without."""

EVENTS: Final = """\
Server-sent events. A message is a JSON array of records, oldest first; its `id` is the number of the last.
A new connection gets the whole past first, or what follows `Last-Event-ID` (or `?after=`). An event named
`snapshot` carries `{"seq": n, "earlier": m, "records": [...]}`: forget everything and begin from these. It comes
first with `?turns=50`, which asks for no more than the newest fifty turns (`earlier` says how many are left out),
and when a viewer was too slow. With `?once=1` the answer ends when it has caught up, with an event named `later`. A
browser, which has few connections for all its windows, names itself by `?browser=`: beyond its fourth stream it gets
such an answer too, and asks again. A record of narration carries the text as sanitised HTML too, in `prose`: `blocks`,
each one element, that follow the first `kept` of those sent before for that turn and attempt. You may ignore it."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the API. `name` is also the method of `Api` that answers."""

    method: Method
    path: str
    name: str
    summary: str
    body: type[Request] | str | None = None
    answer: Any = None
    status: int = 200
    description: str = ""
    query: Mapping[str, str] = field(default_factory=dict)  # name and JSON type of what an address may carry


def document(operations: Sequence[Operation], cookie: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document. `cookie` is the name of the cookie that the page is known by."""
    types: list[Any] = [Problem, FeedRecord]
    for operation in operations:
        types += [
            one for one in (operation.body, operation.answer) if one is not None and not isinstance(one, str)
        ]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    found = {id(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, found)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Narratoria",
            "version": __version__,
            "description": "Sign in with the cookie of the page, or with `Authorization: Bearer <token>`.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "For programs: the token that `narratoria play` printed, or one of `POST /tokens`.",
                },
                "page": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": cookie,
                    "description": "For the page: a browser gets it by opening an address with `?token=`.",
                },
            },
        },
        "security": SECURITY,
    }


def _operation(operation: Operation, schemas: dict[int, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"operationId": operation.name, "summary": operation.summary}
    if operation.description:
        described["description"] = operation.description
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    described["parameters"] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
    ] + [{"name": name, "in": "query", "schema": {"type": kind}} for name, kind in operation.query.items()]
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": _content(operation.body, schemas)}
    answer: dict[str, Any] = {"description": operation.summary}
    if operation.answer is not None:
        answer["content"] = _content(operation.answer, schemas)
    problem = {"description": "Refused", "content": _content(Problem, schemas)}
    unknown = {"description": "Not signed in", "content": _content(Problem, schemas)}
    described["security"] = SECURITY
    described["responses"] = {str(operation.status): answer, "401": unknown, "default": problem}
    if operation.body is not None:
        described["responses"]["413"] = problem | {"description": "Refused: the body is too large"}
    return described


def _content(kind: Any, schemas: dict[int, Any]) -> dict[str, Any]:
    if kind == STREAM:
        return {STREAM: {"schema": {"type": "string"}}}
    if isinstance(kind, str):
        return {kind: {"schema": {"type": "string", "format": "binary"}}}
    return {"application/json": {"schema": schemas[id(kind)]}}


def reference_page(operations: Sequence[Operation]) -> str:
    """Return the same as a plain HTML page, readable without script."""
    rows = "".join(
        f"<tr><td><code>{operation.method}</code></td><td><code>{html.escape(operation.path)}</code></td>"
        f"<td>{html.escape(operation.summary)}{_fields(operation.body)}{_details(operation)}</td></tr>"
        for operation in operations
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Narratoria API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="/static/css/theme.css">'
        '<link rel="stylesheet" href="/static/css/reference.css">'
        "</head><body><main><h1>Narratoria API</h1>"
        "<p>Sign in with the cookie of the page, or send <code>Authorization: Bearer</code> and the token "
        "that <code>narratoria play</code> printed. "
        'For machines: <a href="/openapi.json">openapi.json</a>.'
        f"</p><table><thead><tr><th>Method</th><th>Path</th><th>What it does</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></main></body></html>"
    )


def _fields(body: type[Request] | str | None) -> str:
    if body is None:
        return ""
    if isinstance(body, str):
        return f"<p>Body: <code>{body}</code></p>"
    names = ", ".join(f"<code>{html.escape(name)}</code>" for name in _names(body))
    return f"<p>Body: {names}</p>" if names else ""


def _names(kind: type[Request] | type[Document]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(kind)]


def _details(operation: Operation) -> str:
    return f"<p>{html.escape(operation.description)}</p>" if operation.description else ""
