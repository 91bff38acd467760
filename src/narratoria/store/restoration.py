"""Restoring a session from its records: a snapshot, the records after it, turns taken back or redone."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from narratoria.errors import JournalError
from narratoria.events import (
    AssetStored,
    CallEmitted,
    CallFinished,
    CallStarted,
    Choices,
    Committed,
    JsonObject,
    Narration,
    NarrationEdited,
    PatchChange,
    PermissionChange,
    RecordsLost,
    SessionStarted,
    SkillHealth,
    SliceChange,
    StatePatch,
    TurnCommitted,
    TurnRedone,
    TurnStarted,
    TurnUndone,
)
from narratoria.session.asset_records import AssetChanges, AssetRecords
from narratoria.session.record import Record
from narratoria.session.session import Session
from narratoria.store.store import TurnUnknown
from narratoria.store.timeline import Timeline, completed_by
from narratoria.typed_values import convert

FetchTurn = Callable[[int], list[Record]]


class SessionSnapshot(msgspec.Struct, omit_defaults=True):
    """A session between two turns, as data."""

    seq: int
    state: JsonObject
    memory: JsonObject
    slices: list[SliceChange]
    permissions: list[str]  # granted here; `claimed` are those of an imported file
    timeline: Timeline  # without its turns: thousands of numbers that mostly follow each other ...
    turns: list[tuple[int, int]] = msgspec.field(
        default_factory=list
    )  # ... kept as (first, last) of each run
    calls: int = 0
    turn_count: int = 0
    past: list[tuple[str, str]] = msgspec.field(default_factory=list)
    choices: list[str] = msgspec.field(default_factory=list)
    standing: list[str] | None = None
    health: dict[str, SkillHealth] = msgspec.field(default_factory=dict)
    claimed: list[str] = msgspec.field(default_factory=list)
    assets: dict[int, AssetStored] = msgspec.field(default_factory=dict)  # all of them, in version 1 only


class SnapshotTaken(msgspec.Struct):
    """A snapshot on its way to the store: two lines, the changes of the assets since the last one, and the rest."""

    content: bytes
    assets: AssetChanges
    seq: int


def take_snapshot(session: Session, timeline: Timeline, *, seq: int | None = None) -> SnapshotTaken:
    """Encode a session that no call is changing. The tree is encoded where it stands, not copied first."""
    seq = session.seq if seq is None else seq
    assets = session.asset_records.changes()
    main = msgspec.json.encode(
        SessionSnapshot(
            seq=seq,
            state=session.tree,
            memory=session.memory.export(),
            slices=session.slices.export(),
            permissions=sorted(session.grants.held),
            claimed=sorted(session.grants.claimed),
            timeline=msgspec.structs.replace(timeline, turns=[]),
            turns=_runs(timeline.turns),
            calls=session.calls,
            turn_count=session.turn_count,
            past=list(session.past),
            choices=session.choices,
            standing=session.standing,
            health=session.health,
        )
    )
    return SnapshotTaken(msgspec.json.encode(assets) + b"\n" + main, assets, seq)


class Restoration:
    """A session being restored. Feed it a snapshot, if there is one, and every record after that, in order.

    `fetch` gives all records of one turn: a turn is taken back by the inverses recorded in it.
    """

    def __init__(self, session: Session, timeline: Timeline, fetch: FetchTurn) -> None:
        self.session = session
        self.timeline = timeline
        self.fetch = fetch
        self.open_records: list[Record] = []  # those of the turn that is not committed yet
        self._referred: dict[int, JsonObject | AssetStored] = {}
        self._prompt: TurnStarted | None = None
        self._narrative = ""

    def load(self, snapshot: SessionSnapshot, assets: Callable[[int], dict[int, AssetStored]]) -> None:
        """Load a snapshot; `assets` returns those that stood at a snapshot, when they are asked for."""
        session = self.session
        session.tree.clear()
        session.tree.update(snapshot.state)
        session.memory.load(snapshot.memory)
        for change in snapshot.slices:
            session.apply_change(change)
        for permission in snapshot.permissions:
            session.apply_change(PermissionChange(permission, True))
        for permission in snapshot.claimed:
            session.apply_change(PermissionChange(permission, True, claimed=True))
        session.asset_records = AssetRecords(assets, snapshot.seq)
        session.calls = snapshot.calls
        session.turn_count = snapshot.turn_count
        session.past.extend(snapshot.past)
        session.choices, session.standing = list(snapshot.choices), snapshot.standing
        session.health = dict(snapshot.health)
        session.completed_tools = set(snapshot.timeline.completions)
        session.seq = snapshot.seq
        self.timeline.become(snapshot.timeline)
        self.timeline.turns = [turn for first, last in snapshot.turns for turn in range(first, last + 1)]

    def apply(self, record: Record) -> None:
        if record.seq <= self.session.seq:
            return  # what it did is in the snapshot that bridged a gap before it
        step = _STEPS.get(type(record.event))
        if step is not None:
            step(self, record, record.event)
        self.session.seq = max(self.session.seq, record.seq)
        self.timeline.apply(record)
        if self.timeline.open is not None:
            self.open_records.append(record)
        elif self.open_records:
            self.open_records = []

    def apply_all(self, records: Iterable[Record]) -> None:
        for record in records:
            self.apply(record)

    # --- turns, backwards and forwards ---------------------------------------------------------------------

    def take_back(self, turn: int) -> None:
        """Undo the changes of `turn` to the session: its changes in reverse, its assets, choices, completions. Nothing
        is changed before everything is read: one that cannot be taken back leaves the session as it is.
        """
        session = self.session
        records, before = self.fetch(turn), self.timeline.before(turn)
        choices = Choices(choices=[]) if before is None else _told(self._heard(before))[2]
        older = self._dropped_exchange() if len(session.past) == session.past.maxlen else None
        for record in reversed(records):
            if isinstance(record.event, Committed):
                for change in record.event.inverse:
                    session.apply_change(change)
            elif isinstance(record.event, AssetStored):
                session.asset_records.discard(record.seq)
        self._count_completions(records, -1)
        self._offer_again(choices)
        if session.past:
            session.past.pop()
            if older is not None:
                session.past.appendleft(older)

    def _heard(self, turn: int) -> list[Record]:
        """Return the records of an earlier turn; none if they were lost to damage."""
        try:
            return self.fetch(turn)
        except TurnUnknown:
            return []

    def _dropped_exchange(self) -> tuple[str, str] | None:
        """Return the older exchange that a full past has dropped to make room for the newest."""
        turns = self.timeline.turns
        position = len(turns) - len(self.session.past) - 1
        records = self._heard(turns[position]) if position >= 0 else []
        if not records:
            return None
        origin, exchange, _ = _told(records)
        return None if origin == "opening" else self._as_edited(turns[position], exchange)

    def make_again(self, turn: int) -> None:
        """Redo a turn that was taken back, from its records. No tool runs."""
        session = self.session
        records = self.fetch(turn)
        for record in records:
            self._refer(record)
            if isinstance(record.event, Committed):
                self._commit(record.event)
        self._count_completions(records, +1)
        _, exchange, choices = _told(records)
        session.past.append(self._as_edited(turn, exchange))
        self._offer_again(choices)
        self._referred.clear()

    def edit(self, turn: int, text: str | None) -> None:
        """Change the narration of a turn that counts, in the past that narrators are told; None takes the change
        back.
        """
        past, turns = self.session.past, self.timeline.turns
        from_end = len(turns) - bisect_left(turns, turn)
        if from_end <= len(past):
            prompt, _ = past[-from_end]
            past[-from_end] = (prompt, text if text is not None else _told(self.fetch(turn))[1][1])

    def _as_edited(self, turn: int, exchange: tuple[str, str]) -> tuple[str, str]:
        prompt, narrative = exchange
        return prompt, self.timeline.edited.get(turn, narrative)

    def _count_completions(self, records: list[Record], sign: int) -> None:
        tools = Counter(tool for record in records for tool in completed_by(record.event))
        self.timeline.count_completions(tools, sign)
        self.session.completed_tools = set(self.timeline.completions)

    # --- what each record does -----------------------------------------------------------------------------

    def _refer(self, record: Record) -> None:
        event = record.event
        if isinstance(event, CallEmitted):
            if isinstance(event.event, StatePatch):
                self._referred[record.seq] = event.event.patch
        elif isinstance(event, AssetStored):
            self._referred[record.seq] = event

    def _commit(self, event: Committed) -> None:
        self.session.completed_tools.update(event.completed)
        for change in event.changes:
            if not isinstance(change, int):
                self.session.apply_change(change)
                continue
            referred = self._referred.get(change)
            if referred is None:
                raise JournalError(
                    f"session {self.session.id}: the commit of call {event.call!r} refers to record "
                    f"{change}, which is not in the journal; the journal is incomplete"
                )
            if isinstance(referred, AssetStored):
                self.session.asset_records[change] = referred
            else:
                self.session.apply_change(PatchChange(referred))

    def _begin_session(self, record: Record, event: SessionStarted) -> None:
        if event.parent_session is not None:
            return  # a branch goes on from what is folded already
        self.session.apply_change(PatchChange(event.state))
        for permission in event.permissions:
            self.session.apply_change(PermissionChange(permission, True, claimed=event.imported))

    def _bridge(self, record: Record, event: RecordsLost) -> None:
        """Continue behind a gap: the session becomes what the snapshot says, and nothing else."""
        if event.resumed is None:
            return
        snapshot = convert(event.resumed, SessionSnapshot, str_keys=True)
        session = self.session
        for change in session.slices.export():
            session.apply_change(SliceChange(change.slice, []))
        for permission in session.grants.held | session.grants.claimed:
            session.apply_change(PermissionChange(permission, False))
        session.past.clear()
        session.turn = None
        self.load(snapshot, lambda seq: {})
        session.asset_records = AssetRecords()  # the next snapshot has to hold them all
        for seq, stored in snapshot.assets.items():
            session.asset_records[seq] = stored

    def _begin_turn(self, record: Record, event: TurnStarted) -> None:
        self.session.turn = event.turn
        self.session.turn_count = max(self.session.turn_count, event.turn)
        self._prompt, self._narrative = event, ""
        self._referred.clear()

    def _end_turn(self, record: Record, event: TurnCommitted) -> None:
        self.session.turn = None
        if self._prompt is not None and self._prompt.origin != "opening":
            self.session.past.append((self._prompt.prompt, self._narrative))
        self._referred.clear()

    def _note_call(self, record: Record, event: CallStarted | CallFinished) -> None:
        """Count calls outside a plan; the numbers of a restored session continue."""
        session = self.session
        owner, _, number = event.call.rpartition(":")
        if owner == session.id and number.isdecimal():
            session.calls = max(session.calls, int(number))
        session.completed_tools.update(completed_by(event))

    def _narrate(self, record: Record, event: Narration) -> None:
        self._narrative = event.text

    def _offer(self, record: Record, event: Choices) -> None:
        self._offer_again(event)

    def _offer_again(self, event: Choices) -> None:
        self.session.choices, self.session.standing = list(event.choices), event.standing

    def _note_health(self, record: Record, event: SkillHealth) -> None:
        self.session.health[event.skill] = event


_STEPS: Final[dict[type, Callable[[Restoration, Record, Any], None]]] = {
    SessionStarted: Restoration._begin_session,
    RecordsLost: Restoration._bridge,
    TurnStarted: Restoration._begin_turn,
    TurnCommitted: Restoration._end_turn,
    CallEmitted: lambda self, record, event: self._refer(record),
    AssetStored: lambda self, record, event: self._refer(record),
    Committed: lambda self, record, event: self._commit(event),
    CallStarted: Restoration._note_call,
    CallFinished: Restoration._note_call,
    Narration: Restoration._narrate,
    NarrationEdited: lambda self, record, event: self.edit(event.turn, event.text),
    Choices: Restoration._offer,
    SkillHealth: Restoration._note_health,
    TurnUndone: lambda self, record, event: self.take_back(event.turn),
    TurnRedone: lambda self, record, event: self.make_again(event.turn),
}


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _told(records: list[Record]) -> tuple[str, tuple[str, str], Choices]:
    """Return a turn as the player saw it: its origin, (prompt, narrative), and its last choices."""
    origin, prompt, narrative, choices = "player", "", "", Choices(choices=[])
    for record in records:
        event = record.event
        if isinstance(event, TurnStarted):
            origin, prompt = event.origin, event.prompt
        elif isinstance(event, Narration):
            narrative = event.text
        elif isinstance(event, Choices):
            choices = event
    return origin, (prompt, narrative), choices
