"""One line of a tool's output: its event, or the rule it breaks and the fix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from narratoria.errors import AssetRefused
from narratoria.events import TOOL_EVENT_TYPES, Asset, Log, StatePatch, ToolEvent
from narratoria.kinds.line_faults import EXCERPT_BYTES, printable
from narratoria.kinds.ndjson import Decoder, Limits, ProtocolFailure
from narratoria.session.assets import AssetStore
from narratoria.session.media import HEAD_BYTES, contradiction

_FIELDS_RULE: Final = {
    "log": "log-fields",
    "state_patch": "patch-is-object",
    "asset": "asset-fields",
    "ui_event": "ui-event-fields",
    "error": "error-fields",
    "done": "done-fields",
}
# Whoever watches the run keeps the caps; here a line is only read.
_NO_LIMITS: Final = Limits(max_line_bytes=1 << 40, max_events=1 << 40, max_bytes=1 << 40, max_values=1 << 40)


@dataclass
class Line:
    """A line that is not blank. Only the first of its bytes are kept."""

    number: int
    head: bytes
    length: int
    event: ToolEvent | None
    crlf: bool = False
    fault: str | None = None
    """The rule that the line breaks."""
    problem: str = ""
    fix: str = ""
    file_problem: str | None = None
    content_problem: str | None = None
    values: int = 0
    """Members and elements, as the runtime counts them."""

    @property
    def excerpt(self) -> str:
        cut = f"… ({self.length:,} bytes)" if self.length > len(self.head) else ""
        return printable(self.head) + cut

    @property
    def worth_keeping(self) -> bool:
        """Tell if a rule looks at this line; a million ordinary logs are only counted."""
        plain = type(self.event) in (Log, StatePatch)
        envelope = self.event is not None and (self.event.request_id or self.event.timestamp)
        return not plain or self.crlf or bool(envelope)

    def look_at_asset(self, store: AssetStore) -> None:
        """Check the asset's file at once, as it must be written before the event."""
        # 001 §4.3.
        asset = self.event
        if not isinstance(asset, Asset):
            raise AssertionError("asked only of assets")
        plain = msgspec.structs.replace(asset, asset_id=asset.asset_id or "?", media_type="application/x-any")
        try:
            stored = store.accept("check", plain)
        except AssetRefused as refusal:
            self.file_problem = str(refusal)
            return
        with store.path_of(stored.hash).open("rb") as file:
            problem = contradiction(asset.media_type, file.read(HEAD_BYTES))
        if problem is not None:
            self.content_problem = f"{asset.path} {problem}"


def read_line(tool: str, number: int, raw: bytes, *, complete: bool) -> Line:
    """Decode a line alone, as the runtime would; a fault does not stop the next."""
    crlf = raw.endswith(b"\r")
    head = raw[:EXCERPT_BYTES]
    decoder = Decoder(tool, _NO_LIMITS)
    decoder.lines = number - 1
    try:
        events = decoder.feed(raw + b"\n") if complete else [*decoder.feed(raw), *decoder.close()]
    except ProtocolFailure as failure:
        rule = _broken_rule(raw, failure, complete=complete)
        return Line(number, head, len(raw), None, crlf, rule, failure.message, failure.fix)
    return Line(number, head, len(raw), events[0] if events else None, crlf, values=decoder.values)


def _broken_rule(raw: bytes, failure: ProtocolFailure, *, complete: bool) -> str:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return "utf-8"
    if raw.startswith(b"\xef\xbb\xbf"):
        return "utf-8"
    if not complete and "middle of a line" in failure.message:
        return "whole-lines"
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return "ndjson"
    if not isinstance(value, dict) or "appears twice" in failure.message:
        return "ndjson"
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in TOOL_EVENT_TYPES:
        return "type"
    return "version" if value.get("version") != "0" else _FIELDS_RULE[kind]
