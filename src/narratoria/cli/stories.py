"""`narratoria stories`: the stories of the library, those with mistakes too."""

from __future__ import annotations

from typing import Any

import click

from narratoria.cli.check_story import document
from narratoria.cli.output import console, print_json, styled
from narratoria.play.story import Story
from narratoria.play.story_library import BrokenStory, shelved, story_folders


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def stories(as_json: bool) -> int:
    """List the stories of the library. Each is listed with its first mistake or warning."""
    found = shelved()
    if as_json:
        print_json([_entry(one) for one in found])
        return 0
    out = console()
    width = max((len(one.id) for one in found), default=0)
    for one in found:
        if isinstance(one, BrokenStory):
            out.print(
                styled((f"{one.id:{width}}  ", "bold red"), (one.title, ""), ("  cannot be played", "red"))
            )
            out.print(styled((f"{'':{width}}  ✗ ", "red"), (one.mistake, "")))
        else:
            out.print(styled((f"{one.id:{width}}  ", "bold cyan"), (one.title, "")))
            if one.warning:
                out.print(styled((f"{'':{width}}  ! ", "yellow"), (one.warning, "")))
    if not found:
        out.print(f"no stories; put one into {story_folders()[0]}, or begin one: narratoria new story NAME")
    return 0


def _entry(story: Story | BrokenStory) -> dict[str, Any]:
    problem = document(story.problem) if isinstance(story, BrokenStory) else None
    warnings = [] if isinstance(story, BrokenStory) else [document(one) for one in story.warnings]
    named = {"id": story.id, "title": story.title, "folder": str(story.root)}
    return {**named, "problem": problem, "warnings": warnings}
