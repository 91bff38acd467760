"""The format of records in a journal: NDJSON, the lines of one batch compressed together.

A line is a record, as in an export, or a run of them: events that a tool emitted at once share all other fields. So a
journal can be read with any JSON tool once unpacked. Packing a batch costs no more than inserting its rows one by one
would, and repeated ids and keys then take no room. The checksum inside the stream reveals a damaged batch.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from narratoria.errors import JournalError
from narratoria.events import AnyRuntimeEvent, ToolEvent
from narratoria.session.record import EmittedRecords, Record
from narratoria.tools.schema.excerpts import excerpt
from narratoria.typed_values import decoder

_LEVEL: Final = 1
MAX_BATCH: Final = 1 << 30  # a damaged length must not make us allocate everything

_A_RUN: Final = b'"emitted":['


class _Line(msgspec.Struct, frozen=True, gc=False):
    """A line that is a record or a run."""

    seq: int
    ts: float
    turn: int | None
    event: AnyRuntimeEvent | None = None
    call: str = ""
    emitted: list[ToolEvent] = []


_encode_lines: Final = msgspec.json.Encoder().encode_lines
_decode_records: Final = decoder(Record).decode_lines
_decode_lines: Final = decoder(_Line).decode_lines


def to_lines(entries: Sequence[Record | EmittedRecords]) -> bytes:
    """Return one JSON object a line, each ended by a newline."""
    return _encode_lines(entries)


def check_records(lines: bytes) -> None:
    """Raise if lines of records, without runs, cannot be read back."""
    _decode_records(lines)


def from_lines(lines: bytes) -> list[Record]:
    if _A_RUN not in lines:
        return _decode_records(lines)
    records: list[Record] = []
    for line in _decode_lines(lines):
        if line.event is not None:
            records.append(Record(line.seq, line.ts, line.turn, line.event))
        else:
            records += EmittedRecords(line.seq, line.ts, line.turn, line.call, line.emitted).records()
    return records


def pack(content: bytes) -> bytes:
    return zlib.compress(content, _LEVEL)


def pack_lines(content: bytes) -> bytes:
    """Return each line as a compressed stream of its own, one behind the other, so that the first can be read alone."""
    return b"".join(map(pack, content.split(b"\n")))


def parted(data: bytes, what: str) -> tuple[bytes, bytes]:
    """Return the content of the first of two streams, and the second, packed; for a single one, nothing and that."""
    first, rest = _unpack(data, what)
    return (first, rest) if rest else (b"", data)


def unpack(data: bytes, what: str) -> bytes:
    """Return the content of a batch; a `JournalError` names `what` if it is damaged."""
    return _unpack(data, what)[0]


def _unpack(data: bytes, what: str) -> tuple[bytes, bytes]:
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(data, MAX_BATCH)
    except zlib.error as error:
        raise JournalError(f"{what} is damaged ({excerpt(error)})") from None
    if not inflater.eof:
        raise JournalError(f"{what} is damaged (it is cut short)")
    return content, inflater.unused_data


def read_records(data: bytes, what: str) -> list[Record]:
    try:
        return from_lines(unpack(data, what))
    except (ValueError, RecursionError) as error:  # of JSON and of UTF-8
        raise JournalError(f"{what} is damaged ({excerpt(error)})") from None


def read_as(kind: type[Any], content: bytes, what: str) -> Any:
    try:
        return decoder(kind).decode(content)
    except (ValueError, RecursionError) as error:
        raise JournalError(f"{what} is damaged ({excerpt(error)})") from None
