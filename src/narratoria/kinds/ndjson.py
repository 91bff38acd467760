"""The NDJSON decoder: a tool's standard output in, events out, strictly and without I/O.

Output is one JSON object a line, UTF-8, with Unix newlines. A `Decoder` is fed the bytes that were read and returns
the events of the complete lines in them. Nothing grows with the stream: a line, the number of events and the number
of bytes have caps. A broken rule raises a `ProtocolFailure`, which names the tool, the line, the bytes and the likely
fix, and carries the events that came before.
"""
# 001 §2.2-2.3.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NoReturn

import msgspec

from narratoria.bounds import MAX_DEPTH, nests_deeper
from narratoria.errors import OUTPUT_LIMIT, PROTOCOL_ERROR, NarratoriaError
from narratoria.events import Done, ToolEvent, decode_tool_event
from narratoria.kinds.line_faults import (
    EXCERPT_BYTES,
    diagnose,
    is_cut_short,
    printable,
)
from narratoria.kinds.manifest import ManifestLimits
from narratoria.strict_json import check_whole, nothing_dropped

KiB: Final = 1024
MiB: Final = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Caps on the output of one invocation; exceeding one fails the call, it does not hang it.

    Events are kept until the call ends. Their memory follows from the bytes, at most four for one (text outside
    ASCII), and from the values: three bytes, `[],`, make a list of sixty.
    """

    max_line_bytes: int = 2 * MiB
    max_events: int = 200_000
    max_bytes: int = 32 * MiB
    max_values: int = 2_000_000
    """Cap on members of objects and elements of arrays, in all."""
    max_depth: int = MAX_DEPTH
    stderr_bytes: int = 64 * KiB

    def with_manifest(self, asked: ManifestLimits | None) -> Limits:
        """Return these limits, replaced by those that a tool's manifest sets."""
        given = {} if asked is None else msgspec.structs.asdict(asked)
        return replace(self, **{name: value for name, value in given.items() if value is not None})


class ProtocolFailure(NarratoriaError):
    """The tool broke the protocol. `events` holds the valid events in the same piece of output."""

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


class Decoder:
    """The state of one tool's output. Not shared between invocations."""

    def __init__(self, tool: str, limits: Limits = Limits()) -> None:  # noqa: B008 (frozen)
        self.tool = tool
        self.limits = limits
        self.done: Done | None = None
        self.after_done = 0
        """Bytes that came after `done`: not parsed, only counted."""
        self.after_done_head = b""
        """The beginning of the first line after `done`."""
        self.crlf = False
        """True if a line ended in CR LF: JSON allows it as white space, the protocol does not."""
        # 001 §2.3.
        self.lines = 0
        self.events = 0
        self.bytes = 0
        self.values = 0
        self._partial: list[bytes] = []
        self._partial_bytes = 0

    def feed(self, data: bytes) -> list[ToolEvent]:
        """Take what was read; return the events of the lines it completes."""
        if self.done is not None:
            self._ignore(data)
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
            self._ignore(data[end:])
            self.after_done += max(over, 0)
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
        """End the stream. A complete last line is accepted without its newline, half a line is not."""
        if not self._partial:
            return []
        last = b"".join(self._partial)
        self._partial, self._partial_bytes = [], 0
        try:
            return self._lines(last)
        except ProtocolFailure as failure:
            if failure.code != PROTOCOL_ERROR or not is_cut_short(last):
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
        limits = self.limits
        colons = block.count(b":")
        values = _values(block, colons)
        if (
            len(block) <= limits.max_line_bytes
            and self.events + len(lines) <= limits.max_events
            and self.values + values <= limits.max_values
            and not _nest_deeper(lines, limits.max_depth, arrays=b"[" in block)
            and b"\r" not in block
            and _is_utf8(block)
        ):
            try:
                events: list[ToolEvent] = list(map(decode_tool_event, lines))
            except (msgspec.DecodeError, RecursionError):
                pass  # said properly below, with its line
            else:
                if Done not in map(type, events[:-1]) and nothing_dropped(block, colons, events):
                    self.lines += len(lines)
                    self.events += len(events)
                    self.values += values
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
                self._refuse(f"wrote more than {self.limits.max_events:,} events", line, events)
            self.values += _values(line, line.count(b":"))
            if self.values > self.limits.max_values:
                self._refuse(f"wrote more than {self.limits.max_values:,} values in its events", line, events)
            event = self._decode(line, events)
            self.events += 1
            events.append(event)
            if type(event) is Done:
                self.done = event
                self._ignore(b"".join(rest + b"\n" for rest in lines[at + 1 :]))
                break
        return events

    def _decode(self, line: bytes, before: list[ToolEvent]) -> ToolEvent:
        try:
            if not line.isascii():
                line.decode()
            if nests_deeper(line, self.limits.max_depth):
                raise RecursionError
            event: ToolEvent = decode_tool_event(line)
            if not nothing_dropped(line, line.count(b":"), [event]):
                check_whole(line)
        except (ValueError, RecursionError) as error:
            # Of json, UTF-8 and msgspec alike the errors are ValueErrors.
            message, fix = diagnose(line, error, self.limits.max_depth)
            raise ProtocolFailure(
                self.tool, message, line=self.lines, excerpt=line, fix=fix, events=before
            ) from error
        return event

    def _ignore(self, data: bytes) -> None:
        self.after_done += len(data)
        if len(self.after_done_head) < EXCERPT_BYTES:
            self.after_done_head = (self.after_done_head + data[:EXCERPT_BYTES]).partition(b"\n")[0]

    def _refuse(self, message: str, line: bytes, before: list[ToolEvent]) -> NoReturn:
        raise ProtocolFailure(
            self.tool,
            message,
            code=OUTPUT_LIMIT,
            line=self.lines,
            excerpt=line,
            fix="say less, write large data to a file and announce it with an `asset`, or raise the limit "
            "(`limits` in the manifest)",
            events=before,
        )

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


def _values(raw: bytes, colons: int) -> int:
    """Return an upper bound on the number of values: a colon per member; a comma or a bracket per element."""
    return colons if b"[" not in raw else colons + raw.count(b",") + raw.count(b"[")


def _nest_deeper(lines: list[bytes], depth: int, *, arrays: bool) -> bool:
    # A level takes two bytes, `[]`, or five, `{"":}`: ordinary lines are too short to nest that deeply.
    short = depth * (2 if arrays else 5)
    return max(map(len, lines)) > short and any(
        nests_deeper(line, depth) for line in lines if len(line) > short
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
