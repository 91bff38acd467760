"""The skills there are: where they are looked for, which are used, and why others are not.

Of two with one name, that of the earlier place is used: a story's own, those a person names, those of the project
(`.agents/skills`), of the person (`~/.agents/skills`), and last ours.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from narratoria.events import JsonObject
from narratoria.kinds.catalogue_updates import Catalogue, replace_tools
from narratoria.skills.script_tools import script_tools
from narratoria.skills.skill import Skill, SkillInvalid, guide, read_skill, reference_files, skill_file
from narratoria.skills.skill_settings import SkillSettings
from narratoria.tools.tool import Tool

CORE: Final = Path(__file__).parent / "core"
"""The skills that come with Narratoria."""
MOST_SKILLS: Final = 1_000
AGENTS: Final = Path(".agents", "skills")

AnyTool = Tool[Any, Any]
Signature = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of skills, or one skill."""

    folder: Path
    label: str
    only: frozenset[str] | None = None
    """The only skills to take, by name; None takes all."""
    asked: bool = False
    """True where a person or an author named the folder: a skill that is invalid there is their problem."""
    own: bool = False
    """True for the skills of the person and of Narratoria, which are known by their names alone."""
    guides: bool = False
    """True where single files `NAME.md` are guides, as in a story."""


def found_places(only: Collection[str] | None = None) -> list[Place]:
    """Return the places that are looked at without being named: the project's, the person's and ours."""
    names = None if only is None else frozenset(only)
    places = [(_folder(Path.cwd), "project"), (_folder(Path.home), "user"), (CORE, "narratoria")]
    return [
        Place(folder, label, names, own=label != "project") for folder, label in places if folder is not None
    ]


def _folder(base: Callable[[], Path]) -> Path | None:
    """Return the folder of skills below another; None if that is gone, or nobody knows where it is."""
    try:
        return base() / AGENTS
    except (OSError, RuntimeError):
        return None


def given_places(folders: Iterable[Path]) -> list[Place]:
    """Return the places that a person named with `--skills`."""
    return [Place(folder, "--skills", asked=True) for folder in folders]


@dataclass(slots=True)
class _Entry:
    """One skill, as it was when it was last read."""

    signature: Signature
    place: Place
    skill: Skill | None = None
    settings: SkillSettings | None = None
    tools: list[AnyTool] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class SkillLibrary:
    """The skills of some places. `refresh` reads what changed; `follow` keeps a registry in step."""

    def __init__(self, places: Sequence[Place], *, wanted: Mapping[str, JsonObject] | None = None) -> None:
        self.places = tuple(places)
        self.wanted = dict(wanted or {})
        """Skills that must be there, by name, with settings for them."""
        self.skills: list[Skill] = []
        self.problems: list[str] = []
        """Skills and scripts that cannot be used, where somebody asked for them."""
        self.notes: list[str] = []
        """Other skills that were skipped, and names that were mapped."""
        self._entries: dict[Path, _Entry] = {}
        self._registries: list[Catalogue] = []
        self._tools: list[AnyTool] = []
        self._fresh = True
        self.refresh()

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools)

    @property
    def tools(self) -> list[AnyTool]:
        """The tools of the skills, by the name of each skill."""
        return list(self._tools)

    def get(self, name: str) -> Skill | None:
        """Return the skill of that name."""
        return next((skill for skill in self.skills if skill.name == name), None)

    def settings_of(self, skill: Skill) -> SkillSettings | None:
        """Return the settings of a skill; None for a guide."""
        return next((one.settings for one in self._entries.values() if one.skill is skill), None)

    def place_of(self, skill: Skill) -> Place | None:
        """Return where a skill was found."""
        return next((one.place for one in self._entries.values() if one.skill is skill), None)

    def refresh(self) -> bool:
        """Look again. A skill that did not change stays the same object, its tools too. Return True for a change."""
        before, entries = self._entries, dict[Path, _Entry]()
        for place in self.places:
            for path in _candidates(place):
                if path not in entries and len(entries) < MOST_SKILLS:
                    signature = _signature(path)
                    known = before.get(path)
                    same = known is not None and known.signature == signature and known.place == place
                    entries[path] = (
                        known if known is not None and same else _read(path, place, signature, self.wanted)
                    )
        changed = self._fresh or _differs(before, entries)
        self._entries, self._fresh = entries, False
        if changed:
            self._settle()
        return changed

    def follow(self, registry: Catalogue) -> None:
        """Register the tools, now and whenever the skills change. A name that is taken stays with its owner."""
        self._registries.append(registry)
        replace_tools(registry, (), self._tools, self.notes)

    def _settle(self) -> None:
        """Choose the skills that count, and tell the registries."""
        old = self._tools
        self.skills, self._tools, self.problems, self.notes = [], [], [], []
        taken: dict[str, _Entry] = {}
        for path, entry in self._entries.items():
            (self.problems if entry.place.asked else self.notes).extend(entry.problems)
            if entry.skill is None:
                self.notes += entry.notes
                continue
            kept_as = f"{entry.skill.name}.md" if entry.skill.is_guide else entry.skill.name
            first = taken.setdefault(kept_as, entry)
            if first is not entry:
                there = first.skill.root if first.skill else None
                self.notes.append(f"{path}: skipped: {there} has the same name {entry.skill.name!r}")
                continue
            self.notes += entry.notes
            self.skills.append(entry.skill)
            self._tools += entry.tools
        for name in self.wanted.keys() - {skill.name for skill in self.skills}:
            looked = ", ".join(str(place.folder) for place in self.places)
            self.problems.append(
                f"there is no skill {name!r} in any of {looked}; put its folder into one of them"
            )
        for registry in self._registries:
            replace_tools(registry, old, self._tools, self.notes)


