"""Lore that fires for a prompt: the story's, and the player's own. It needs no model, so it works with rules alone."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from narratoria.errors import StoryInvalid
from narratoria.events import RecalledMemory, encode
from narratoria.lore.entries import ANY_STATE, LoreEntry, LoreInvalid, front_matter
from narratoria.lore.lore_files import read_lore
from narratoria.lore.world_info import SUFFIXES, Character, ImportedLore, ImportRejected, import_file
from narratoria.play.game_lore import NO_LORE, NOTE, GameLore, Mark
from narratoria.play.lore_index import Listed, LoreIndex
from narratoria.play.story import Story
from narratoria.session import Session
from narratoria.session.memory import Memory as SessionMemory

if TYPE_CHECKING:
    from narratoria.lore.lore_files import Memory

MOST_RECALLED: Final = 8  # for a turn, the author's note not among them
LONGEST_BEFORE: Final = 2_000  # letters of the narration before that are looked through for keywords
_SECONDS: Final = 1.0  # after which the rest of a very large book is not looked through
_LETTERS_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class Situation:
    """The things that remind a turn: its prompt, the narration before it, the state, and the player's lore."""

    prompt: str
    state: Mapping[str, Any] = field(default_factory=dict)
    before: str = ""
    lore: GameLore = NO_LORE
    memory: SessionMemory | None = None  # the session's, of which something may be pinned
    stands: Callable[[int], bool] = lambda turn: False  # tells if a turn was told and is not undone


def situation(session: Session, prompt: str, lore: GameLore, stands: Callable[[int], bool]) -> Situation:
    """Return what a prompt may remind the story of a session by."""
    before = session.past[-1][1] if session.past else ""
    return Situation(prompt, session.state, before, lore, session.memory, stands)


def check_lore(story: Story) -> list[str]:
    """Complaints about files of `lore/` that cannot be used. Raise `StoryInvalid` for a wrong file of the author."""
    return StoryLore(story).complaints()


