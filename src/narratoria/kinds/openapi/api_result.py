"""The answer of a server as a result: JSON is the value, text the message, anything else an asset."""

from __future__ import annotations

import email.message
import math
from typing import Any, Final

from narratoria import bounds
from narratoria.errors import EXECUTION_FAILED, PROTOCOL_ERROR, CallFailure, ToolFailure
from narratoria.kinds.kept_files import File, keep_files
from narratoria.kinds.openapi.http_exchange import Answer
from narratoria.kinds.openapi.operations import is_json
from narratoria.kinds.redaction import Redaction
from narratoria.tools.tool import ToolContext, ToolResult

LONGEST_ERROR: Final = 2_000  # characters of the text of a failed answer
LONGEST_HEADER: Final = 2_000
_TOLD: Final = ("location", "link")  # where a thing was made, and where the next page is
_ABOUT: Final = ("content-type", "content-length", "last-modified", "etag", "location", "link", "allow")
_TEXTS: Final = frozenset(
    ("application/xml", "application/yaml", "application/x-yaml", "application/javascript", "application/x-ndjson",
     "application/x-www-form-urlencoded", "application/graphql")
)  # fmt: skip


async def as_tool_result(
    answer: Answer, method: str, context: ToolContext, redaction: Redaction
) -> ToolResult[Any]:
    """Return a good answer as a result, with its file in the asset store."""
    said = _headline(answer, redaction)
    if method == "HEAD" or not answer.content:
        about = {name: redaction.text(answer.headers[name]) for name in _ABOUT if name in answer.headers}
        return ToolResult.ok(about if method == "HEAD" else None, said)
    media_type = answer.media_type
    if is_json(media_type):
        return ToolResult.ok(redaction.data(_json(answer, context)), said)
    if (
        not media_type
        or media_type.startswith("text/")
        or media_type.endswith("+xml")
        or media_type in _TEXTS
    ):
        text = redaction.text(_text(answer))
        return ToolResult.ok({"text": text}, text, exclude_value_from_context=True)
    family = media_type.partition("/")[0]
    kind = family if family in ("image", "audio", "video") else "file"
    name = redaction.text(_filename(answer) or context.tool.name.rpartition(".")[2])
    content = redaction.content(answer.content)
    await keep_files([File(name, kind, media_type, content)], context, redaction)
    value = {"file": name, "mediaType": media_type, "bytes": len(content)}
    return ToolResult.ok(value, f"{said}: {name}, {media_type}, {len(content):,} bytes")


def failure_of(
    answer: Answer, context: ToolContext, redaction: Redaction, *, repeatable: bool, advice: list[str]
) -> ToolFailure:
    """Return the failure that an answer tells of, with its text, bounded."""
    text = redaction.text(_text(answer, 4 * LONGEST_ERROR)).strip()
    if len(text) > LONGEST_ERROR:
        text = f"{text[:LONGEST_ERROR]}… ({len(answer.content):,} bytes)"
    code, recoverable = EXECUTION_FAILED, False
    if answer.is_rate_limit:
        code, recoverable = "RATE_LIMIT", True
    elif answer.status >= 500:
        code, recoverable = "SERVER_ERROR", repeatable
    elif answer.status in (408, 425):
        recoverable = repeatable
    details: dict[str, Any] = {"status": answer.status}
    if (wait := answer.wait()) is not None:
        details["retryAfter"] = round(wait, 3)
        if answer.is_rate_limit:
            advice = [*advice, f"try again in {math.ceil(wait)} s"]
    message = f"{context.tool.name}: {_headline(answer, redaction)}{f': {text}' if text else ''}"
    return ToolFailure(code, message, recoverable=recoverable, suggestions=advice, details=details)


def _headline(answer: Answer, redaction: Redaction) -> str:
    said = f"{answer.status} {answer.reason}".strip()
    for name in _TOLD:
        if value := answer.headers.get(name):
            said += f"; {name.capitalize()}: {redaction.text(value)[:LONGEST_HEADER]}"
    return said


def _json(answer: Answer, context: ToolContext) -> Any:
    try:
        return bounds.decode_json(answer.content)
    except (ValueError, RecursionError) as error:
        raise CallFailure(
            PROTOCOL_ERROR, f"{context.tool.name}: the answer says that it is JSON, and is not: {error}"
        ) from None


def _text(answer: Answer, most: int | None = None) -> str:
    content = answer.content if most is None else answer.content[:most]
    try:
        return content.decode(answer.charset or "utf-8", "replace")
    except LookupError:  # a charset that nobody knows
        return content.decode("utf-8", "replace")


def _filename(answer: Answer) -> str | None:
    """Return the last part of the name that the server gives the file."""
    header = email.message.Message()
    header["content-disposition"] = answer.headers.get("content-disposition", "").replace("\n", " ")
    name = header.get_filename()
    return name.replace("\\", "/").rpartition("/")[2][:200] or None if name else None
