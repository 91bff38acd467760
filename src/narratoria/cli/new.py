"""`narratoria new tool`: a working skeleton in a language of your choice."""

from __future__ import annotations

from pathlib import Path

import click

from narratoria.cli.output import print_json
from narratoria.cli.skeletons import LANGUAGES, NameRefused, next_steps, write_tool


@click.group()
def new() -> None:
    """Start something new."""


@new.command("tool")
@click.argument("name")
@click.option("--lang", type=click.Choice(sorted(LANGUAGES)), default="python", show_default=True)
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
    if as_json:
        print_json({"files": [str(path) for path in files], "next": next_steps(name, lang, directory)})
        return 0
    for path in files:
        click.echo(f"wrote {path}")
    click.echo("\nNext:")
    for step in next_steps(name, lang, directory):
        click.echo(f"  {step}")
    return 0