class StoryLore:
    """The lore of a story that fires on words and on conditions over state, read when it is first needed."""

    def __init__(self, story: Story) -> None:
        self._story = story

    @cached_property
    def entries(self) -> Mapping[str, LoreEntry]:
        """By reference: the entries of its lore files, of its books, and its characters, by their names."""
        found: list[LoreEntry] = []
        for name, text in self._story.lore.items():
            found += read_lore(name, text, lambda part: len(part) // _LETTERS_PER_TOKEN)[1]
        for imported in self._imported[0]:
            found += imported.entries
        return {story_ref(entry.name, entry.text): entry for entry in found}

    def complaints(self) -> list[str]:
        """Complaints about files that cannot be used. Raise `StoryInvalid` for a wrong file of the author."""
        story = self._story
        for name, text in story.lore.items():
            try:
                front_matter(name, text)
            except LoreInvalid as error:
                raise StoryInvalid(f"{story.root / 'lore' / name}.md: {error}") from None
        unused = [f"left out: {complaint}" for complaint in story.unread_lore]
        return [f"lore: {complaint}" for complaint in (*unused, *self._imported[1])]

    @cached_property
    def _imported(self) -> tuple[list[ImportedLore], list[str]]:
        return import_folder(self._story.root / "lore")

    @property
    def characters(self) -> list[Character]:
        return [character for imported in self._imported[0] for character in imported.characters]

    @cached_property
    def _index(self) -> LoreIndex:
        return LoreIndex(Listed(ref, "lore", entry) for ref, entry in self.entries.items())

    def fired(self, now: Situation) -> list[RecalledMemory]:
        """Return the pinned, then the lore that fires, in its order; nothing that the player let be forgotten."""
        lore = now.lore
        if not self.entries and lore is NO_LORE:
            return []
        found = list(_pinned(now))
        text = f"{now.prompt}\n{now.before[-LONGEST_BEFORE:]}"
        end = time.monotonic() + _SECONDS
        fired: list[tuple[bool, int, RecalledMemory]] = []
        for ref, kind, written in (*lore.index.candidates(text), *self._index.candidates(text)):
            entry = _marked(written, lore.marks.get(ref))
            why = None if entry is None or time.monotonic() > end else _why(entry, now, text)
            if entry is not None and why is not None:
                fired.append((why.earlier, entry.order, _recalled(why, ref, kind, entry)))
        fired.sort(key=lambda one: one[:2])
        return _once([*found, *(one for _, _, one in fired)])

    def joined(
        self, fired: list[RecalledMemory], near: Iterable[Memory], lore: GameLore
    ) -> list[RecalledMemory]:
        """Return the fired, then those near in meaning, as the player left them."""
        found = list(fired)
        for memory in near:
            ref = f"turn:{memory.source}" if memory.kind == "turn" else story_ref(memory.source, memory.text)
            mark = lore.marks.get(ref)
            if mark is not None and (mark.forgotten or mark.pinned):
                continue
            text = mark.text if mark is not None and mark.edited else memory.text
            found.append(
                RecalledMemory(id=ref, kind=memory.kind, why="meaning", text=text, name=memory.source)
            )
        return _once(found)


def import_folder(folder: Path) -> tuple[list[ImportedLore], list[str]]:
    """The world-info files and cards in a folder, and what in it could not be used: a picture that is only one."""
    found: list[ImportedLore] = []
    complaints: list[str] = []
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        if path.suffix.lower() not in SUFFIXES or not path.is_file():
            continue
        try:
            imported = import_file(path)
        except (ImportRejected, OSError) as error:
            complaints.append(f"{path.name} is left out: {error}")
        else:
            found.append(imported)
            complaints += [f"{path.name}: left out: {one}" for one in imported.skipped]
    return found, complaints


def story_ref(name: str, text: str) -> str:
    """The reference of a piece of a story's lore: another text under the same name is another piece."""
    return f"story:{name}:{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def author_note(lore: GameLore) -> list[RecalledMemory]:
    return [RecalledMemory(id=NOTE, kind="note", why="note", text=lore.note)] if lore.note else []


def answers(recalled: Iterable[RecalledMemory], lore: GameLore) -> list[str]:
    """The player's own lore that the prompt names: with rules alone it is told where no rule knows an answer. The
    story's is not: its author may keep it for later.
    """
    return [
        one.text
        for one in recalled
        if one.id in lore.own and one.why in ("keyword", "pinned") and one.word and not one.earlier
    ]


@dataclass(frozen=True, slots=True)
class _Why:
    why: Any
    word: str = ""
    earlier: bool = False


def _why(entry: LoreEntry, now: Situation, both: str) -> _Why | None:
    if not entry.text or not entry.when.holds(now.state):
        return None
    if entry.always:
        return _Why("always")
    if not entry.keywords:
        return _Why("state") if entry.when != ANY_STATE else None
    word = entry.keyword_in(now.prompt)
    if word is not None:
        return _Why("keyword", word)
    word = entry.keyword_in(both) if now.before else None
    return None if word is None else _Why("keyword", word, earlier=True)


def _recalled(why: _Why, ref: str, kind: Any, entry: LoreEntry) -> RecalledMemory:
    return RecalledMemory(
        id=ref,
        kind=kind,
        why=why.why,
        text=entry.text,
        name=entry.name,
        word=why.word,
        earlier=why.earlier,
    )


def _pinned(now: Situation) -> Iterator[RecalledMemory]:
    for ref, own in now.lore.own.items():
        if own.pinned:
            entry = own.entry()
            word = entry.keyword_in(now.prompt) if entry.keywords else None
            yield _recalled(_Why("pinned", word or ""), ref, own.kind, entry)
    for ref, mark in now.lore.marks.items():
        if mark.pinned and (mark.kind != "turn" or _stands(ref, now)):
            text = mark.text
            if mark.kind == "memory" and now.memory is not None:
                text = memory_text(now.memory, ref) or ""
            if text:
                yield RecalledMemory(id=ref, kind=mark.kind, why="pinned", text=text, name=mark.name)


def _stands(ref: str, now: Situation) -> bool:
    """Tell if the turn of a reference `turn:N` stands."""
    number = ref.partition(":")[2]
    return number.isdecimal() and len(number) < 20 and now.stands(int(number))


def memory_text(memory: SessionMemory, ref: str) -> str | None:
    """Return the words of a tool under a reference `memory:scope:key`; None if they are forgotten."""
    _, _, place = ref.partition(":")
    scope, _, key = place.partition(":")
    if scope not in ("working", "short-term", "long-term", "episodic") or not memory.has(scope, key):
        return None
    value = memory.read(scope, key)
    return f"{key}: {value if isinstance(value, str) else encode(value).decode()}"


def _marked(entry: LoreEntry, mark: Mark | None) -> LoreEntry | None:
    if mark is None:
        return entry
    if mark.forgotten or mark.pinned:
        return None
    return replace(entry, text=mark.text) if mark.edited else entry


def _once(found: Iterable[RecalledMemory]) -> list[RecalledMemory]:
    seen: dict[str, RecalledMemory] = {}
    for one in found:
        seen.setdefault(one.text, one)
    return list(seen.values())[:MOST_RECALLED]
