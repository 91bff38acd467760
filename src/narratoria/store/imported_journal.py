"""The journal in an imported file: bounded, in order, and inert.

Each line is measured before it is decoded. Records must follow each other as a session records them: a beginning,
numbers without a gap, turns that begin and end. Nothing in them acts here: permissions become claims, which count
only if the story grants them; rollbacks are marked, and run only if a person asks; an interrupted turn or undo is
closed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from narratoria import bounds
from narratoria.events import (
    ApprovalGiven,
    ApprovalRequested,
    AssetStored,
    CallEmitted,
    Change,
    Checkpoint,
    Committed,
    EffectTakenBack,
    Log,
    MemoriesRecalled,
    ModelAsked,
    Narration,
    NarrationDelta,
    NarrationEdited,
    NarratorChosen,
    Notice,
    PermissionChange,
    PlanMade,
    RecordsLost,
    SessionStarted,
    StatePatch,
    TurnCommitted,
    TurnRedone,
    TurnStarted,
    TurnUndone,
    UndoCancelled,
    UndoStarted,
)
from narratoria.session.media import is_media_type
from narratoria.session.record import Record
from narratoria.store import record_batches as chunks
from narratoria.store.imported_snapshot import (
    MAX_TURNS,
    Unfit,
    check_snapshot,
    counted,
    inert_snapshot,
    newest_turn,
    read_snapshot,
    timeline_of,
)
from narratoria.store.restoration import SessionSnapshot
from narratoria.store.store import LARGEST
from narratoria.store.timeline import Timeline
from narratoria.strict_json import check_whole
from narratoria.tools.schema.excerpts import excerpt
from narratoria.unicode_text import as_one_line

MAX_LINE: Final = 64 * 1024**2
MAX_JOURNAL: Final = 2 * 1024**3
MAX_TURN: Final = 256 * 1024**2
MAX_KEPT_VALUES: Final = 4_000_000
"""Cap on the values of one turn, which is held in memory while it is folded, and of all records that make the
session.
"""
MAX_MOVED_VALUES: Final = 40_000_000
"""Cap on the values of all turns that are taken back or brought back: a short line reads a whole turn again."""
MAX_DEPTH: Final = 2 * bounds.MAX_DEPTH  # a tool may send half of that; handlers in a program are not counted

_STORY: Final = re.compile(r"[a-z0-9_-]{1,100}")
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_LATEST: Final = 253_402_214_400.0  # the last day of the year 9999, beyond which no clock goes
_PASSING: Final = (
    ApprovalGiven,
    Log,
    MemoriesRecalled,
    ModelAsked,
    Narration,
    NarrationDelta,
    NarratorChosen,
    Notice,
    PlanMade,
)
_UNFINISHED: Final = (
    "this turn was not finished when the session was exported; it was closed. Say it again to take it"
)


def check_story(story: str | None) -> None:
    """Refuse a story name that a file must not choose: a story is looked up by it, and a folder is a name too."""
    if story is not None and not _STORY.fullmatch(story):
        raise Unfit(f"{story[:100]!r} is not the id of a story")


def check_time(ts: float) -> None:
    if not 0 <= ts < _LATEST:
        raise Unfit(f"{ts!r} is not a time")


class ImportedJournal:
    """Lines in, records out. `assets` are those the records refer to, by hash."""

    def __init__(self) -> None:
        self.assets: dict[str, AssetStored] = {}
        self.count = 0
        self._timeline = Timeline()
        self._seq = 0
        self._ts = 0.0
        self._missing_from: int | None = None  # the first record of a gap that is not accounted for yet
        self._newest = -1  # turn
        self._told = -1  # the newest turn that has records here
        self._telling: int | None = None  # the turn whose records are being read
        self._known = 0  # up to which record a snapshot behind a gap knows everything
        self._before_gap = 0  # the last record that a loss cannot have taken
        self._snapshot_turns = 0  # that all snapshots so far count
        self._kept = 0  # values
        self._in_turn = 0  # values
        self._sizes: dict[int, int] = {}  # values by turn
        self._moved = 0  # values of turns that were taken back or brought back
        self._open_questions: dict[str, tuple[ApprovalRequested, int | None]] = {}  # with their turns
        self._turn_bytes = 0
        self._bytes = 0

    def records(self, lines: bytes) -> Iterator[Record]:
        """Yield the records of whole lines; raise `Unfit` for a line that cannot follow those before it."""
        for line in lines.removesuffix(b"\n").split(b"\n"):
            yield from self._line(line)

    def _line(self, line: bytes) -> Iterator[Record]:
        where = f"line {self.count + 1}"
        if not line or line.isspace():
            raise Unfit(f"{where} is empty")
        if len(line) > MAX_LINE:
            raise Unfit(f"{where} is longer than {MAX_LINE:,} bytes")
        try:
            values = bounds.check(line, depth=MAX_DEPTH)
            check_whole(line)  # first: what it decodes is gone before the records are made
            found = chunks.from_lines(line)
        except UnicodeDecodeError as error:
            raise Unfit(f"{where} is not UTF-8 (byte {error.start})") from None
        except (ValueError, RecursionError) as error:
            raise Unfit(f"{where}: {excerpt(error)}") from None
        self._measure(line, values, found)
        for record in found:
            yield self._accept(record)

    def close(self) -> Iterator[Record]:
        """Yield the records that close an open turn or undo, so that nothing is resumed when the session is opened."""
        if not self._seq:
            raise Unfit("it has no records")
        if self._missing_from is not None:
            raise Unfit(f"record {self._missing_from} is missing")
        if self._known > self._seq:
            raise Unfit(
                f"its snapshot knows record {self._known}, and the journal ends with record {self._seq}"
            )
        turn, undoing = self._timeline.open, self._timeline.undoing
        for asked, within in self._open_questions.values():
            yield self._next(within, ApprovalGiven(id=asked.id, call=asked.call, decision="cancelled"))
        if turn is not None:
            yield self._next(turn, Notice(level="warn", message=_UNFINISHED))
            yield self._next(turn, TurnCommitted(turn=turn, outcome="cancelled"))
        if undoing is not None:
            yield self._next(None, UndoCancelled(turn=undoing))

    def _next(self, turn: int | None, event: Any) -> Record:
        self._seq += 1
        return Record(self._seq, self._ts, turn, event)

    # --- limits ----------------------------------------------------------------------------------------------

    def _measure(self, line: bytes, values: int, found: list[Record]) -> None:
        """Refuse records that would take too much memory: those of a turn while it is read, and those the session
        keeps.
        """
        self._bytes += len(line)
        self._turn_bytes += len(line)
        self._in_turn += values
        if any(isinstance(record.event, TurnStarted) for record in found):
            self._in_turn, self._turn_bytes = values, len(line)
        if not all(_passes(record.event) for record in found):
            self._kept += values
        if max(self._in_turn, self._kept) > MAX_KEPT_VALUES:
            raise Unfit(f"record {found[0].seq}: it has more than {MAX_KEPT_VALUES:,} values")
        if self._turn_bytes > MAX_TURN or self._bytes > MAX_JOURNAL:
            raise Unfit(f"record {found[0].seq}: it has more bytes than a turn or a journal may have")

    # --- order -----------------------------------------------------------------------------------------------

    def _accept(self, record: Record) -> Record:
        event, where = record.event, f"record {record.seq}"
        check_time(record.ts)
        if not 0 < record.seq < LARGEST:
            raise Unfit(f"{record.seq} is not the number of a record")
        for turn in (record.turn, getattr(event, "turn", None), getattr(event, "parent_turn", None)):
            if turn is not None and not 0 <= turn < LARGEST:
                raise Unfit(f"{where}: {turn} is not the number of a turn")
        self._check_order(record)
        if isinstance(event, SessionStarted):
            check_story(event.story)
        elif isinstance(event, AssetStored):
            self._check_asset(event, where)
        elif isinstance(event, ApprovalRequested):
            self._open_questions[event.id] = event, record.turn
        elif isinstance(event, ApprovalGiven):
            self._open_questions.pop(event.id, None)
        elif isinstance(event, PlanMade) and not isinstance(event.plan.get("requestId"), str):
            raise Unfit(f"{where}: its plan has no requestId")
        if isinstance(event, RecordsLost):
            record = self._cross(record, event, where)
        else:
            self._check_turn(record)
            if not isinstance(event, AssetStored):
                self._before_gap = record.seq
        self._seq, self._ts, self.count = record.seq, max(self._ts, record.ts), self.count + 1
        return inert(record)

    def _check_order(self, record: Record) -> None:
        event, follows = record.event, self._seq + 1
        if not self._seq:  # a session may have lived before it was stored
            if not isinstance(event, SessionStarted) or event.parent_session is not None:
                raise Unfit(f"record {record.seq} is not the beginning of a session")
            return
        if record.seq < follows:
            raise Unfit(f"record {record.seq} comes after record {self._seq}; the journal is out of order")
        if record.seq > follows and self._missing_from is None:
            self._missing_from = follows
        if self._missing_from is None:
            return
        if isinstance(event, RecordsLost) and event.first <= self._missing_from <= event.last <= record.seq:
            self._missing_from = None  # lost to damage, and said so
        elif not isinstance(event, AssetStored):  # known from the snapshot behind the gap
            raise Unfit(f"record {self._missing_from} is missing")

    def _check_turn(self, record: Record) -> None:
        """Check that turns begin and end, and are taken back in reverse, and that no number is used twice."""
        event, timeline, where = record.event, self._timeline, f"record {record.seq}"
        known = record.seq <= self._known
        told = self._tells(event)
        # What a record that is known did is in the snapshot.
        right = told and getattr(event, "turn", -1) <= self._newest if known else self._follows(event, told)
        if isinstance(event, TurnCommitted):
            self._sizes[event.turn] = self._in_turn
        elif isinstance(event, TurnUndone | TurnRedone):
            self._moved += self._sizes.get(event.turn, 0)
            if self._moved > MAX_MOVED_VALUES:
                raise Unfit(f"{where}: its turns are taken back and brought back too often")
        if not right or (record.turn is not None and record.turn > self._newest):
            turn = getattr(event, "turn", record.turn)
            raise Unfit(f"{where}: {type(event).__struct_config__.tag} of turn {turn} is out of order")
        if not known:
            timeline.apply(record)
        elif record.seq == self._known and self._telling is not None:
            raise Unfit(f"{where}: turn {self._telling} is open where a snapshot says that none is")

    def _follows(self, event: Any, told: bool) -> bool:
        """Tell if the event may come after the turns so far; `told` is the word of `_tells` on it."""
        timeline = self._timeline
        if isinstance(event, TurnStarted):
            newest, self._newest = self._newest, max(self._newest, event.turn)
            return told and (event.turn > newest or event.turn == timeline.open)
        if isinstance(event, TurnCommitted):
            return bool(event.turn == timeline.open)
        if isinstance(event, TurnUndone | UndoStarted):
            return event.turn == timeline.last != 0 and timeline.open is None
        if isinstance(event, TurnRedone):
            last = timeline.undone[-1:]
            return bool(last) and event.turn in timeline.variants_of(last[0]) and timeline.open is None
        if isinstance(event, Checkpoint | NarrationEdited):
            at = bisect_left(timeline.turns, event.turn)
            return timeline.turns[at : at + 1] == [event.turn]
        return told and (not isinstance(event, EffectTakenBack) or event.turn <= self._newest)

    def _tells(self, event: Any) -> bool:
        """Follow the turns as they are told, also those that a snapshot knows; tell if the event may come here."""
        if isinstance(event, TurnStarted):
            right = event.turn > self._told or event.turn == self._telling
            self._told, self._telling = max(self._told, event.turn), event.turn
            return right
        if isinstance(event, TurnCommitted):
            right, self._telling = event.turn == self._telling, None
            return right
        return True

    # --- gaps ------------------------------------------------------------------------------------------------

    def _cross(self, record: Record, event: RecordsLost, where: str) -> Record:
        """Cross a gap; return its record with a snapshot from which the session can go on."""
        if not 0 < event.first <= event.last < LARGEST:
            raise Unfit(f"{where}: records {event.first} to {event.last} cannot have been lost")
        if event.resumed is None:
            return record
        if event.first <= self._before_gap or event.last != record.seq:
            raise Unfit(f"{where}: records {event.first} to {event.last} cannot have been lost here")
        if self._telling is not None:
            raise Unfit(f"{where}: turn {self._telling} is open before the gap")
        snapshot = read_snapshot(event.resumed, where)
        check_snapshot(snapshot, where)
        for stored in snapshot.assets.values():
            self._check_asset(stored, where)
        if record.seq > self._known:  # else the snapshot before it knows more
            snapshot = self._resume(snapshot, event.first, event.last, where)
        content = msgspec.to_builtins(snapshot, str_keys=True)
        return msgspec.structs.replace(record, event=msgspec.structs.replace(event, resumed=content))

    def _resume(self, snapshot: SessionSnapshot, first: int, last: int, where: str) -> SessionSnapshot:
        """Continue behind a gap from a snapshot; return it with a number for the next turn that none has had."""
        if snapshot.seq < last:
            raise Unfit(f"{where}: its snapshot does not reach to the end of the gap")
        turns, newest = counted(snapshot), newest_turn(snapshot)
        self._snapshot_turns += turns
        if self._snapshot_turns > MAX_TURNS:
            raise Unfit(f"{where}: its snapshots have too many turns")
        if turns > len(self._timeline.turns) + snapshot.seq - first + 1:
            raise Unfit(
                f"{where}: its snapshot has {turns:,} turns, more than the lost records can have told"
            )
        if self._told >= 0 and newest < 0:
            raise Unfit(f"{where}: its snapshot does not know turn 0, which was told")
        self._newest = max(self._newest, newest)
        snapshot = msgspec.structs.replace(snapshot, turn_count=max(self._newest, 0))
        self._timeline = timeline_of(inert_snapshot(snapshot))
        self._known = snapshot.seq
        return snapshot

    def _check_asset(self, stored: AssetStored, where: str) -> None:
        if not _HASH.fullmatch(stored.hash):
            raise Unfit(f"{where}: {stored.hash[:100]!r} is not the hash of an asset")
        if not is_media_type(stored.media_type):
            raise Unfit(f"{where}: {stored.media_type[:100]!r} is not a media type")
        known = self.assets.setdefault(stored.hash, stored)
        if stored.size < 0 or known.size != stored.size:
            raise Unfit(f"{where}: asset {stored.hash} cannot have {stored.size:,} bytes")


def _passes(event: Any) -> bool:
    """Tell if an event leaves nothing behind in the session it is folded into."""
    if isinstance(event, CallEmitted):
        return not isinstance(event.event, StatePatch)
    return isinstance(event, _PASSING)


# --- marking ---------------------------------------------------------------------------------------------------


def inert(record: Record) -> Record:
    """Return the record with its permissions as claims, its rollbacks marked as imported and its titles as one line."""
    event: Any = record.event
    if isinstance(event, SessionStarted):
        title = None if event.title is None else as_one_line(event.title)
        event = msgspec.structs.replace(event, imported=True, title=title)
    elif isinstance(event, Checkpoint):
        event = msgspec.structs.replace(event, name=as_one_line(event.name))
    elif isinstance(event, Committed):
        event = msgspec.structs.replace(
            event,
            changes=[one if isinstance(one, int) else _claimed(one) for one in event.changes],
            inverse=[_claimed(one) for one in event.inverse],
            effects=[msgspec.structs.replace(one, imported=True) for one in event.effects],
            resources=[msgspec.structs.replace(one, imported=True) for one in event.resources],
        )
    elif isinstance(event, RecordsLost) and event.resumed is not None:
        snapshot = inert_snapshot(read_snapshot(event.resumed, f"record {record.seq}"))
        event = msgspec.structs.replace(event, resumed=msgspec.to_builtins(snapshot, str_keys=True))
    else:
        return record
    return msgspec.structs.replace(record, event=event)


def _claimed(change: Change) -> Change:
    return msgspec.structs.replace(change, claimed=True) if isinstance(change, PermissionChange) else change
