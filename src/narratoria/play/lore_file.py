"""A lorebook or a character card on its way into a game: what of it is kept, and what is dropped, by name.

The files are those of SillyTavern and the clients like it: world info, character cards of versions 1 to 3, as JSON or
in a PNG. They are data: nothing in them runs, and every size is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

import msgspec

from narratoria.lore.entries import LoreEntry
from narratoria.lore.world_info import ImportRejected, decode, import_data
from narratoria.play.game_lore import MOST_EXPRESSIONS, GameLore, LoreRefused, OwnLore, check_room, checked
from narratoria.unicode_text import as_one_line

MAX_FILE: Final = 32 * 1024 * 1024
MOST_DROPPED: Final = 200  # lines of what was dropped; the rest is counted

# Fields with a meaning that a game here has no use for, and what to call them.
_OF_CARDS: Final = {
    "first_mes": "its greeting: the story here has an opening of its own",
    "alternate_greetings": "its other greetings",
    "group_only_greetings": "its greetings to groups",
    "mes_example": "its example dialogue",
    "system_prompt": "its system prompt",
    "post_history_instructions": "its instructions after the history",
    "creator_notes": "notes of its creator",
    "creator_notes_multilingual": "notes of its creator in other languages",
    "assets": "its pictures and sounds",
    "extensions": "what other programs added to it",
}
_OF_BOOKS: Final = {
    "scan_depth": "how many messages are looked through: here it is the prompt and the narration before it",
    "token_budget": "its token budget",
    "recursive_scanning": "lore that calls up other lore",
}
_OF_ENTRIES: Final = {
    "probability": "chance: it comes whenever it fits",
    "position": "the place in the prompt",
    "depth": "the place in the prompt",
    "sticky": "staying for some messages",
    "cooldown": "waiting for some messages",
    "delay": "waiting for some messages",
    "group": "groups of which one comes",
    "role": "the role it speaks in",
    "vectorized": "being found by meaning",
    "scanDepth": "how many messages are looked through",
    "priority": "its priority in a budget",
}
_USUAL: Final[Mapping[str, tuple[Any, ...]]] = {
    "probability": (100,),
    "position": (0, 1, "before_char", "after_char"),
    "depth": (4,),
    "role": (0, "system"),
    "priority": (10, 100),
}


@dataclass(frozen=True, slots=True)
class LoreFile:
    """The lore that a file brings into a game, and what of the file is dropped."""

    name: str
    kept: tuple[OwnLore, ...]
    dropped: tuple[str, ...]


def read_lore_file(data: bytes, file_name: str, lore: GameLore) -> LoreFile:
    """Read a file for a game that has `lore`. Raise `ImportRejected` or `LoreRefused`, which say why, and keep nothing,
    if it is no lore or there is no room for it.
    """
    where = as_one_line(file_name)[:100] or "the file"
    if len(data) > MAX_FILE:
        raise ImportRejected(f"{where}: it has more than the {MAX_FILE:,} bytes allowed")
    document = decode(data, where)
    found = import_data(document, PurePath(where).stem, where)
    name = as_one_line(found.name)[:100] or where
    dropped = [*found.skipped, *_unused(document)]
    if data.startswith(b"\x89PNG"):
        dropped.append("the picture itself")
    kept: list[OwnLore] = []
    left = MOST_EXPRESSIONS - sum(key.startswith("/") for one in lore.own.values() for key in one.keywords)
    for character in found.characters:
        if not character.sheet.strip():
            dropped.append(f"{character.name}: nothing describes it")
            continue
        _keep(OwnLore(text=character.sheet, name=character.name, kind="character", book=name), kept, dropped)
    for entry in found.entries:
        expressions = sum(key.startswith("/") for key in (*entry.keywords, *entry.also))
        if expressions > max(0, left):
            dropped.append(f"{entry.name}: more than {MOST_EXPRESSIONS} keywords of the game are expressions")
            continue
        left -= expressions
        _keep(_own(entry, name), kept, dropped)
    if not kept:
        raise ImportRejected(f"{where}: nothing in it can be used. {'; '.join(dropped[:5])}")
    check_room(lore, kept)
    more = len(dropped) - MOST_DROPPED
    lines = [as_one_line(line)[:300] for line in dropped[:MOST_DROPPED]]
    return LoreFile(name, tuple(kept), (*lines, *([f"and {more:,} more"] if more > 0 else [])))


def _own(entry: LoreEntry, book: str) -> OwnLore:
    return OwnLore(
        text=entry.text,
        name=as_one_line(entry.name)[:200],
        keywords=entry.keywords,
        also=entry.also,
        logic=entry.logic,
        always=entry.always,
        case_sensitive=entry.case_sensitive,
        order=entry.order,
        book=book,
    )


def _keep(own: OwnLore, kept: list[OwnLore], dropped: list[str]) -> None:
    try:
        kept.append(checked(msgspec.structs.replace(own, name=own.name[:200])))
    except LoreRefused as error:
        dropped.append(str(error))


def _unused(document: Any) -> Iterable[str]:
    """Name the fields that say something and are not used; those of entries once, with their number."""
    data = document.get("data") if isinstance(document.get("data"), Mapping) else document
    for key, what in (*_OF_CARDS.items(), *_OF_BOOKS.items()):
        if data.get(key):
            yield what
    inner = data.get("character_book")
    book = inner if isinstance(inner, Mapping) else data
    if book is not data:
        yield from (what for key, what in _OF_BOOKS.items() if book.get(key))
    entries = book.get("entries")
    listed = (
        entries.values() if isinstance(entries, Mapping) else entries if isinstance(entries, list) else ()
    )
    counts: dict[str, int] = {}
    for entry in listed:
        if isinstance(entry, Mapping):
            more = entry.get("extensions")
            fields = {**more, **entry} if isinstance(more, Mapping) else entry
            said = {what for key, what in _OF_ENTRIES.items() if _says(key, fields.get(key))}
            content = fields.get("content")
            if isinstance(content, str) and content.lstrip().startswith("@@"):
                said.add("decorators (the lines with @@)")
            for what in said:
                counts[what] = counts.get(what, 0) + 1
    for what, count in counts.items():
        yield f"of {count:,} {'entry' if count == 1 else 'entries'}: {what}"


def _says(key: str, value: Any) -> bool:
    return bool(value) and not any(value == usual for usual in _USUAL.get(key, ()))
