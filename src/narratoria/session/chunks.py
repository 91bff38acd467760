"""How records lie in a journal: as NDJSON, the lines of one batch compressed together.

The lines are those of an export, so a journal can be read with any JSON tool once unpacked. Packing a batch
costs no more than inserting its rows one by one would, and what tools repeat (ids, keys) then takes no room.
The checksum inside the stream tells a damaged batch from a whole one.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from narratoria.errors import JournalError
from narratoria.session.session import Record

_LEVEL: Final = 1
MAX_BATCH: Final = 1 << 30  # a damaged length must not make us allocate everything

_encode_lines: Final = msgspec.json.Encoder().encode_lines
_decode_lines: Final = msgspec.json.Decoder(Record).decode_lines


def to_lines(records: Sequence[Record]) -> bytes:
    """One JSON object a line, each ended by a newline."""
    return _encode_lines(records)


def from_lines(lines: bytes) -> list[Record]:
    return _decode_lines(lines)


def pack(content: bytes) -> bytes:
    return zlib.compress(content, _LEVEL)


def unpack(data: bytes, what: str) -> bytes:
    """The content of a batch or snapshot; `JournalError` names `what` when it is damaged."""
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(data, MAX_BATCH)
    except zlib.error as error:
        raise JournalError(f"{what} is damaged ({error})") from None
    if not inflater.eof:
        raise JournalError(f"{what} is damaged (it is cut short)")
    return content


def read_records(data: bytes, what: str) -> list[Record]:
    try:
        return from_lines(unpack(data, what))
    except msgspec.MsgspecError as error:
        raise JournalError(f"{what} is damaged ({error})") from None


def read_as(kind: type[Any], data: bytes, what: str) -> Any:
    try:
        return msgspec.json.decode(unpack(data, what), type=kind)
    except msgspec.MsgspecError as error:
        raise JournalError(f"{what} is damaged ({error})") from None
