"""The request of a call: arguments written into the path, the query, headers, cookies and the body."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import msgspec

from narratoria.errors import INVALID_ARGUMENTS, ToolFailure
from narratoria.kinds.openapi import styles
from narratoria.kinds.openapi.credentials import Sent
from narratoria.kinds.openapi.operations import FORM, MULTIPART, Body, Operation, Parameter, is_json

MOST_BYTES: Final = 32 * 1024 * 1024
"""Cap on the body of a request."""
Part = tuple[str, tuple[str | None, bytes, str]]


@dataclass
class Request:
    """A request, ready to be sent. `parts` is a multipart body."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    content: bytes | None = field(default=None, repr=False)
    parts: list[Part] | None = field(default=None, repr=False)


def request_of(operation: Operation, address: str, arguments: Mapping[str, Any], sent: Sent) -> Request:
    """Return the request of a call. Raises `ToolFailure` for a value that cannot be said there."""
    said = _Said(operation.path, {"Accept": operation.accept})
    for parameter in operation.parameters:
        if parameter.argument in arguments:
            said.add(parameter, arguments[parameter.argument])
    query = [*said.query, *((styles.escaped(name), styles.escaped(value)) for name, value in sent.query)]
    cookies = [*said.cookies, *sent.cookies]
    if cookies:
        said.headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies)
    segments = quote(said.path, safe="/%" + styles.RESERVED).split("/")
    if any(one in (".", "..") for one in segments):
        raise _wrong("path", "expected values that do not lead to another path")
    url = f"{address}{'/'.join(segments)}"
    if query:
        url += "?" + "&".join(f"{name}={value}" for name, value in query)
    request = Request(operation.method, url, said.headers)
    if operation.body is not None and operation.body.argument in arguments:
        _write_body(request, operation.body, arguments[operation.body.argument])
    request.headers.update(sent.headers)
    return request


@dataclass
class _Said:
    """The parameters of a call, each said in its place."""

    path: str
    headers: dict[str, str]
    query: list[tuple[str, str]] = field(default_factory=list)
    cookies: list[tuple[str, str]] = field(default_factory=list)

    def add(self, parameter: Parameter, value: Any) -> None:
        """Say one parameter. A null is left out, except in the path, which has to have something there."""
        name, style, explode = parameter.name, parameter.style, parameter.explode
        if parameter.as_json:
            value = msgspec.json.encode(value).decode()
        elif value is None and parameter.place != "path":
            return
        if parameter.place == "path":
            said = styles.in_path(name, value, style, explode)
            if not said.strip("."):  # "/pets/" and "/pets/.." are other operations
                raise _wrong(parameter.argument, "expected a value that is not empty and not . or ..")
            self.path = self.path.replace(f"{{{name}}}", said)
        elif parameter.place == "query":
            escape = styles.escaped_but_reserved if parameter.reserved else styles.escaped
            self.query += styles.in_query(name, value, style, explode, escape)
        elif parameter.place == "header":
            self.headers[name] = _header(parameter.argument, styles.in_header(value, explode))
        else:
            self.cookies += styles.in_query(name, value, style, explode)


def _write_body(request: Request, body: Body, value: Any) -> None:
    kind = body.media_type.partition(";")[0].strip().lower()
    if kind == MULTIPART and isinstance(value, Mapping):
        request.parts = [*_parts(body, value)]
        size = sum(len(content) for _, (_, content, _) in request.parts)
    else:
        if kind == FORM and isinstance(value, Mapping):
            pairs = [pair for name, one in value.items() for pair in _form_pairs(body, name, one)]
            request.content = "&".join(f"{name}={one}" for name, one in pairs).encode()
        elif is_json(kind):
            request.content = msgspec.json.encode(value)
        else:
            request.content, _, _ = _bytes(value, body.argument)
        media_type = "application/octet-stream" if "*" in kind else body.media_type
        request.headers["Content-Type"] = media_type
        size = len(request.content)
    if size > MOST_BYTES:
        raise _wrong(body.argument, f"{size:,} bytes, more than the {MOST_BYTES:,} allowed")


def _form_pairs(body: Body, name: str, value: Any) -> list[tuple[str, str]]:
    """The pairs of one property of a form. Without a style, nested values are JSON."""
    encoding = body.encodings.get(name) or {}
    if value is None:
        return []
    if {"style", "explode", "allowReserved"} & encoding.keys():
        style = str(encoding.get("style", "form"))
        explode = encoding.get("explode", style in ("form", "deepObject"))
        return styles.in_query(name, value, style, explode is True)
    if isinstance(value, Mapping) or (
        isinstance(value, list) and any(isinstance(one, Mapping | list) for one in value)
    ):
        return [(styles.escaped(name), styles.escaped(msgspec.json.encode(value).decode()))]
    return styles.in_query(name, value, "form", True)


def _parts(body: Body, value: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of a multipart body; of a list, one for each item."""
    for name, one in value.items():
        declared = (body.encodings.get(name) or {}).get("contentType")
        media_type = declared.split(",")[0].strip() if isinstance(declared, str) else None
        if media_type is not None and "*" in media_type:
            media_type = None
        is_one = not isinstance(one, list) or (media_type is not None and is_json(media_type))
        for item in [one] if is_one else one:
            if item is not None:
                yield name, _part(item, name, media_type, f"{body.argument}.{name}")


def _part(item: Any, name: str, media_type: str | None, argument: str) -> tuple[str | None, bytes, str]:
    """Return the file name, the content and the media type of a part."""
    if isinstance(item, Mapping) and "base64" in item:
        content, filename, said = _bytes(item, argument)
        return filename or name, content, said or media_type or "application/octet-stream"
    if isinstance(item, Mapping | list):
        return None, msgspec.json.encode(item), media_type or "application/json"
    # A declared type means a file, and servers take only parts with a name for one.
    filename = name if media_type and not media_type.startswith("text/plain") else None
    return filename, styles.text_of(item).encode(), media_type or "text/plain"


def _bytes(value: Any, argument: str) -> tuple[bytes, str | None, str | None]:
    if not isinstance(value, Mapping) or "base64" not in value:
        return styles.text_of(value).encode(), None, None
    try:
        content = base64.b64decode(value["base64"], validate=True)
    except (binascii.Error, ValueError):
        raise _wrong(argument, "not valid base64") from None
    filename, media_type = value.get("filename"), value.get("mediaType")
    return content, filename, None if media_type is None else _header(argument, media_type)


def _header(argument: str, value: str) -> str:
    if any(ord(char) < 32 or ord(char) == 127 for char in value):
        raise _wrong(argument, "expected a text without line breaks and control characters")
    return value


def _wrong(argument: str, problem: str) -> ToolFailure:
    return ToolFailure(INVALID_ARGUMENTS, f"{argument}: {problem}", recoverable=False)
