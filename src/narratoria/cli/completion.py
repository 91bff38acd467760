"""Types of arguments that a shell can complete: stories of the library, saved sessions, tools, skills.

`_NARRATORIA_COMPLETE=bash_source narratoria` prints the script that a shell needs, as click documents it. Servers are
not started for it: the shell knows no tools of MCP servers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from narratoria.errors import NarratoriaError

if TYPE_CHECKING:
    from narratoria.skills.skill_library import SkillLibrary

SHOWN_SESSIONS: Final = 50  # those played last


class _Story(click.types.StringParamType):
    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the stories of the library, then leave the rest to the shell's completion of folders."""
        from narratoria.play.story_library import find_stories

        found = [story for story in find_stories() if story.id.startswith(incomplete)]
        named = [CompletionItem(story.id, help=story.title) for story in found]
        return named or [CompletionItem(incomplete, type="dir")]


class _Session(click.types.StringParamType):
    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the sessions played last."""
        from narratoria.store.default_store import default_store

        try:
            with closing(default_store()) as store:
                metas = [meta for meta in store.list() if meta.begun and meta.id.startswith(incomplete)]
        except (NarratoriaError, OSError):
            return []  # a shell has no place for an error
        return [
            CompletionItem(meta.id[:12], help=meta.title or meta.story or "")
            for meta in metas[:SHOWN_SESSIONS]
        ]


class _Tool(click.Path):
    """The path of a tool, or the name of a script of a skill."""

    stories = False

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the tools in the folder that is being typed, and the scripts of skills; where a folder could be meant
        as well, leave it to the shell.
        """
        named = [] if "/" in incomplete else [*_scripts(ctx, incomplete)]
        if self.stories and "/" not in incomplete:
            named += STORY.shell_complete(ctx, param, incomplete)
            named = [one for one in named if one.type == "plain"]
        folders = [""] if "/" in incomplete else ["", "tools/"]
        found = [one for folder in folders for one in _tools_in(folder, incomplete)]
        return [*found, *named] or [CompletionItem(incomplete, type="file")]


class _Target(_Tool):
    """A target of `check`: a tool, or a story of the library."""

    stories = True


class _Skill(click.types.StringParamType):
    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the skills that are known without a story."""
        found = _skills(ctx).skills
        return [
            CompletionItem(one.name, help=one.description[:100])
            for one in found
            if one.name.startswith(incomplete)
        ]


def _skills(ctx: click.Context) -> SkillLibrary:
    from narratoria.skills.skill_library import SkillLibrary, found_places, given_places

    return SkillLibrary([*given_places(ctx.params.get("skill_folders") or ()), *found_places()])


def _scripts(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    if "skill_folders" in {param.name for param in ctx.command.params}:
        for tool in _skills(ctx):
            if tool.name.startswith(incomplete):
                yield CompletionItem(tool.name, help=tool.description[:100])


def _tools_in(beside: str, incomplete: str) -> list[CompletionItem]:
    """Return the tools whose path begins with what is typed; none where a folder does so too."""
    from narratoria.kinds.tool_files import tool_files

    folder, slash, start = incomplete.rpartition("/")
    place = Path(f"{folder}{slash}" or beside or ".")
    prefix = f"{folder}{slash}" or beside or "./"
    if not place.is_dir():
        return []
    if slash and any(one.is_dir() and one.name.startswith(start) for one in place.iterdir()):
        return []
    paths = [
        f"{prefix}{one.path.name}"
        for one in tool_files(place, 0)
        if one.problem is None and not one.path.is_dir()
    ]
    typed = incomplete if slash else ""
    return [
        CompletionItem(path)
        for path in paths
        if path.startswith(typed) and (slash or Path(path).name.startswith(start))
    ]


STORY: Final[click.ParamType[Any]] = _Story()
SESSION: Final[click.ParamType[Any]] = _Session()
TOOL: Final[click.ParamType[Any]] = _Tool()
TARGET: Final[click.ParamType[Any]] = _Target()
SKILL: Final[click.ParamType[Any]] = _Skill()
