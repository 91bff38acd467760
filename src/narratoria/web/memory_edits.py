"""The memory of a game for the API: a view of it, and the changes that an edit asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from narratoria.events import MemoryChange, RecalledMemory, encode
from narratoria.play import game_lore
from narratoria.play.game import Game
from narratoria.play.game_lore import SETTINGS_KEY, GameLore, LoreRefused, Mark, OwnLore
from narratoria.play.story_lore import memory_text
from narratoria.session.memory import EPISODIC, SCOPES, as_json
from narratoria.strict_json import decode, why_unreadable
from narratoria.web.memory_documents import MemoryEdit, MemoryItem, MemoryView
from narratoria.web.request_reading import BadRequest

MOST_TURNS: Final = 100  # listed, the newest; those that are marked besides
MOST_NOTED: Final = 500  # memories of tools
LONGEST: Final = 2_000  # letters of a memory of a tool
RECALLED: Final = 5  # turns named with a memory

Recalled = Mapping[str, tuple[RecalledMemory, list[int]]]


class NoMemory(BadRequest):
    """Nothing is remembered under this id."""


async def memory_view(game: Game) -> MemoryView:
    """Return the memory of a game: all of the player's, and of the story's what has come up."""
    told = await game.told()
    lore, recalled = await game.lore(), game.past.recalls.standing(told)
    shown = {turn: text for turn, text in told.items() if f"turn:{turn}" in lore.marks}
    shown |= dict(sorted(told.items())[-MOST_TURNS:])
    entries = await asyncio.to_thread(lambda: game.story_lore.entries)  # read from files, once
    return MemoryView(
        note=lore.note,
        own=[_own(ref, one, recalled) for ref, one in lore.own.items()],
        remembered=[*_met(lore, recalled), *_noted(game, lore, recalled), *_turns(shown, lore, recalled)],
        unseen=sum(ref not in recalled and ref not in lore.marks for ref in entries),
        older_turns=len(told) - len(shown),
        read=game.reads_memories,
        last_edit=game.past.recalls.last_edit,
    )


def _own(ref: str, one: OwnLore, recalled: Recalled) -> MemoryItem:
    return MemoryItem(
        id=ref, kind=one.kind, text=one.text, name=one.name, own=True, keywords=[*one.keywords], always=one.always,
        pinned=one.pinned, book=one.book, turns=_turns_of(ref, recalled),
    )  # fmt: skip


def _met(lore: GameLore, recalled: Recalled) -> Iterator[MemoryItem]:
    """Yield the story's own lore that has come up, or was marked."""
    for ref in dict.fromkeys([*lore.marks, *recalled]):
        if ref.startswith("story:"):
            yield _item(ref, lore.marks.get(ref) or _unmarked(recalled[ref][0]), recalled)


def _turns(told: Mapping[int, str], lore: GameLore, recalled: Recalled) -> Iterator[MemoryItem]:
    for turn, text in sorted(told.items(), reverse=True):
        ref = f"turn:{turn}"
        yield _item(ref, lore.marks.get(ref) or Mark(kind="turn", name=str(turn), text=text), recalled)


def _noted(game: Game, lore: GameLore, recalled: Recalled) -> Iterator[MemoryItem]:
    """Yield what tools remember, the newest first."""
    memory, count = game.session.memory, 0
    for scope in SCOPES:
        for key in reversed(memory.keys(scope)):
            ref = f"memory:{scope}:{key}"
            count += 1
            if count <= MOST_NOTED and (scope, key) != ("long-term", SETTINGS_KEY):
                mark = lore.marks.get(ref) or Mark(kind="memory", name=key)
                text = (memory_text(memory, ref) or "").removeprefix(f"{key}: ")
                mark = msgspec.structs.replace(mark, text=text[:LONGEST])
                yield _item(ref, mark, recalled, editable=scope != EPISODIC and len(text) <= LONGEST)


def _item(ref: str, mark: Mark, recalled: Recalled, *, editable: bool = True) -> MemoryItem:
    return MemoryItem(
        id=ref, kind=mark.kind, text=mark.text, name=mark.name, pinned=mark.pinned, forgotten=mark.forgotten,
        edited=mark.edited, turns=_turns_of(ref, recalled), editable=editable,
    )  # fmt: skip


def _turns_of(ref: str, recalled: Recalled) -> list[int]:
    return recalled[ref][1][:RECALLED] if ref in recalled else []


def _unmarked(one: RecalledMemory) -> Mark:
    return Mark(kind="character" if one.kind == "character" else "lore", name=one.name, text=one.text)


