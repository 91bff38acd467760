"""Verification of a store: every row, record, snapshot and asset of every session is read and checked.

An opening reads the newest snapshot and what follows it. This reads everything, so it finds damage to what was played
long ago too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from narratoria.errors import JournalError
from narratoria.events import AssetStored, RecordsLost, TurnCommitted, TurnStarted
from narratoria.session.record import Record
from narratoria.store import record_batches as chunks
from narratoria.store.salvage.found_rows import DAMAGE
from narratoria.store.salvage.gaps import BridgedRecords
from narratoria.store.store import SessionMeta, Store, TurnSpan


@dataclass(slots=True)
class CheckedSession:
    """A session that was read whole. It is sound if nothing in it differs from what was written."""

    meta: SessionMeta
    faults: list[str] = field(default_factory=list)
    records: int = 0
    reached: int = 0  # the last record that follows all those before it
    unchecked: int = 0  # records that were written before there were checksums
    lost: int = 0  # records that an earlier salvage could not read
    missing: list[str] = field(
        default_factory=list
    )  # assets without content: it may have been lost before an import
    altered: list[str] = field(default_factory=list)  # assets whose content is not what was stored

    @property
    def sound(self) -> bool:
        return not self.faults and not self.altered


def verify(store: Store, metas: list[SessionMeta]) -> Iterator[CheckedSession]:
    """Check these sessions one by one, and their assets; each asset is read once."""
    known: dict[str, bool | None] = {}
    for meta in metas:
        checked, pictures = check_session(store, meta)
        for digest in sorted(pictures):
            if digest not in known:
                known[digest] = store.assets.is_whole(digest)
            if not known[digest]:
                (checked.missing if known[digest] is None else checked.altered).append(digest)
        yield checked


def check_session(store: Store, meta: SessionMeta) -> tuple[CheckedSession, set[str]]:
    """Check the rows and records of a session; return its assets too."""
    checked = CheckedSession(meta)
    pictures: dict[str, int] = {}  # by hash, the last record of each
    try:
        records = list(store.read(meta.id))
        checked.records = len(records)
        checked.reached = BridgedRecords(meta, records, {}).reached
        checked.unchecked = store.unchecked(meta.id)
        checked.lost = sum(one.event.count for one in records if isinstance(one.event, RecordsLost))
        pictures = {one.event.hash: one.seq for one in records if isinstance(one.event, AssetStored)}
        checked.faults += _faults(store, meta, records)
        if checked.reached < meta.last_seq:
            checked.faults.append(f"its records end at {checked.reached}, and should at {meta.last_seq}")
        shared, listed = store.listed_assets(meta.id)
        if listed != {digest for digest, seq in pictures.items() if seq > shared}:
            checked.faults.append("the table of assets does not agree with its records")
    except JournalError as error:
        checked.faults.append(str(error))
    except DAMAGE as error:
        checked.faults.append(f"its records do not make a game ({error!r})")
    return checked, set(pictures)


def _faults(store: Store, meta: SessionMeta, records: list[Record]) -> Iterator[str]:
    for seq, packed in store.snapshots(meta.id):
        what = f"the snapshot at record {seq} of session {meta.id}"
        chunks.unpack(chunks.parted(packed, what)[1], what)
    len(store.restore(meta.id).asset_records)  # they are read when they are asked for
    if _turns(records) != {one.turn: one for one in store.turns(meta.id)}:
        yield "the table of turns does not agree with its records"


def _turns(records: list[Record]) -> dict[int, TurnSpan]:
    found: dict[int, TurnSpan] = {}
    for record in records:
        event = record.event
        if isinstance(event, TurnStarted):
            found.setdefault(event.turn, TurnSpan(event.turn, record.seq, None))
        elif isinstance(event, TurnCommitted) and event.turn in found:
            found[event.turn] = TurnSpan(event.turn, found[event.turn].first, record.seq)
    return found
