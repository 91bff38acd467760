"""The JSON documents about what a story remembers."""

from __future__ import annotations

from typing import Literal

import msgspec

from narratoria.web.documents import Document, Number, Request


class MemoryItem(Document, frozen=True, kw_only=True):
    """Something remembered: the player's `own`, or the story's: its lore, its turns, the notes of its tools."""

    id: str
    kind: Literal["lore", "character", "turn", "memory"]
    text: str
    name: str = ""
    own: bool = False
    keywords: list[str] = msgspec.field(default_factory=list)
    always: bool = False
    pinned: bool = False
    forgotten: bool = False
    edited: bool = False
    editable: bool = True
    book: str = ""
    """The file that it came from."""
    turns: list[int] = msgspec.field(default_factory=list)
    """The newest turns that it was recalled for."""


class MemoryView(Document, frozen=True, kw_only=True):
    """The memory of a game."""

    note: str
    own: list[MemoryItem]
    remembered: list[MemoryItem]
    unseen: int = 0
    """Pieces of the story's own lore that have not come up yet."""
    older_turns: int = 0
    """Turns that are remembered and not listed."""
    read: bool = False
    """A narrator of this game reads memories; otherwise lore is told where no rule has an answer."""
    last_edit: int | None = None
    """The newest edit that was not taken back."""


class MemoryEdit(Request, frozen=True, kw_only=True):
    """Change one thing: the `note`; the memory `id`; without an id, a new piece of lore. Only the given keys change.

    `forgotten` lets a memory go, and with `book` all that came from that file; `false` brings back what is the story's.
    """

    note: str | None = None
    id: str | None = None
    kind: Literal["lore", "character"] | None = None
    name: str | None = None
    text: str | None = None
    keywords: list[str] | None = None
    always: bool | None = None
    pinned: bool | None = None
    forgotten: bool | None = None
    book: str | None = None


class MemoryUndo(Request, frozen=True, kw_only=True):
    """Take back one edit, by its number."""

    edit: Number


class Edited(Document, frozen=True, kw_only=True):
    """An edit was made: `edit` is its number, by which it is taken back."""

    edit: int


class LoreImported(Document, frozen=True, kw_only=True):
    """A lorebook or a character card was taken in: how much of it, and what was dropped."""

    name: str
    entries: int
    characters: int
    dropped: list[str]
    edit: int
