"""The texts of a story's folder: pages of lore, and guides to its skills."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from narratoria import bounds
from narratoria.errors import StoryInvalid
from narratoria.events import JsonObject


def check_guides(folder: Path, of_tools: set[str], named: Mapping[str, JsonObject]) -> None:
    """Refuse a guide, `skills/NAME.md`, about a skill that is none: neither of a tool, nor named, nor beside it."""
    known = of_tools | named.keys() | {path.parent.name for path in folder.glob("*/SKILL.md")}
    found, unread = texts(folder)
    if unread:
        raise StoryInvalid(f"{folder}: {unread[0]}")
    for name in sorted(found.keys() - known):
        there = ", ".join(sorted(known)) or "none"
        raise StoryInvalid(f"{folder / name}.md: no tool belongs to the skill {name!r}; there are: {there}")


def texts(folder: Path) -> tuple[dict[str, str], list[str]]:
    """Return Markdown files by name, and the problems of those that cannot be read."""
    found: dict[str, str] = {}
    unread: list[str] = []
    for path in sorted(folder.glob("*.md")):
        try:
            found[path.stem] = bounds.text_of(bounds.read_file(path)).replace("\r\n", "\n")
        except bounds.DocumentFault as error:
            unread.append(error.at(path.name))
        except OSError as error:
            unread.append(f"{path.name} cannot be read: {error.strerror or error}")
    return found, unread
