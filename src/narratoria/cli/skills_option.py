"""The option `--skills`, of every command that may use skills."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import click

from narratoria.cli.output import console, styled
from narratoria.skills.skill_library import SkillLibrary, found_places, given_places

skills_option = click.option(
    "--skills",
    "skill_folders",
    multiple=True,
    metavar="DIR",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="A folder of skills (SKILL.md), or one skill. Their scripts can be used as skill.script.",
)


def known_skills(folders: Sequence[Path], only: Collection[str] | None = None) -> SkillLibrary:
    """Return the skills in folders a person named, and those found without: the project's, the person's and ours.

    `only` narrows the latter to some names.
    """
    return SkillLibrary([*given_places(folders), *found_places(only)])


def say_problems(library: SkillLibrary) -> None:
    """Print the problems of skills."""
    for line in library.problems:
        console(stderr=True).print(styled((line, "yellow")))
