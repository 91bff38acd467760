"""The result of an MCP tool as ours: texts, structured content, and files for the asset store."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

import msgspec

from narratoria.errors import EXECUTION_FAILED, ToolFailure
from narratoria.kinds.kept_files import File, keep_files
from narratoria.kinds.redaction import Redaction
from narratoria.tools.tool import ToolContext, ToolResult

if TYPE_CHECKING:
    from mcp_types import CallToolResult

MOST_FILES: Final = 100
_DECODE: Final = msgspec.json.Decoder().decode


async def as_tool_result(
    result: CallToolResult, context: ToolContext, redaction: Redaction
) -> ToolResult[Any]:
    """Return an MCP result as ours, with its files in the asset store. One with `isError` raises `ToolFailure`."""
    texts, files = _read(result)
    text = redaction.text("\n".join(one for one in texts if one))
    if files:
        await keep_files(files, context, redaction)
    if result.is_error:
        details = {"structuredContent": redaction.data(result.structured_content)}
        raise ToolFailure(
            EXECUTION_FAILED,
            f"{context.tool.name}: {text or 'the tool reported an error without a text'}",
            details=details if result.structured_content is not None else None,
        )
    structured = redaction.data(result.structured_content)
    value, said = _value(structured, text)
    return ToolResult.ok(value, text, exclude_value_from_context=said)


def _value(structured: Any, text: str) -> tuple[Any, bool]:
    """Return the value, and whether the text says the same. A text that is a JSON object is a value too."""
    parsed = _parsed(text)
    if structured is not None:
        return structured, structured == parsed or structured == {"result": text}
    if parsed is not None:
        return parsed, True
    return ({"text": text} if text else None), True


def _parsed(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        value = _DECODE(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _read(result: CallToolResult) -> tuple[list[str], list[File]]:
    texts: list[str] = []
    files: list[File] = []
    for block in result.content:
        number = len(files) + 1
        if block.type == "text":
            texts.append(block.text)
        elif block.type in ("image", "audio"):
            files.append(File(f"{block.type}-{number}", block.type, block.mime_type, _bytes(block.data)))
        elif block.type == "resource":
            files.append(_resource(block.resource, texts))
        elif block.type == "resource_link":
            texts.append(f"[{block.title or block.name}]({block.uri})")
        if len(files) > MOST_FILES:
            raise ToolFailure(EXECUTION_FAILED, f"the result has more than {MOST_FILES} files")
    return texts, files


def _resource(resource: Any, texts: list[str]) -> File:
    """Return an embedded resource as a file; the text of one that is a text is in the result too."""
    uri = str(resource.uri)
    name = uri.rstrip("/").rpartition("/")[2].partition("?")[0] or "resource"
    text = getattr(resource, "text", None)
    if text is not None:
        texts.append(text)
        media_type = resource.mime_type or "text/plain"
        return File(name, "text", media_type, text.encode(), {"uri": uri})
    media_type = resource.mime_type or "application/octet-stream"
    family = media_type.partition("/")[0]
    kind = family if family in ("image", "audio", "video") else "file"
    return File(name, kind, media_type, _bytes(resource.blob), {"uri": uri})


def _bytes(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise ToolFailure(EXECUTION_FAILED, "a file in the result is not valid base64") from None
