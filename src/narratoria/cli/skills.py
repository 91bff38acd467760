"""`narratoria skills`: list, show and check skills, and set what they let a person set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from narratoria import bounds, strict_json
from narratoria.cli import FAILED
from narratoria.cli.completion import SKILL, STORY
from narratoria.cli.output import console, print_json, styled
from narratoria.cli.skills_option import known_skills, say_problems, skills_option
from narratoria.errors import NarratoriaError
from narratoria.events import JsonObject
from narratoria.skills.skill import Skill
from narratoria.skills.skill_library import Place, SkillLibrary
from narratoria.skills.skill_settings import SettingsInvalid, SkillSettings, shown

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_story = click.option("--story", type=STORY, metavar="STORY", help="The skills of this story.")


@click.group()
def skills() -> None:
    """Skills (SKILL.md): list, show, check, and set."""


def _library(folders: Sequence[Path], story: str | None) -> SkillLibrary:
    if story is None:
        return known_skills(folders)
    from narratoria.play.story_library import open_story
    from narratoria.play.story_skills import story_skills

    return story_skills(open_story(story), folders)


def _named(library: SkillLibrary, name: str) -> tuple[Skill, SkillSettings]:
    skill = next((one for one in library.skills if one.name == name and not one.is_guide), None)
    settings = None if skill is None else library.settings_of(skill)
    if skill is None or settings is None:
        reasons = [line for line in (*library.problems, *library.notes) if name in line]
        known = ", ".join(one.name for one in library.skills) or "none"
        raise NarratoriaError(f"there is no skill {name!r}; {'; '.join(reasons) or f'there are: {known}'}")
    return skill, settings


@skills.command(name="list")
@skills_option
@_story
@_json
def list_(skill_folders: tuple[Path, ...], story: str | None, as_json: bool) -> int:
    """List the skills there are, and why others are skipped."""
    library = _library(skill_folders, story)
    if as_json:
        found = [_document(library, one) for one in library.skills]
        print_json({"skills": found, "problems": library.problems, "notes": library.notes})
        return FAILED if library.problems else 0
    out = console()
    for skill in library.skills:
        place = library.place_of(skill)
        out.print(styled((skill.name, "bold cyan"), (f"  {place.label if place else ''}", "dim")))
        if skill.description:
            out.print(styled(("    ", ""), (" ".join(skill.description.split()), "")))
        if scripts := ", ".join(
            tool.name for tool in library if tool.skill == skill.name and not skill.is_guide
        ):
            out.print(styled(("    ", ""), (scripts, "dim")))
    for line in library.notes:
        console(stderr=True).print(styled((line, "dim")))
    say_problems(library)
    return FAILED if library.problems else 0


def _document(library: SkillLibrary, skill: Skill) -> JsonObject:
    settings, place = library.settings_of(skill), library.place_of(skill)
    return {
        "name": skill.name,
        "description": skill.description,
        "place": place.label if place else "",
        "folder": str(skill.root) if skill.root else None,
        "license": skill.license,
        "compatibility": skill.compatibility,
        "metadata": dict(skill.metadata),
        "scripts": [tool.name for tool in library if tool.skill == skill.name and not skill.is_guide],
        "references": list(skill.references),
        "settings": settings.schema if settings else {},
    }


@skills.command()
@click.argument("name", type=SKILL)
@skills_option
@_story
@_json
def show(name: str, skill_folders: tuple[Path, ...], story: str | None, as_json: bool) -> int:
    """Show the skill NAME: its instructions, scripts, pages and settings."""
    library = _library(skill_folders, story)
    skill, settings = _named(library, name)
    if as_json:
        values = {key: {"value": value, "from": who} for key, value, who in shown(settings)}
        print_json({**_document(library, skill), "body": skill.body, "values": values})
        return 0
    out = console()
    out.print(styled((skill.name, "bold cyan"), (f"  {skill.root}", "dim")))
    out.print(styled((skill.description, "bold")))
    for tool in library:
        if tool.skill == skill.name:
            out.print(styled(("  ", ""), (tool.name, "cyan"), (f"  {tool.description}", "dim")))
    for path in skill.references:
        out.print(styled(("  ", ""), (path, "magenta")))
    for key, value, who in shown(settings):
        text = "" if value is None else msgspec.json.encode(value).decode()
        out.print(styled(("  ", ""), (key, "green"), (f" = {text}", ""), (f"  {who}", "dim")))
    out.print(styled((f"\n{skill.body}", "")))
    return 0


@skills.command(name="set")
@click.argument("name", type=SKILL)
@click.argument("changes", metavar="KEY=VALUE…", nargs=-1, required=True)
@skills_option
@_story
def set_(name: str, changes: tuple[str, ...], skill_folders: tuple[Path, ...], story: str | None) -> int:
    """Set KEY of the skill NAME to VALUE, JSON or a text; KEY= takes it back.

    A secret is not written down: its value says where it is kept, env:VARIABLE or keyring:ENTRY.
    """
    _, settings = _named(_library(skill_folders, story), name)
    wanted: dict[str, Any] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals:
            raise click.UsageError(f"{change!r}: expected KEY=VALUE, or KEY= to take it back")
        wanted[key] = _value(text, settings.properties.get(key)) if text else None
    try:
        settings.change(wanted)
    except SettingsInvalid as error:
        raise NarratoriaError(f"the skill {name!r}: {error}") from None
    click.echo(f"wrote {settings.file}", err=True)
    return 0


def _value(text: str, declared: Any) -> Any:
    """Return a value as the schema wants it: a text stays one, whatever it looks like."""
    if isinstance(declared, dict) and declared.get("type") == "string":
        return text
    try:
        return strict_json.read(os.fsencode(text))
    except (bounds.OutOfBounds, strict_json.DuplicateKey) as error:
        raise click.UsageError(f"{text[:40]!r}…: {error}") from None
    except ValueError:
        return text


@skills.command()
@click.argument("folders", metavar="DIR…", nargs=-1, required=True, type=click.Path(path_type=Path))
@_json
def check(folders: tuple[Path, ...], as_json: bool) -> int:
    """Check skills as other hosts would: DIR is a skill, or a folder of skills."""
    verdicts: dict[str, list[str]] = {}
    for folder in folders:
        library = SkillLibrary([Place(folder, "check", asked=True)])
        verdicts |= {str(skill.root): [] for skill in library.skills}
        for problem in [*library.problems, *(line for line in library.notes if line.startswith("skipped: "))]:
            verdicts.setdefault(problem.removeprefix("skipped: ").partition(": ")[0], []).append(problem)
        if not library.skills and not library.problems and not library.notes:
            verdicts[str(folder)] = [f"{folder}: has no SKILL.md; a skill is a folder with that file in it"]
    if as_json:
        print_json({"skills": [{"folder": where, "problems": found} for where, found in verdicts.items()]})
    else:
        for where, found in verdicts.items():
            if not found:
                console().print(styled(("✓ ", "green"), (where, "")))
            for line in found:
                console().print(styled(("✗ ", "red"), (line.removeprefix("skipped: "), "")))
    return FAILED if any(verdicts.values()) else 0
