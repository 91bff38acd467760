"""The option `--narrator` of every command that asks narrators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from narratoria.extras import absent, needed
from narratoria.narrator.roster import NARRATORS

Command = TypeVar("Command", bound=Callable[..., Any])


def narrators_option(which: str = ", ".join(NARRATORS)) -> Callable[[Command], Command]:
    return click.option(
        "--narrator",
        "narrators",
        multiple=True,
        metavar="NAME",
        help=f"{which}; several are asked in order.",
    )


def say_missing_words() -> None:
    """Say in one line on standard error if what understands other words is not installed."""
    if absent("local"):
        click.echo(
            f"Stories know only their own words here: what understands others {needed('local')}", err=True
        )
