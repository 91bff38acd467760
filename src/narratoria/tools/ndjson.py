"""Bytes in, events out: the standard output of a tool, decoded strictly and without I/O.

001 §2.2-2.3: one JSON object a line, UTF-8, Unix newlines. A `Decoder` is fed what was read and gives back
the events of the complete lines in it. Nothing grows with the stream: a line, the number of events and the
number of bytes have caps. What breaks a rule raises a `ProtocolFailure`, which names the tool, the line, the
bytes and the likely fix, and carries the events that came before.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import msgspec

from narratoria.errors import OUTPUT_LIMIT, PROTOCOL_ERROR, NarratoriaError
from narratoria.events import TOOL_EVENT_TYPES, Done, ToolEvent, decode_tool_event, encode

KiB: Final = 1024
MiB: Final = 1024 * 1024
EXCERPT_BYTES: Final = 160
_BOM: Final = b"\xef\xbb\xbf"
_TO_STDERR: Final = (
    "stdout carries only events, one JSON object a line; send everything else to stderr "
    "(Python: print(..., file=sys.stderr); shell: >&2)"
)
_decode_any: Final = msgspec.json.Decoder().decode


@dataclass(frozen=True)
class Limits:
    """Caps on what one invocation may write; passing one fails the call, it does not hang it."""

    max_line_bytes: int = 4 * MiB
    max_events: int = 200_000
    max_bytes: int = 256 * MiB
    stderr_bytes: int = 64 * KiB


class ProtocolFailure(NarratoriaError):
    """The tool broke the protocol. `events` holds what it said correctly in the same piece of output."""

    def __init__(
        self,
        tool: str,
        message: str,
        *,
        code: str = PROTOCOL_ERROR,
        line: int | None = None,
        excerpt: bytes = b"",
        fix: str = "",
        events: Sequence[ToolEvent] = (),
    ) -> None:
        self.tool = tool
        self.code = code
        self.message = message
        self.line = line
        self.excerpt = excerpt[:EXCERPT_BYTES]
        self.fix = fix
        self.events = list(events)
        where = f"{tool}: line {line}" if line is not None else tool
        shown = f": {printable(excerpt)}" if excerpt else ""
        super().__init__(f"{where}: {message}{shown}" + (f" (fix: {fix})" if fix else ""))


def printable(raw: bytes, limit: int = EXCERPT_BYTES) -> str:
    """Bytes as one line that is safe on a terminal; what is not printable is escaped."""
    text = raw[:limit].decode("utf-8", "backslashreplace")
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f"`{safe}`" + (f"… ({len(raw):,} bytes)" if len(raw) > limit else "")


class Decoder:
    """The state of one tool's output. Not shared between invocations."""

    def __init__(self, tool: str, limits: Limits = Limits()) -> None:  # noqa: B008 (frozen)
        self.tool = tool
        self.limits = limits
        self.done: Done | None = None
        self.after_done = 0
        """Bytes that came after `done`: not parsed, only counted."""
        self.crlf = False
        """Whether a line ended in CR LF: JSON allows it as white space, 001 §2.3 does not."""
        self.lines = 0
        self.events = 0
        self.bytes = 0
        self._partial: list[bytes] = []
        self._partial_bytes = 0

    def feed(self, data: bytes) -> list[ToolEvent]:
        """Take what was read; return the events of the lines it completes."""
        if self.done is not None:
            self.after_done += len(data)
            return []
        self.bytes += len(data)
        over = self.bytes - self.limits.max_bytes
        if over > 0:
            data = data[: len(data) - over]
        end = data.rfind(b"\n") + 1
        events: list[ToolEvent] = []
        if end:
            self._partial.append(data[:end])
            block = b"".join(self._partial) if len(self._partial) > 1 else self._partial[0]
            self._partial, self._partial_bytes = [], 0
            events = self._lines(block)
        if events and type(events[-1]) is Done:
            self.after_done += len(data) - end + max(over, 0)
            return events
        if end < len(data):
            self._partial.append(data[end:] if end else data)
            self._partial_bytes += len(data) - end
            if self._partial_bytes > self.limits.max_line_bytes:
                self._refuse_length(b"".join(self._partial), events)
        if over > 0:
            raise ProtocolFailure(
                self.tool,
                f"wrote more than {self.limits.max_bytes:,} bytes",
                code=OUTPUT_LIMIT,
                line=self.lines + 1,
                fix="write large results to a file and announce it with an `asset` event, or raise the limit",
                events=events,
            )
        return events

    def close(self) -> list[ToolEvent]:
        """The end of the stream. A complete last line is accepted without its newline, half a line is not."""
        if not self._partial:
            return []
        last = b"".join(self._partial)
        self._partial, self._partial_bytes = [], 0
        try:
            return self._lines(last)
        except ProtocolFailure as failure:
            if failure.code != PROTOCOL_ERROR or not _is_cut_short(last):
                raise
            raise ProtocolFailure(
                self.tool,
                "the output ends in the middle of a line",
                line=failure.line,
                excerpt=last,
                fix="the tool died while writing, or did not flush; its stderr may say why",
            ) from failure

    # --- lines ----------------------------------------------------------------------------------------

    def _lines(self, block: bytes) -> list[ToolEvent]:
        """Decode complete lines: all at once when nothing is odd, else one by one to say what is."""
        if block.isspace():
            self.lines += block.count(b"\n")
            self.crlf = self.crlf or b"\r\n" in block
            return []
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if (
            len(block) <= self.limits.max_line_bytes
            and self.events + len(lines) <= self.limits.max_events
            and b"\r" not in block
            and _is_utf8(block)
        ):
            try:
                events: list[ToolEvent] = list(map(decode_tool_event, lines))
            except (msgspec.DecodeError, RecursionError):
                pass  # said properly below, with its line
            else:
                if Done not in map(type, events[:-1]) and _nothing_dropped(block, events):
                    self.lines += len(lines)
                    self.events += len(events)
                    last = events[-1]
                    if type(last) is Done:
                        self.done = last
                    return events
        return self._one_by_one(lines)

    def _one_by_one(self, lines: list[bytes]) -> list[ToolEvent]:
        events: list[ToolEvent] = []
        for at, line in enumerate(lines):
            self.lines += 1
            if line.endswith(b"\r"):
                self.crlf = True
            if not line or line.isspace():
                continue
            if len(line) > self.limits.max_line_bytes:
                self.lines -= 1
                self._refuse_length(line, events)
            if self.events >= self.limits.max_events:
                raise ProtocolFailure(
                    self.tool,
                    f"wrote more than {self.limits.max_events:,} events",
                    code=OUTPUT_LIMIT,
                    line=self.lines,
                    excerpt=line,
                    fix="log less, or raise the limit",
                    events=events,
                )
            event = self._decode(line, events)
            self.events += 1
            events.append(event)
            if type(event) is Done:
                self.done = event
                rest = lines[at + 1 :]
                self.after_done += sum(map(len, rest)) + len(rest)
                break
        return events

    def _decode(self, line: bytes, before: list[ToolEvent]) -> ToolEvent:
        try:
            if not line.isascii():
                line.decode()
            event: ToolEvent = decode_tool_event(line)
            if not _nothing_dropped(line, [event]):
                _check_whole(line)
        except (ValueError, RecursionError) as error:
            # Of json, UTF-8 and msgspec alike the errors are ValueErrors.
            message, fix = _diagnose(line, error)
            raise ProtocolFailure(
                self.tool, message, line=self.lines, excerpt=line, fix=fix, events=before
            ) from error
        return event

    def _refuse_length(self, line: bytes, before: list[ToolEvent]) -> NoReturn:
        self._partial, self._partial_bytes = [], 0
        raise ProtocolFailure(
            self.tool,
            f"a line is longer than {self.limits.max_line_bytes:,} bytes",
            code=OUTPUT_LIMIT,
            line=self.lines + 1,
            excerpt=line[:EXCERPT_BYTES],
            fix="end every event with a newline; write large data to a file and announce an `asset`",
            events=before,
        )


