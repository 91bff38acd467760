"""A skill: a folder with a SKILL.md (agentskills.io), and in it `scripts/`, `references/` and more."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from narratoria import bounds
from narratoria.errors import NarratoriaError
from narratoria.skills.frontmatter import FrontmatterInvalid, read_frontmatter

FILES: Final = ("SKILL.md", "skill.md")
KEYS: Final = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
LONGEST_NAME: Final = 64
LONGEST_DESCRIPTION: Final = 1024
LONGEST_COMPATIBILITY: Final = 500
MOST_REFERENCES: Final = 200


class SkillInvalid(NarratoriaError):
    """A folder is no skill; `problems` are the reasons, each with what to do."""

    def __init__(self, folder: Path, problems: list[str]) -> None:
        super().__init__(f"{folder}: {'; '.join(problems)}")
        self.folder = folder
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill that can be used: what it is called and for, and its instructions."""

    name: str
    description: str
    body: str = field(default="", repr=False)
    root: Path | None = None
    """Its folder; None for a guide, a single file `skills/NAME.md` of a story."""
    license: str = ""
    compatibility: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    allowed_tools: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    """Files under `references/`, by their paths from the skill's folder."""
    home: str = ""
    """The name of its folder for settings and data; that of the skill if empty."""

    @property
    def is_guide(self) -> bool:
        return self.root is None

    def read_reference(self, path: str) -> str:
        """Return the text of one of `references`; raise `SkillInvalid` for anything else."""
        if self.root is None or path not in self.references:
            known = ", ".join(self.references) or "none"
            raise SkillInvalid(
                self.root or Path(self.name), [f"there is no reference {path!r}; known: {known}"]
            )
        return _read(self.root, self.root / path)


def skill_file(folder: Path) -> Path | None:
    """Return the SKILL.md of a folder, None if it has none."""
    return next((path for name in FILES if (path := folder / name).is_file()), None)


def read_skill(folder: Path) -> Skill:
    """Read the skill in `folder`; raise `SkillInvalid` with every problem."""
    path = skill_file(folder)
    if path is None:
        raise SkillInvalid(folder, ["has no SKILL.md; a skill is a folder with that file in it"])
    try:
        front, body = read_frontmatter(_read(folder, path))
    except FrontmatterInvalid as error:
        raise SkillInvalid(folder, [f"{path.name}: {error}"]) from None
    if problems := [f"{path.name}: {problem}" for problem in check_keys(front, folder.absolute().name)]:
        raise SkillInvalid(folder, problems)
    metadata = front.get("metadata")
    return Skill(
        name=_normal(front["name"]),
        description=front["description"].strip(),
        body=body,
        root=folder.resolve(),
        license=_text(front.get("license")),
        compatibility=_text(front.get("compatibility")),
        metadata={key: str(value) for key, value in metadata.items()} if isinstance(metadata, dict) else {},
        allowed_tools=_words(front.get("allowed-tools")),
        references=tuple(path.relative_to(folder).as_posix() for path in reference_files(folder)),
    )


def guide(path: Path) -> Skill:
    """Read a guide: a single file `NAME.md` about the tools of the skill NAME."""
    return Skill(path.stem, "", _read(path.parent, path).replace("\r\n", "\n"))


def check_keys(front: Mapping[str, Any], folder: str) -> list[str]:
    """Return the problems of the keys at the top of a SKILL.md in a folder of that name."""
    strange = sorted(front.keys() - set(KEYS))
    problems = [
        f"key {key!r}: unknown; known are {', '.join(KEYS)}; what is your own goes under metadata"
        for key in strange
    ]
    problems += _name_problems(front["name"], folder) if "name" in front else ["key 'name' is missing"]
    if "description" not in front:
        problems.append("key 'description' is missing; say what the skill does and when to use it")
    else:
        problems += _length_problems("description", front["description"], LONGEST_DESCRIPTION)
    if front.get("compatibility", "") != "":
        problems += _length_problems("compatibility", front["compatibility"], LONGEST_COMPATIBILITY)
    return problems


def _name_problems(value: Any, folder: str) -> list[str]:
    if not isinstance(value, str) or not value.strip():
        return ["key 'name': expected a text"]
    name = _normal(value)
    problems = []
    if len(name) > LONGEST_NAME:
        problems.append(f"key 'name': has {len(name)} characters, more than {LONGEST_NAME}")
    if name != name.lower():
        problems.append(f"key 'name': {name!r} has capitals; use small letters")
    if name.startswith("-") or name.endswith("-") or "--" in name:
        problems.append(f"key 'name': {name!r}: hyphens stand alone, between letters or digits")
    if not all(letter.isalnum() or letter == "-" for letter in name):
        problems.append(f"key 'name': {name!r}: use letters, digits and hyphens only")
    if unicodedata.normalize("NFKC", folder) != name:
        problems.append(f"key 'name': {name!r}, but the folder is {folder!r}; they must be the same")
    return problems


def _length_problems(key: str, value: Any, most: int) -> list[str]:
    if not isinstance(value, str) or not value.strip():
        return [f"key {key!r}: expected a text"]
    if len(value) > most:
        return [f"key {key!r}: has {len(value):,} characters, more than {most:,}"]
    return []


def _normal(name: str) -> str:
    return unicodedata.normalize("NFKC", name.strip())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _words(value: Any) -> tuple[str, ...]:
    """Return `allowed-tools`, which people write as words or as a list."""
    return tuple(map(str, value)) if isinstance(value, list) else tuple(_text(value).split())


def reference_files(root: Path) -> list[Path]:
    """Return the files under `references/`, the first of very many. Links that lead out of the skill are left out."""
    if (root / "references").is_symlink():
        return []
    found: list[Path] = []
    for looked, (place, folders, names) in enumerate(os.walk(root / "references")):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(place, name)
            if not name.startswith(".") and path.is_file() and path.resolve().is_relative_to(root.resolve()):
                found.append(path)
        if len(found) >= MOST_REFERENCES or looked >= MOST_REFERENCES:
            break
    return found[:MOST_REFERENCES]


def _read(folder: Path, path: Path) -> str:
    try:
        return bounds.text_of(bounds.read_file(path))
    except bounds.DocumentFault as error:
        raise SkillInvalid(folder, [error.at(path.name)]) from None
    except OSError as error:
        raise SkillInvalid(folder, [f"{path.name} cannot be read: {error.strerror or error}"]) from None
