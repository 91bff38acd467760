"""The six events of the tool protocol: a tool writes them on its standard output, one JSON object a line."""
# 000 §3-4 and §8.

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec

from narratoria.typed_values import decoder

PROTOCOL_VERSION: Final = "0"

JsonObject: TypeAlias = dict[str, Any]
LogLevel: TypeAlias = Literal["debug", "info", "warn", "error"]


# gc=False throughout: events hold JSON data, so they cannot be part of a cycle, and a busy tool makes many thousands.


class ProtocolEvent(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", omit_defaults=True, gc=False
):
    """The fields every event of the tool protocol has."""

    # 000 §3.

    version: Literal["0"]
    request_id: str | None = None
    timestamp: str | None = None


class Log(ProtocolEvent, tag="log", frozen=True, kw_only=True):
    """Progress or a diagnostic. Never an error, whatever its level."""

    # 000 §4.1.

    level: LogLevel
    message: str
    fields: JsonObject | None = None


class StatePatch(ProtocolEvent, tag="state_patch", frozen=True, kw_only=True):
    """A change to the session state, merged as a JSON Merge Patch (RFC 7396)."""

    # 000 §4.2.

    patch: JsonObject


class Asset(ProtocolEvent, tag="asset", frozen=True, kw_only=True):
    """A file the tool has written."""

    # 000 §4.3.

    asset_id: str
    kind: str
    media_type: str
    path: str
    metadata: JsonObject | None = None


class UiEvent(ProtocolEvent, tag="ui_event", frozen=True, kw_only=True):
    """A request to the client; `narrative_choice` is the one every client knows."""

    # 000 §4.4.

    event: str
    payload: JsonObject | None = None


class ToolErrorEvent(ProtocolEvent, tag="error", frozen=True, kw_only=True):
    """A structured error. It does not end the invocation by itself."""

    # 000 §4.5.

    error_code: str
    error_message: str
    details: JsonObject | None = None


class Done(ProtocolEvent, tag="done", frozen=True, kw_only=True):
    """The end of the invocation."""

    # 000 §4.6.

    ok: bool
    summary: str | None = None


ToolEvent: TypeAlias = Log | StatePatch | Asset | UiEvent | ToolErrorEvent | Done
"""Any event that a tool emits."""
TOOL_EVENT_TYPES: Final = ("log", "state_patch", "asset", "ui_event", "error", "done")


decode_tool_event: Final = decoder(ToolEvent).decode
