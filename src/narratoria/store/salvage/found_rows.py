"""The rows of a damaged database that could be read, kept apart by what proves them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from narratoria.errors import JournalError
from narratoria.session.record import Record
from narratoria.store import checksums
from narratoria.store import record_batches as chunks
from narratoria.store.checksums import BatchChain
from narratoria.store.sql_rows import SessionRow as StoredRow

COLUMNS: Final = (
    "id", "story", "title", "created", "updated", "turns", "last_seq", "bytes",
    "parent", "parent_turn", "parent_seq", "hidden", "folder", "chained", "head", "seal",
)  # fmt: skip
DAMAGE: Final = (
    JournalError,
    ValueError,
    TypeError,
    LookupError,
    MemoryError,
    RecursionError,
    ArithmeticError,
)  # what reading damaged rows may end in
SessionRow = dict[str, Any]


class FoundBatch(NamedTuple):
    """A batch that can be unpacked. Its numbers are those of its records."""

    first: int
    last: int
    data: bytes
    checksum: bytes | None

    @property
    def proven(self) -> bool:
        return checksums.fits_batch(self.checksum, self.first, self.last, self.data)


@dataclass(slots=True)
class FoundRows:
    """Batches by (session key, last record), snapshots by (session key, record), as far as they can be unpacked."""

    sessions: dict[int, SessionRow] = field(default_factory=dict)
    batches: dict[tuple[int, int], FoundBatch] = field(default_factory=dict)
    snapshots: dict[tuple[int, int], bytes] = field(default_factory=dict)

    def add_batch(self, row: Any) -> None:
        """Add a batch: session key, last and first record, data, and a checksum in all but older versions."""
        if len(row) not in (4, 5) or not isinstance(row[0], int) or not isinstance(row[3], bytes):
            return
        records = unpacked(row[3])
        if not records:  # they have a checksum of the packing, unlike the numbers beside them
            return
        found = FoundBatch(records[0].seq, records[-1].seq, row[3], row[4] if len(row) == 5 else None)
        known = self.batches.setdefault((row[0], found.last), found)
        if found.proven and not known.proven:
            self.batches[row[0], found.last] = found

    def is_proven(self, key: int) -> bool:
        """Tell if a session is what was written, as far as checksums were."""
        seen: set[int] = set()
        current: int | None = key
        upto = self.sessions[key]["last_seq"]
        while current is not None:
            row = None if current in seen else self.sessions.get(current)
            if row is None or not StoredRow(key=current, **row).whole or not self._is_whole(current, upto):
                return False
            seen.add(current)
            current, upto = row["parent"], min(upto, row["parent_seq"] or 0)
        return True

    def _is_whole(self, key: int, upto: int) -> bool:
        row = self.sessions[key]
        reached = row["parent_seq"] or 0
        if row["chained"] is None or reached >= upto:
            return True
        chain = BatchChain(row["chained"], checksums.first_link(row["id"]))
        own = sorted(batch for (one, _), batch in self.batches.items() if one == key)
        for batch in own:
            if batch.first <= upto:
                if chain.fault(batch.first, batch.last, batch.checksum, batch.data):
                    return False
                reached = batch.last
        return reached >= upto and (upto != row["last_seq"] or chain.link == row["head"])

    def add_snapshot(self, row: Any) -> None:
        if (
            len(row) not in (3, 4)
            or not all(isinstance(one, int) for one in row[:2])
            or not isinstance(row[2], bytes)
        ):
            return
        key, seq, data = row[:3]
        try:
            chunks.parted(
                data, "a snapshot"
            )  # what it says of the assets counts, whatever became of the rest
        except DAMAGE:
            return
        self.snapshots.setdefault((key, seq), data)

    def ends(self) -> dict[int, int]:
        """The last record of each session, by its key."""
        found: dict[int, int] = {}
        for key, last in self.batches:
            found[key] = max(last, found.get(key, 0))
        return found


def unpacked(data: bytes) -> list[Record]:
    try:
        return chunks.read_records(data, "a batch")
    except DAMAGE:
        return []