def _is_utf8(raw: bytes) -> bool:
    # msgspec does not look into the fields it ignores.
    if raw.isascii():
        return True
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- duplicate keys ------------------------------------------------------------------------------------
# RFC 8259 §4 leaves the meaning of a repeated name open, and msgspec silently keeps the last. Every name
# costs one colon, and what was kept can be written again: as many colons in both, and nothing was dropped.


def _nothing_dropped(source: bytes, kept: object) -> bool:
    """Whether every key of `source` is in `kept`. False says only: look closer."""
    if b"\\" in source and (b"\\u003a" in source or b"\\u003A" in source):
        return False  # an escaped colon is one that only the copy shows
    return source.count(b":") == encode(kept).count(b":")


def _check_whole(line: bytes) -> None:
    """Check what the typed decoder skipped, unknown fields; raise ValueError for a duplicate or bad JSON."""
    try:
        if _nothing_dropped(line, _decode_any(line)):
            return
    except msgspec.DecodeError:
        pass  # a number out of range in an ignored field is still JSON: the slow reader decides
    json.loads(line, object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=str, parse_float=str)


class _DuplicateKey(ValueError):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _DuplicateKey(f"the key {json.dumps(twice)} appears twice in one object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# --- what went wrong -----------------------------------------------------------------------------------


def _diagnose(line: bytes, error: BaseException) -> tuple[str, str]:
    """A fault in the words of the protocol, and the likely fix."""
    if line.startswith(_BOM):
        return "starts with a byte order mark", "write UTF-8 without a BOM (Python: encoding='utf-8')"
    if isinstance(error, RecursionError):
        return "is nested too deeply", "flatten the data, or write it to a file and announce an `asset`"
    if isinstance(error, _DuplicateKey):
        return str(error), "write each key once"
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8 at byte {error.start}", "encode stdout as UTF-8; put binary data in a file"
    if isinstance(error, msgspec.ValidationError):
        return _diagnose_event(line, str(error))
    return _diagnose_json(line.strip(), str(error))


def _diagnose_json(line: bytes, reason: str) -> tuple[str, str]:
    if b"\0" in line[:EXCERPT_BYTES]:
        return "is binary data, not JSON", "put binary data in a file and announce it with an `asset` event"
    if not line.startswith(b"{"):
        return "is not a JSON object", _TO_STDERR
    if any(word in line for word in (b"NaN", b"Infinity")):
        return "is not JSON: NaN and Infinity do not exist in it", "send null or a string instead"
    if line.startswith((b"{'", b"{ '")):
        return "is not JSON: keys need double quotes", "print json.dumps(event), not the dict itself"
    if line == b"{" or line.endswith((b",", b"[")):
        return "is not a complete JSON object", "write each event on one line, without indentation"
    if "trailing" in reason:
        return "has more than one JSON value", "write one object a line, each ended by a newline"
    return f"is not valid JSON ({reason})", "encode events with a JSON library, one object a line"


def _diagnose_event(line: bytes, reason: str) -> tuple[str, str]:
    if reason.startswith("Expected `object`, got"):
        if " - at " not in reason:
            return "is JSON, but not an object", _TO_STDERR
        return f"has a wrong field: {reason}", "see 001 §4 for the fields of each event"
    if "`type`" in reason or reason.endswith("at `$.type`"):
        known = ", ".join(TOOL_EVENT_TYPES)
        given = _field(line, "type")
        near = difflib.get_close_matches(str(given), TOOL_EVENT_TYPES, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        what = "has no `type`" if given is None else f"has the unknown type {str(given)[:60]!r}"
        return what, f"{hint}`type` is one of {known}"
    if "`version`" in reason or reason.endswith("at `$.version`"):
        return f'must have `"version": "0"` ({reason})', 'add "version": "0", a string, to every event'
    return f"has a wrong or missing field: {reason}", "see 001 §4 for the fields of each event"


def _field(line: bytes, name: str) -> object:
    try:
        found = _decode_any(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found.get(name) if isinstance(found, dict) else None


def _is_cut_short(line: bytes) -> bool:
    """Whether a line without newline is the beginning of an object rather than something else."""
    try:
        _decode_any(line)
    except msgspec.DecodeError as error:
        return line.lstrip().startswith(b"{") and "truncated" in str(error)
    except RecursionError:
        return False
    return False