# --- edits -------------------------------------------------------------------------------------------------


async def changes_of(game: Game, asked: MemoryEdit) -> list[MemoryChange]:
    """Return the changes that an edit asks for; refuse one that says nothing or too much."""
    lore = await game.lore()
    if asked.note is not None:
        return [game_lore.set_note(asked.note)]
    if asked.book is not None and asked.forgotten:
        refs = [ref for ref, one in lore.own.items() if one.book == asked.book]
        if not refs:
            raise NoMemory(f"nothing came from {asked.book[:60]!r}")
        return game_lore.drop_own(refs)
    if asked.id is None:
        own = _filled(OwnLore(text="", kind=asked.kind or "lore"), asked)
        game_lore.check_room(lore, [own])
        return [game_lore.set_own(None, own)]
    if asked.id in lore.own:
        if asked.forgotten:
            return game_lore.drop_own([asked.id])
        own = _filled(lore.own[asked.id], asked)
        others = {ref: one for ref, one in lore.own.items() if ref != asked.id}
        game_lore.check_room(GameLore(own=others), [own])
        return [game_lore.set_own(asked.id, own)]
    if asked.id.startswith("memory:"):
        return _tool_changes(game, lore, asked)
    return [game_lore.set_mark(asked.id, _marked(await _base(game, lore, asked.id), asked))]


def _filled(own: OwnLore, asked: MemoryEdit) -> OwnLore:
    given: dict[str, Any] = {
        key: getattr(asked, key)
        for key in ("name", "text", "always", "pinned")
        if getattr(asked, key) is not None
    }
    if asked.keywords is not None:
        given["keywords"] = tuple(asked.keywords)
    return msgspec.structs.replace(own, **given)


def _marked(mark: Mark, asked: MemoryEdit) -> Mark:
    if asked.text is not None:
        mark = msgspec.structs.replace(mark, text=asked.text, edited=True)
    if asked.pinned is not None:
        mark = msgspec.structs.replace(
            mark, pinned=asked.pinned, forgotten=mark.forgotten and not asked.pinned
        )
    if asked.forgotten is not None:
        mark = msgspec.structs.replace(
            mark, forgotten=asked.forgotten, pinned=mark.pinned and not asked.forgotten
        )
    return mark


async def _base(game: Game, lore: GameLore, ref: str) -> Mark:
    if ref in lore.marks:
        return lore.marks[ref]
    told = await game.told()
    turn = ref.removeprefix("turn:")
    if ref.startswith("turn:") and turn.isdecimal() and len(turn) < 12 and int(turn) in told:
        return Mark(kind="turn", name=turn, text=told[int(turn)])
    recalled = game.past.recalls.standing(told)
    if ref.startswith("story:") and ref in recalled:
        entry = game.story_lore.entries.get(ref)  # the record of a turn has a long text cut short
        base = _unmarked(recalled[ref][0])
        return base if entry is None else msgspec.structs.replace(base, text=entry.text)
    raise NoMemory(f"nothing is remembered under {ref[:100]!r}")


def _tool_changes(game: Game, lore: GameLore, asked: MemoryEdit) -> list[MemoryChange]:
    ref, memory = asked.id or "", game.session.memory
    scope, _, key = ref.removeprefix("memory:").partition(":")
    if memory_text(memory, ref) is None or (scope, key) == ("long-term", SETTINGS_KEY):
        raise NoMemory(f"nothing is remembered under {ref[:100]!r}")
    mark = lore.marks.get(ref) or Mark(kind="memory", name=key)
    if asked.forgotten:
        unpinned = [game_lore.set_mark(ref, Mark(kind="memory"))] if ref in lore.marks else []
        return [*unpinned, MemoryChange(scope, "delete", key)]
    if asked.text is None:
        return [game_lore.set_mark(ref, _marked(mark, asked))]
    if scope == EPISODIC:
        raise LoreRefused("what happened is not changed; forget it instead")
    entry = memory.find_entry(scope, key)
    expires = None if entry is None else entry.expires
    return [MemoryChange(scope, "write", key, _value(memory.read(scope, key), asked.text), expires)]


def _value(present: Any, text: str) -> Any:
    """Return a new value for a tool: text where it was text, else the JSON value that the text is."""
    if isinstance(present, str):
        return as_json(text, "the text")
    try:
        return as_json(decode(text.encode()), "the value")
    except (ValueError, RecursionError) as error:
        was = encode(present).decode()[:60]
        raise LoreRefused(
            f"the tool keeps JSON here, such as {was}; this is none: {why_unreadable(text, error)}"
        ) from None
