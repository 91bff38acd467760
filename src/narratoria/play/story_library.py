"""The library: the folders that hold stories, and the stories in them, those that cannot be played too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from narratoria.errors import StoryInvalid, StoryProblem
from narratoria.play.story import Story
from narratoria.skills.skill_library import found_places
from narratoria.store.store import data_home
from narratoria.story_check.rule_book import did_you_mean
from narratoria.toml_lines import read_toml


@dataclass(frozen=True, slots=True)
class BrokenStory:
    """A story that cannot be played: what can be said of it, and its mistakes."""

    root: Path
    id: str
    title: str
    error: StoryInvalid

    @property
    def problem(self) -> StoryProblem:
        """The first mistake."""
        return (
            self.error.problems[0] if self.error.problems else StoryProblem(self.root, None, str(self.error))
        )

    @property
    def mistake(self) -> str:
        """The first mistake in a line; its file is named as it lies in the story's folder."""
        more = len([one for one in self.error.problems if one.severity == "error"]) - 1
        rest = f" (and {more} more)" if more > 0 else ""
        return f"{self.problem.place(self.root)}: {self.problem.message}{rest}"


def story_folders() -> list[Path]:
    """Return the folders that hold stories, the player's own first. In a wheel the others lie in the package, in a
    checkout beside `src`.
    """
    package = Path(__file__).resolve().parents[1]
    shipped = package / "stories"
    return [data_home() / "stories", shipped if shipped.is_dir() else package.parents[1] / "stories"]


def shelved(folders: Sequence[Path] | None = None) -> list[Story | BrokenStory]:
    """Return every story, by title, those with mistakes too.

    Where two have one id, the first shelf wins: a person may keep a changed copy of a shipped story. It wins with a
    mistake in it too: whoever edits it must not be given the other unawares.
    """
    found: dict[str, Story | BrokenStory] = {}
    for folder in story_folders() if folders is None else folders:
        for root in story_roots(folder):
            one = _read(root)
            there = found.setdefault(one.id, one)
            if there is not one and isinstance(one, BrokenStory) and one.root.parent == there.root.parent:
                found[f"{one.id} in {one.root}"] = (
                    one  # two of one shelf: a mistake is never hidden by the other
                )
    return sorted(found.values(), key=lambda story: story.title)


def is_story_folder(path: Path) -> bool:
    """Tell if a folder is a story's, or meant as one: rules without a `story.toml` are a mistake that is told."""
    return any((path / name).is_file() for name in ("story.toml", "narrator.toml"))


def story_roots(folder: Path) -> list[Path]:
    """Return the folders of a folder that are stories', or meant as such."""
    found = {path.parent for name in ("story.toml", "narrator.toml") for path in folder.glob(f"*/{name}")}
    return sorted(found)


def find_stories(
    folders: Sequence[Path] | None = None,
    *,
    on_invalid: Callable[[Path, StoryInvalid], None] = lambda path, error: None,
) -> list[Story]:
    """Return every playable story, by title. An invalid one goes to `on_invalid`."""
    found = shelved(folders)
    for one in found:
        if isinstance(one, BrokenStory):
            on_invalid(one.root, one.error)
    return [one for one in found if isinstance(one, Story)]


def open_story(name: str | Path) -> Story:
    """Return a story by its folder or its id; `StoryInvalid` lists the known ones."""
    path = Path(name)
    if is_story_folder(path):
        return Story.load(path)
    return library_story(str(name))


def library_story(name: str) -> Story:
    """Return a story of the library by its id, whatever folders the working directory has."""
    named = [
        root
        for folder in story_folders()
        for root in story_roots(folder)
        if name in (root.name, _name(root)[0])
    ]
    if len(named) == 1:  # the others need not be read
        only = _read(named[0])
        if isinstance(only, BrokenStory):
            raise only.error
        if only.id == name:
            return only
    stories = shelved()
    for one in stories:
        if one.id == name or (isinstance(one, BrokenStory) and one.root.name == name):
            if isinstance(one, BrokenStory):
                raise one.error
            return one
    hint = did_you_mean(name, [one.id for one in stories])
    raise StoryInvalid(f"{name}: neither a folder with a story.toml nor the id of a story; {hint}")


# --- reading, once for each change ---------------------------------------------------------------------

_Signature: TypeAlias = frozenset[tuple[str, int, int, int]]


@dataclass(frozen=True, slots=True)
class _Known:
    """A story as it was read, and what its folders looked like then."""

    folders: tuple[Path, ...]
    signature: _Signature
    story: Story | BrokenStory


_known: dict[Path, _Known] = {}
_reading = Lock()


def _read(root: Path) -> Story | BrokenStory:
    """Return the story in a folder: as it was read before, if none of its files has changed since."""
    root = root.resolve()
    with _reading:
        known = _known.get(root)
        if known is None or known.signature != _signature(known.folders):
            known = _known[root] = _read_anew(root)
    return known.story


def _read_anew(root: Path) -> _Known:
    before = _signature([root])
    try:
        story = Story.load(root)
    except StoryInvalid as error:
        return _Known((root,), before, BrokenStory(root, *_name(root), error))
    elsewhere = [place.folder for place in found_places(story.skills)] if story.skills else []
    return _Known((root, *elsewhere), before | _signature(elsewhere), story)


def _name(root: Path) -> tuple[str, str]:
    """Return the id and the title of a story that cannot be read whole; its folder's name, where it says neither."""
    try:
        data = read_toml(root / "story.toml")
    except StoryInvalid:
        data = {}
    said = [data.get(key) for key in ("id", "title")]
    named, title = (one if isinstance(one, str) and one.strip() else root.name for one in said)
    return named, title


def _signature(roots: Iterable[Path]) -> _Signature:
    """Return what tells if folders changed: their files, with times, sizes and modes."""
    found = []
    for place, folders, names in chain.from_iterable(map(os.walk, roots)):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in (*folders, *names):
            try:
                one = os.stat(os.path.join(place, name))  # noqa: PTH116, PTH118 - a page asks often
            except OSError:
                continue
            found.append((os.path.join(place, name), one.st_mtime_ns, one.st_size, one.st_mode))  # noqa: PTH118
    return frozenset(found)
