"""The part of `narratoria check` that is about stories: their problems, read and shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from narratoria.cli.output import styled
from narratoria.errors import StoryInvalid, StoryProblem
from narratoria.play.story import Story
from narratoria.play.story_library import is_story_folder, library_story
from narratoria.play.story_lore import check_lore


@dataclass(frozen=True)
class StoryReport:
    """The problems of a story."""

    name: str
    problems: tuple[StoryProblem, ...]

    @property
    def conforms(self) -> bool:
        return all(one.severity != "error" for one in self.problems)


def is_story(path: Path) -> bool:
    """Tell if a path is a story's folder, or its story.toml."""
    return is_story_folder(path) or (path.name == "story.toml" and path.is_file())


def check_story(path: Path) -> StoryReport:
    """Read the story in a folder, or the one of that name in the library."""
    folder = path.parent if path.name == "story.toml" else path
    try:
        story = Story.load(folder) if folder.is_dir() else library_story(str(path))
        check_lore(story)
    except StoryInvalid as error:
        return StoryReport(str(path), error.problems or (StoryProblem(path, None, str(error)),))
    return StoryReport(story.title, story.warnings)


def document(problem: StoryProblem) -> dict[str, Any]:
    return {
        "file": str(problem.file),
        "line": problem.line,
        "severity": problem.severity,
        "message": problem.message,
    }


def show(report: StoryReport, out: Console) -> None:
    here = Path.cwd()
    for one in report.problems:
        mark, style = ("✗", "red") if one.severity == "error" else ("!", "yellow")
        out.print(styled((f"{mark} ", style), (one.place(here), "bold"), (f": {one.message}", "")))
    errors = sum(one.severity == "error" for one in report.problems)
    warnings = len(report.problems) - errors
    tally = ", ".join(
        f"{count} {name}{'s' if count > 1 else ''}"
        for count, name in ((errors, "mistake"), (warnings, "warning"))
        if count
    )
    if errors:
        out.print(styled((f"✗ {report.name} cannot be played", "bold red"), (f": {tally}", "")))
    else:
        out.print(styled((f"✓ {report.name}", "bold green"), (f": {tally or 'no mistakes'}", "")))
