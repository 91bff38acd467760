"""The last check before records are written: a record that could not be read back is mended first.

Events made in Python are not checked on construction. What handlers and programs hand over is checked where it enters;
this check stands behind those, because one unreadable record would make its whole session unreadable. A record that
cannot be mended is replaced by a notice, so the others of its turn are kept.
"""

from __future__ import annotations

import logging
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from narratoria.events import PROTOCOL_VERSION, AnyRuntimeEvent, Log, Notice, ToolEvent
from narratoria.session.record import EmittedRecords, Record
from narratoria.store.record_batches import check_records, to_lines
from narratoria.typed_values import convert
from narratoria.unicode_text import legible

logger = logging.getLogger("narratoria")

_UNREADABLE: Final = (TypeError, ValueError, OverflowError, RecursionError)
_DEEPEST: Final = 100


def readable(entries: Sequence[Record | EmittedRecords]) -> tuple[Sequence[Record | EmittedRecords], bytes]:
    """Return the entries and their lines, which can be read back."""
    try:
        lines = to_lines(entries)
        records = [entry for entry in entries if type(entry) is Record]
        # the events of a run were decoded from a tool's lines, so they are what they say
        check_records(lines if len(records) == len(entries) else to_lines(records))
    except _UNREADABLE:
        entries = [_mended_entry(entry) for entry in entries]
        lines = to_lines(entries)
    return entries, lines


def _mended_entry(entry: Record | EmittedRecords) -> Record | EmittedRecords:
    try:
        check_records(to_lines([entry] if isinstance(entry, Record) else entry.records()))
    except _UNREADABLE as error:
        reason = str(error)
    else:
        return entry
    if isinstance(entry, EmittedRecords):
        return msgspec.structs.replace(entry, emitted=[_mended_emitted(one) for one in entry.emitted])
    tag = type(entry.event).__struct_config__.tag
    logger.warning("record %d (%s) could not be read back and was mended: %s", entry.seq, tag, reason)
    lost = Notice(level="error", message=legible(f"a record ({tag}) could not be kept: {reason}"))
    try:
        mended = msgspec.structs.replace(entry, event=typing.cast("AnyRuntimeEvent", _mended(entry.event)))
        check_records(to_lines([mended]))
    except _UNREADABLE:
        return msgspec.structs.replace(entry, event=lost)
    return mended


def _mended_emitted(event: ToolEvent) -> ToolEvent:
    try:
        return typing.cast("ToolEvent", _mended(event))
    except _UNREADABLE as error:
        message = legible(f"an event of the tool could not be kept: {error}")
        return Log(version=PROTOCOL_VERSION, level="error", message=message)


def _mended(struct: msgspec.Struct) -> msgspec.Struct:
    """Return the struct with each field as its type wants it, or at its default; raise if a field has neither."""
    kept: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        try:
            kept[field.name] = _fitting(getattr(struct, field.name), field.type)
        except _UNREADABLE:
            if field.required:
                raise
    return type(struct)(**kept)


def _fitting(value: Any, wanted: Any) -> Any:
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    texts = wanted is str or (
        origin in (typing.Union, types.UnionType) and set(arguments) == {str, type(None)}
    )
    if isinstance(value, msgspec.Struct):
        value = _mended(value)
    elif origin is list and isinstance(value, list | tuple):
        return _fitting_items(value, arguments[0])
    elif origin is dict and not isinstance(value, Mapping):
        return {}
    elif texts and not isinstance(value, str) and value is not None:
        return legible(str(value))
    return convert(_plain(value, 0), wanted)


def _fitting_items(values: Sequence[Any], wanted: Any) -> list[Any]:
    kept: list[Any] = []
    for one in values:
        try:
            kept.append(_fitting(one, wanted))
        except _UNREADABLE:
            logger.warning("an item of the record was dropped: it is %s", type(one).__name__)
    return kept


def _plain(value: Any, depth: int) -> Any:
    """Return a value as JSON data: legible texts, and `{"notJson": type}` for what JSON cannot carry."""
    if isinstance(value, str):
        return legible(value)
    if depth < _DEEPEST:
        if isinstance(value, msgspec.Struct):
            return _plain(msgspec.to_builtins(value, enc_hook=_not_json), depth + 1)
        if isinstance(value, Mapping):
            return {legible(str(key)): _plain(one, depth + 1) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [_plain(one, depth + 1) for one in value]
    if value is None or isinstance(value, bool | float) or _is_short(value):
        return value
    return _not_json(value)


def _is_short(value: Any) -> bool:
    return isinstance(value, int) and -(2**63) <= value < 2**64


def _not_json(value: Any) -> Any:
    return {"notJson": type(value).__qualname__}
