"""`narratoria tools`: the tools there are, of which kind, from where, with their schemas."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import click
import msgspec

from narratoria.cli import FAILED
from narratoria.cli.completion import STORY
from narratoria.cli.env_option import env_option
from narratoria.cli.output import console, print_json, styled
from narratoria.cli.sandbox_option import sandbox_option
from narratoria.cli.skills_option import known_skills, skills_option
from narratoria.cli.source_options import opened_sources, source_options
from narratoria.errors import NarratoriaError
from narratoria.events import JsonObject
from narratoria.kinds.foreign_sources import ToolSources, joined
from narratoria.kinds.load import load_tool
from narratoria.kinds.process.custody import custody
from narratoria.kinds.process.process_tool import warmth
from narratoria.kinds.tool_files import tool_files
from narratoria.run.registry import ToolRegistry
from narratoria.skills.skill_library import SkillLibrary
from narratoria.tools.tool import Tool

AnyTool = Tool[Any, Any]


class Listing:
    """The tools found so far, by name, and the reasons why some are missing."""

    def __init__(self) -> None:
        self.registry = ToolRegistry()
        self.problems: list[str] = []
        self.notes: list[str] = []

    def add(self, tools: Iterable[AnyTool]) -> None:
        for tool in tools:
            try:
                self.registry.register(tool)
            except NarratoriaError as error:
                self.problems.append(str(error))

    def add_folder(self, folder: Path) -> None:
        """Add the tools of a folder; those below it too."""
        for one in tool_files(folder):
            if one.problem is not None:
                self.notes.append(f"{one.path} {one.problem}")
                continue
            try:
                self.add([load_tool(one.path)])
            except NarratoriaError as error:
                self.problems.append(f"{one.path}: {error}")

    def add_skills(self, library: SkillLibrary) -> None:
        """Add the scripts of skills."""
        self.add(library)
        self.problems += library.problems
        self.notes += library.notes

    def add_story(self, name: str, skill_folders: Sequence[Path]) -> ToolSources:
        """Add the tools of a story, those of its skills too; return its servers and documents."""
        from narratoria.play.game import story_registry
        from narratoria.play.story_library import open_story
        from narratoria.play.story_skills import story_skills

        story = open_story(name)
        library = story_skills(story, skill_folders)
        self.add(story_registry(story, library))
        self.problems += library.problems
        self.notes += library.notes
        return story.sources


@click.command()
@click.option(
    "--tools",
    "folders",
    multiple=True,
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="A folder with tools in it.",
)
@click.option("--story", type=STORY, metavar="STORY", help="A name from the library, or a folder.")
@source_options
@skills_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, with the schemas.")
@env_option
@sandbox_option
def tools(
    folders: Sequence[Path],
    story: str | None,
    sources: ToolSources | None,
    skill_folders: tuple[Path, ...],
    as_json: bool,
) -> int:
    """List the tools there are: their kind, where they come from, and their parameters.

    Tools of installed packages, and scripts of the skills in .agents/skills, in ~/.agents/skills and of Narratoria are
    always listed; with --story, only those skills that the story uses.
    """
    listing = Listing()
    try:
        listing.registry.register_entry_points()
    except NarratoriaError as error:
        listing.problems.append(str(error))
    for folder in folders:
        listing.add_folder(folder)
    own = None
    if story is not None:
        own = listing.add_story(story, skill_folders)
    else:
        listing.add_skills(known_skills(skill_folders))
    asyncio.run(_ask(listing, joined([own, sources])))
    if as_json:
        documents = [document(tool) for tool in listing.registry]
        print_json({"tools": documents, "problems": listing.problems, "notes": listing.notes})
    else:
        _show(listing, nothing_asked=not (folders or story or sources))
    return FAILED if listing.problems else 0


async def _ask(listing: Listing, found: ToolSources) -> None:
    """Add the tools of servers and documents, which have to be opened for that."""
    if not found:
        return
    custody().adopt_orphans()
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(opened_sources(found, quiet=True))
        listing.add(opened)
        listing.problems += opened.problems
        listing.notes += opened.notes


def document(tool: AnyTool) -> JsonObject:
    """Return a tool as JSON: everything that a host or a person needs to choose and to call it."""
    return {
        "name": tool.name,
        "title": tool.title,
        "kind": tool.kind.name,
        "from": str(tool.origin) if tool.origin is not None else tool.handler.__module__,
        "description": tool.description,
        "parameters": msgspec.to_builtins(dict(tool.parameters)),
        "timeout": tool.timeout,
        "retries": tool.retry.max_retries,
        "permissions": list(tool.permissions),
        "approval": tool.approval,
        "warm": warmth(tool) == "",
        "skill": tool.skill,
        "preconditions": [one.description for one in tool.preconditions],
        "effects": [
            {"type": one.type, "description": one.description, "reversible": one.reversible}
            for one in tool.effects
        ],
    }


def _show(listing: Listing, *, nothing_asked: bool) -> None:
    out, err = console(), console(stderr=True)
    place = ""
    for tool in listing.registry:
        made = document(tool)
        folder = str(tool.origin.parent) if isinstance(tool.origin, Path) else made["from"]
        if folder != place:
            place = folder
            out.print(styled((place, "bold magenta")))
        out.print(
            styled(
                ("  ", ""),
                (tool.name, "bold cyan"),
                (f"({_parameters(tool)})", ""),
                (f"  {tool.kind.name}", "dim"),
                ("  warm" if warmth(tool) == "" else "", "dim"),
                (f"  asks first: {tool.approval}" if tool.approval not in (None, "never") else "", "yellow"),
            )
        )
        out.print(styled(("      ", ""), (_first_line(tool.description), "dim")))
        if why := warmth(tool):
            listing.notes.append(f"{tool.name}: its manifest says `warm`, but it is started cold: {why}")
    for line in listing.notes:
        err.print(styled((line, "dim")))
    for line in listing.problems:
        err.print(styled((line, "yellow")))
    if not len(listing.registry) and nothing_asked:
        err.print(
            styled(("no tools; name some with --tools, --story, --mcp, --openapi or --skills", "yellow"))
        )


def _parameters(tool: AnyTool) -> str:
    declared = tool.parameters.get("properties")
    if not isinstance(declared, dict):
        return "…" if tool.parameters.get("additionalProperties", True) else ""
    required = tool.parameters.get("required") or ()
    return ", ".join(name if name in required else f"{name}?" for name in declared)


def _first_line(text: str, most: int = 160) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= most else f"{line[:most]}…"
