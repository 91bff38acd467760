"""The answer to a call: text, structured content, and what the tool made, as content or as links."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

from narratoria.errors import ToolValidationError
from narratoria.events import AssetStored, JsonObject
from narratoria.mcp_server.catalogue import WRAPPED, Listed
from narratoria.mcp_server.offered_resources import asset_link, asset_uri, is_text
from narratoria.session.assets import AssetStore
from narratoria.tools import schema
from narratoria.tools.tool import ToolResult

LARGEST_CONTENT: Final = 4 * 1024 * 1024
"""Bytes of a picture, sound or text that is put into an answer; a larger one is linked."""


def answer_of(
    result: ToolResult[Any], listed: Listed, assets: Sequence[AssetStored], store: AssetStore
) -> JsonObject:
    """The answer to `tools/call`."""
    if not result.success:
        return failure(result, assets, store)
    if result.value is None and not listed.may_be_empty:
        # A client that checks the output schema would refuse the answer, and the model would learn nothing of it.
        told = f"{result.message}\n(done, but the tool gave no value, which its declared result asks for)"
        return {"content": [{"type": "text", "text": told.strip()}], "isError": True}
    try:
        text, structured = result.render(), structured_content(result.value, listed)
    except ToolValidationError as error:
        told = f"{result.message}\n(done, but what it returned cannot be sent: {error})"
        return {"content": [{"type": "text", "text": told.strip()}], "isError": True}
    content: list[JsonObject] = []
    if text:
        content.append({"type": "text", "text": text})
    content.extend(content_of(asset, store) for asset in assets)
    if not content:
        content.append({"type": "text", "text": "done"})
    answer: JsonObject = {"content": content, "isError": False}
    if structured is not None:
        answer["structuredContent"] = structured
    if (made := result.metadata) is not None:
        answer["_meta"] = {"narratoria/call": made.call_id}
    return answer


def structured_content(value: Any, listed: Listed) -> JsonObject | None:
    if listed.wrapped:
        return {WRAPPED: schema.dump(value)}
    if value is None:
        return {} if listed.structured else None
    data = schema.dump(value)
    return data if isinstance(data, dict) else None


def failure(result: ToolResult[Any], assets: Sequence[AssetStored], store: AssetStore) -> JsonObject:
    """The answer to a call that failed: text a model can act on, and the error as data beside it."""
    error = result.failure
    lines = [result.message or "the call failed"]
    details: JsonObject = {}
    if error is not None:
        lines += [f"- {one}" for one in error.suggestions if one not in result.message]
        details = schema.dump(error)
    return {
        "content": [{"type": "text", "text": "\n".join(lines)}, *(content_of(one, store) for one in assets)],
        "isError": True,
        "_meta": {"narratoria/error": details},
    }


def content_of(asset: AssetStored, store: AssetStore) -> JsonObject:
    """A picture or a sound as content, a text as an embedded resource, anything else as a link.

    A drawing in SVG is a text: models take no pictures of that kind, and hosts pass them on unseen.
    """
    family = "text" if is_text(asset.media_type) else asset.media_type.partition("/")[0]
    try:
        path = store.path_of(asset.hash)
        if asset.size > LARGEST_CONTENT or not (family in ("image", "audio") or is_text(asset.media_type)):
            return {"type": "resource_link", **asset_link(asset)}
        content = path.read_bytes()
    except (KeyError, OSError):  # removed by somebody; the link says so when it is followed
        return {"type": "resource_link", **asset_link(asset)}
    uri = asset_uri(asset)
    meta = {"narratoria/asset": {"uri": uri, "id": asset.asset_id, "kind": asset.kind}}
    if family in ("image", "audio"):
        data = base64.b64encode(content).decode("ascii")
        return {"type": family, "data": data, "mimeType": asset.media_type, "_meta": meta}
    text = content.decode("utf-8", "replace")
    return {
        "type": "resource",
        "resource": {"uri": uri, "mimeType": asset.media_type, "text": text},
        "_meta": meta,
    }
