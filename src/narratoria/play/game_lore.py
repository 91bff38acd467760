"""The player's part of a game's memory: an author's note, lore of their own, and marks on what the story remembers.

All of it is kept in the scope `lore` of the session's memory. A change is a record of the journal like any other, so it
is exported, branched and replayed, and can be taken back. It belongs to no turn: who undoes a turn to try it again
with another note keeps the note.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

import msgspec

from narratoria.errors import JournalError, NarratoriaError
from narratoria.events import AnyRuntimeEvent, Committed, MemoryChange
from narratoria.lore.entries import Logic, LoreEntry, LoreInvalid, expression
from narratoria.play.lore_index import Listed, LoreIndex
from narratoria.session import Session
from narratoria.session.memory import LORE, Memory, as_json
from narratoria.store.journal import Journal
from narratoria.typed_values import convert
from narratoria.unicode_text import as_one_line, legible

MOST_ENTRIES: Final = 5_000  # of a game, imported ones among them
MOST_LETTERS: Final = 8_000_000  # in all of them together: each snapshot of the session has them
LONGEST_TEXT: Final = 20_000
LONGEST_NOTE: Final = 4_000
LONGEST_NAME: Final = 200
LONGEST_KEYWORD: Final = 500
MOST_KEYWORDS: Final = 100
MOST_EXPRESSIONS: Final = 100  # keywords of a game that are expressions: each costs time in every turn
NOTE: Final = "note"
SETTINGS_KEY: Final = (
    "player settings"  # of long-term memory: how the page is set, which is no edit of the lore
)
_OWN, _MARK = "own:", "mark:"


class LoreRefused(NarratoriaError):
    """A change of the lore that cannot be made; the message says why."""


class OwnLore(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A piece of lore or a character that the player wrote or imported. Without keywords its name is one."""

    text: str
    name: str = ""
    kind: Literal["lore", "character"] = "lore"
    keywords: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    logic: Logic = "any"
    always: bool = False
    case_sensitive: bool = False
    order: int = 100
    pinned: bool = False
    book: str = ""  # the file it came from

    def entry(self) -> LoreEntry:
        keywords = self.keywords or ((self.name,) if self.name else ())
        return LoreEntry(
            f"{self.name}: {self.text}" if self.kind == "character" else self.text,
            keywords,
            self.also,
            self.logic,
            always=self.always,
            case_sensitive=self.case_sensitive,
            order=self.order,
            name=self.name,
        )