def _home(skill: Skill, place: Place) -> str:
    """Return the name of a skill's folder for settings and data. One that came with a story or a project does not get
    the settings, and the secrets, of the person's own skill of the same name.
    """
    if place.own:
        return skill.name
    return f"{skill.name}-{hashlib.sha256(os.fsencode(skill.root or '')).hexdigest()[:8]}"


def _differs(before: dict[Path, _Entry], after: dict[Path, _Entry]) -> bool:
    return list(before) != list(after) or any(before[path] is not one for path, one in after.items())


def _candidates(place: Place) -> list[Path]:
    """Return the folders that may be skills, and the guides, by name."""
    if skill_file(place.folder) is not None:
        return [place.folder]
    try:
        names = sorted(os.listdir(place.folder))  # noqa: PTH208 - names are enough
    except OSError:
        return []
    found = []
    for name in names:
        path = place.folder / name
        if name.startswith((".", "_")):
            continue
        if place.guides and path.suffix == ".md" and path.is_file():
            found.append(path)
        elif not path.is_dir() or (place.only is not None and name not in place.only):
            continue
        elif place.asked or skill_file(path) is not None:
            found.append(path)
    return found


def _signature(path: Path) -> Signature:
    """Return what tells if a skill changed: the files that were read or can be run, and their times."""
    if path.suffix == ".md" and path.is_file():
        return _stat([path])
    parts = [path / "SKILL.md", path / "skill.md", path / "settings.schema.json"]
    parts += sorted(one for one in path.glob("scripts/*") if not one.name.startswith(("_", ".")))
    parts += reference_files(path)
    return _stat(parts)


def _stat(paths: Iterable[Path]) -> Signature:
    found = []
    for path in paths:
        try:
            one = path.stat()
        except OSError:
            continue
        found.append((str(path), one.st_mtime_ns, one.st_size, one.st_mode))
    return tuple(found)


def _read(path: Path, place: Place, signature: Signature, given: Mapping[str, JsonObject]) -> _Entry:
    """Read a skill; `given` are settings of a story, by the names of skills."""
    entry = _Entry(signature, place)
    try:
        if path.is_file():
            entry.skill = guide(path)
            return entry
        skill = read_skill(path)
        skill = replace(skill, home=_home(skill, place))
        entry.settings = SkillSettings.of(skill, given.get(skill.name))
        entry.skill = skill
    except SkillInvalid as error:
        # A folder among skills need not be one.
        (entry.notes if skill_file(path) is None else entry.problems).append(f"skipped: {error}")
        return entry
    scripts = script_tools(skill, entry.settings.surroundings)
    entry.tools, entry.problems, entry.notes = scripts.tools, scripts.problems, scripts.notes
    return entry
