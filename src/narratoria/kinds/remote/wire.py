"""The messages between the coordinator and a node: the work of a call, and the parts of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from narratoria.events import Asset, Done, ToolEvent
from narratoria.kinds.ndjson import Limits, ProtocolFailure
from narratoria.kinds.process.supervisor import ProcessOutcome
from narratoria.typed_values import decoder


class Place(msgspec.Struct, frozen=True, array_like=True):
    """A folder, and what tells that it is the same one, and not another of that name on another machine."""

    path: str
    identity: str


class ToolSource(msgspec.Struct, frozen=True, array_like=True):
    """The files of a tool: where they lie at the coordinator, and the hash of their content."""

    folder: str
    name: str
    """The path of the executable inside the folder."""
    digest: str
    ours: bool = False
    """The executable is a part of this package, and the node has its own."""


class Work(msgspec.Struct, frozen=True, array_like=True):
    """One run of an executable."""

    version: str
    tool: str
    source: ToolSource
    request: bytes
    timeout: float | None
    limits: Limits
    env: dict[bytes, bytes]
    cwd: Place | None
    python: str
    """The interpreter of the coordinator, for which a node takes its own."""
    asset_cap: int
    batch_seconds: float
    batch_bytes: int


class Heard(msgspec.Struct, frozen=True, array_like=True, tag="heard"):
    """Events, as a JSON array: an integer of a tool may be larger than MessagePack has them."""

    events: bytes


class Chunk(msgspec.Struct, frozen=True, array_like=True, tag="chunk"):
    """A piece of the file of the next asset."""

    data: bytes


class Arrived(msgspec.Struct, frozen=True, array_like=True, tag="arrived"):
    """An asset, after the pieces of its file; or the reason why there are none."""

    event: bytes
    refusal: str | None = None


class Ended(msgspec.Struct, frozen=True, array_like=True, tag="ended"):
    """The ending of the process."""

    exit_code: int | None
    signal: int | None
    done: bytes | None
    failure: tuple[str, str, str, int | None, bytes, str] | None
    timed_out: bool
    stderr: str
    duration: float
    after_done: int
    lingered: bool
    crlf: bool
    after_done_line: int
    after_done_head: bytes
    pid: int
    closed_stdout: bool
    cpu: float = 0.0


class Refused(msgspec.Struct, frozen=True, array_like=True, tag="refused"):
    """The node did not start the tool."""

    code: str
    message: str


class FilesWanted(msgspec.Struct, frozen=True, array_like=True, tag="files_wanted"):
    """The node lacks the files of the tool; nothing was started."""


class Returned(msgspec.Struct, frozen=True, array_like=True, tag="returned"):
    """The pickled result of a function."""

    result: bytes


class Raised(msgspec.Struct, frozen=True, array_like=True, tag="raised"):
    """The pickled exception of a function."""

    error: bytes


Part: TypeAlias = Heard | Chunk | Arrived | Ended | Refused | FilesWanted | Returned | Raised

_encode_events: Final = msgspec.json.Encoder().encode
_decode_events: Final = decoder(list[ToolEvent])
_decode_asset: Final = decoder(Asset)
_decode_done: Final = decoder(Done)
_pack: Final = msgspec.msgpack.Encoder().encode
_unpack_parts: Final = msgspec.msgpack.Decoder(list[Part])
_unpack_work: Final = msgspec.msgpack.Decoder(Work)


def pack_work(work: Work) -> bytes:
    return _pack(work)


def unpack_work(data: bytes) -> Work:
    return _unpack_work.decode(data)


def pack_parts(parts: Sequence[Part]) -> bytes:
    return _pack(parts)


def unpack_parts(data: bytes) -> list[Part]:
    parts: list[Part] = _unpack_parts.decode(data)
    return parts


def heard(events: list[ToolEvent]) -> Heard:
    return Heard(_encode_events(events))


def events_of(part: Heard) -> list[ToolEvent]:
    events: list[ToolEvent] = _decode_events.decode(part.events)
    return events


def arrived(event: Asset, refusal: str | None = None) -> Arrived:
    return Arrived(_encode_events(event), refusal)


def asset_of(part: Arrived) -> Asset:
    asset: Asset = _decode_asset.decode(part.event)
    return asset


def ended(outcome: ProcessOutcome) -> Ended:
    failure = outcome.failure
    return Ended(
        outcome.exit_code,
        outcome.signal,
        None if outcome.done is None else _encode_events(outcome.done),
        None
        if failure is None
        else (failure.tool, failure.message, failure.code, failure.line, failure.excerpt, failure.fix),
        outcome.timed_out,
        outcome.stderr,
        outcome.duration,
        outcome.after_done,
        outcome.lingered,
        outcome.crlf,
        outcome.after_done_line,
        outcome.after_done_head,
        outcome.pid,
        outcome.closed_stdout,
        outcome.cpu,
    )


def outcome_of(part: Ended) -> ProcessOutcome:
    failure = None
    if part.failure is not None:
        tool, message, code, line, excerpt, fix = part.failure
        failure = ProtocolFailure(tool, message, code=code, line=line, excerpt=excerpt, fix=fix)
    return ProcessOutcome(
        part.exit_code,
        part.signal,
        None if part.done is None else _decode_done.decode(part.done),
        failure,
        part.timed_out,
        part.stderr,
        part.duration,
        part.after_done,
        part.lingered,
        part.crlf,
        part.after_done_line,
        part.after_done_head,
        part.pid,
        part.closed_stdout,
        cpu=part.cpu,
    )
