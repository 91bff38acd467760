"""`narratoria new`: a working tool in a language of your choice, or a story to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from narratoria.cli.output import print_json
from narratoria.cli.skeletons import LANGUAGES, NameRefused, next_steps, story_steps, write_story, write_tool


class _Language(click.Choice[str]):
    """A language with a skeleton. For any other, the message says that a tool needs none."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            self.fail(
                f"there is no skeleton in {value!r}, only in {', '.join(map(str, self.choices))}. A tool needs none: "
                f"any program that reads one JSON object and prints events is one. `narratoria schema tool-protocol` "
                f"has the events, `narratoria check` tries the tool, and docs/first-tool.md has a whole one in Perl",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


@click.group()
def new() -> None:
    """Start something new."""


@new.command("tool")
@click.argument("name")
@click.option("--lang", type=_Language(sorted(LANGUAGES)), default="python", show_default=True)
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    show_default=True,
)
@click.option("--json", "as_json", is_flag=True, help="Print the files written as JSON.")
def tool(name: str, lang: str, directory: Path, as_json: bool) -> int:
    """Write a conforming tool NAME, its manifest and a test."""
    try:
        files = write_tool(name, lang, directory)
    except NameRefused as error:
        raise click.BadParameter(str(error), param_hint="NAME") from None
    return _tell(files, next_steps(name, lang, directory), as_json)


@new.command("story")
@click.argument("name")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    show_default=True,
)
@click.option("--json", "as_json", is_flag=True, help="Print the files written as JSON.")
def story(name: str, directory: Path, as_json: bool) -> int:
    """Write a story NAME that can be played at once: three rooms, a tool of its own, and a test."""
    try:
        files = write_story(name, directory)
    except NameRefused as error:
        raise click.BadParameter(str(error), param_hint="NAME") from None
    return _tell(files, story_steps(name, directory), as_json)


def _tell(files: list[Path], steps: list[str], as_json: bool) -> int:
    if as_json:
        print_json({"files": [str(path) for path in files], "next": steps})
        return 0
    for path in files:
        click.echo(f"wrote {path}")
    click.echo("\nNext:")
    for step in steps:
        click.echo(f"  {step}")
    return 0