class Mark(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A decision of the player about something that the story remembers by itself: a turn, a piece of its lore, a
    memory of a tool. `text` is what it said when it was marked, or, if `edited`, what it is to say.
    """

    kind: Literal["lore", "character", "turn", "memory"]
    name: str = ""
    text: str = ""
    pinned: bool = False
    forgotten: bool = False
    edited: bool = False


@dataclass(frozen=True)
class GameLore:
    """The player's part, as it is now."""

    note: str = ""
    own: Mapping[str, OwnLore] = field(default_factory=dict)
    marks: Mapping[str, Mark] = field(default_factory=dict)

    @cached_property
    def index(self) -> LoreIndex:
        """The lore that is not pinned, by its keywords."""
        return LoreIndex(
            Listed(ref, one.kind, one.entry()) for ref, one in self.own.items() if not one.pinned
        )

    @classmethod
    def of(cls, memory: Memory) -> GameLore:
        """Read it. What a file that somebody made holds instead is left out."""
        kept = memory.scan_entries(LORE)
        if not kept:
            return NO_LORE
        note = ""
        own: dict[str, OwnLore] = {}
        marks: dict[str, Mark] = {}
        for key, entry in kept:
            if key == NOTE and isinstance(entry.value, str):
                note = entry.value[:LONGEST_NOTE]
            elif key.startswith(_OWN) and len(own) < MOST_ENTRIES and (one := _read(entry.value, OwnLore)):
                own[key.removeprefix(_OWN)] = one
            elif key.startswith(_MARK) and (mark := _read(entry.value, Mark)):
                marks[key.removeprefix(_MARK)] = mark
        return cls(note, own, marks)


NO_LORE: Final = GameLore()


def _read(value: Any, kind: Any) -> Any:
    try:
        return convert(value, kind)
    except msgspec.ValidationError:
        return None


# --- changes -----------------------------------------------------------------------------------------------


def set_note(text: str) -> MemoryChange:
    """The change that makes `text` the author's note; "" takes it away."""
    text = legible(text).strip()
    if len(text) > LONGEST_NOTE:
        raise LoreRefused(
            f"an author's note has at most {LONGEST_NOTE:,} letters; this one has {len(text):,}"
        )
    return _change(NOTE, text or None)


def set_own(ref: str | None, own: OwnLore) -> MemoryChange:
    """The change that keeps a piece of the player's lore: a new one, or `ref`, as it is to be now."""
    return _change(f"{_OWN}{ref or secrets.token_hex(6)}", msgspec.to_builtins(checked(own)))


def set_mark(ref: str, mark: Mark) -> MemoryChange:
    """The change that keeps a mark; one that says nothing goes."""
    if mark.edited:
        mark = msgspec.structs.replace(mark, text=_text(mark.text, "the text"))
    says = mark.pinned or mark.forgotten or mark.edited
    return _change(f"{_MARK}{ref}", msgspec.to_builtins(mark) if says else None)


def drop_own(refs: Iterable[str]) -> list[MemoryChange]:
    """The changes that delete pieces of the player's lore."""
    return [_change(f"{_OWN}{ref}", None) for ref in refs]


def _change(key: str, value: Any) -> MemoryChange:
    if value is None:
        return MemoryChange(scope=LORE, op="delete", key=key)
    return MemoryChange(
        scope=LORE, op="write", key=key, value=as_json(value, "lore")
    )  # as a journal reads it


def checked(own: OwnLore) -> OwnLore:
    """Return a piece of lore within its limits; raise `LoreRefused` for one beyond them."""
    name = as_one_line(own.name)
    where = f"“{name[:60]}”" if name else "the lore"
    if len(name) > LONGEST_NAME:
        raise LoreRefused(f"{where}: a name has at most {LONGEST_NAME} letters")
    words = [tuple(as_one_line(one) for one in given if one.strip()) for given in (own.keywords, own.also)]
    for one in (*words[0], *words[1]):
        if len(one) > LONGEST_KEYWORD:
            raise LoreRefused(f"{where}: a keyword has at most {LONGEST_KEYWORD} letters, {one[:40]!r}… more")
        try:
            expression(one)
        except LoreInvalid as error:
            raise LoreRefused(f"{where}: {error}") from None
    if sum(map(len, words)) > MOST_KEYWORDS:
        raise LoreRefused(f"{where}: at most {MOST_KEYWORDS} keywords; there are {sum(map(len, words))}")
    text = _text(own.text, where)
    if not (name or words[0] or own.always or own.pinned):
        raise LoreRefused(f"{where}: give it a name or a keyword, or let it be told always")
    order = max(-(2**31), min(own.order, 2**31))
    return msgspec.structs.replace(
        own,
        name=name,
        text=text,
        keywords=words[0],
        also=words[1],
        order=order,
        book=as_one_line(own.book)[:200],
    )


def _text(text: str, where: str) -> str:
    text = legible(text).strip()
    if not text:
        raise LoreRefused(f"{where}: it has no text")
    if len(text) > LONGEST_TEXT:
        raise LoreRefused(f"{where}: a text has at most {LONGEST_TEXT:,} letters; this one has {len(text):,}")
    return text


def check_room(lore: GameLore, more: Sequence[OwnLore]) -> None:
    """Raise `LoreRefused` if a game has no room for so much more lore."""
    every = [*lore.own.values(), *more]
    if len(every) > MOST_ENTRIES:
        raise LoreRefused(
            f"a game has at most {MOST_ENTRIES:,} pieces of lore; these would make {len(every):,}"
        )
    letters = sum(len(one.text) + sum(map(len, one.keywords)) for one in every)
    if letters > MOST_LETTERS:
        raise LoreRefused(
            f"the lore of a game has at most {MOST_LETTERS:,} letters; this would be {letters:,}"
        )
    if sum(key.startswith("/") for one in every for key in (*one.keywords, *one.also)) > MOST_EXPRESSIONS:
        raise LoreRefused(f"at most {MOST_EXPRESSIONS} keywords of a game are expressions; these are more")


async def edit(session: Session, changes: Sequence[MemoryChange]) -> int:
    """Make changes between two turns: on the disk, or not at all. Return the number of their record."""
    async with session.turn_lock:
        inverse: list[MemoryChange] = []
        for change in changes:
            inverse[:0] = session.memory.apply(change)
        made = Committed(call="", changes=[*changes], inverse=[*inverse])

        def revert() -> None:
            for change in inverse:
                session.memory.apply(change)

        if isinstance(session.journal, Journal):
            await session.journal.keep(made, revert=revert)
        else:
            session.record(made)
        return session.seq


def edits(event: AnyRuntimeEvent) -> tuple[list[MemoryChange], list[MemoryChange]] | None:
    """Return the changes of an edit and those that take it back; None for a record that is none."""
    if not isinstance(event, Committed) or event.call or not event.inverse:
        return None
    changes = [one for one in event.changes if isinstance(one, MemoryChange) and one.key != SETTINGS_KEY]
    inverse = [one for one in event.inverse if isinstance(one, MemoryChange)]
    return (changes, inverse) if len(changes) == len(event.changes) else None


async def take_back(journal: Journal, seq: int) -> int:
    """Take an edit back, by another one; refused if what it changed has been changed again since."""
    session = journal.session
    await journal.flush()
    record = next(iter(journal.store.read(session.id, seq - 1, 1)), None) if seq > 0 else None
    made = edits(record.event) if record is not None and record.seq == seq else None
    if made is None:
        raise JournalError(f"record {seq} is no change of the lore")
    changes, inverse = made
    for one in {(change.scope, change.key): change for change in changes}.values():
        entry = session.memory.find_entry(one.scope, one.key)
        if (None if entry is None else entry.value) != one.value:
            raise JournalError("it was changed again since; change it once more instead")
    return await edit(session, inverse)
