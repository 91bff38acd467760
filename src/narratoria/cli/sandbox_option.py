"""The options `--sandbox` and `--missing-walls`, of every command that runs tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from narratoria.kinds.sandbox import NAMES, choose

Command = TypeVar("Command", bound=Callable[..., Any])


def _choose(context: click.Context, parameter: click.Parameter, profile: str | None) -> None:
    if profile is not None:
        context.call_on_close(choose(profile))


def _run_without(context: click.Context, parameter: click.Parameter, what: str) -> None:
    if what == "report":
        context.call_on_close(choose(None, despite_missing=True))


def sandbox_option(command: Command) -> Command:
    """Let a person choose the sandbox of the tools that the command runs."""
    walls = click.option(
        "--missing-walls",
        type=click.Choice(["refuse", "report"]),
        default="refuse",
        show_default=True,
        callback=_run_without,
        expose_value=False,
        help="A wall of the strict sandbox that this system lacks: refuse the call, or run it and say so.",
    )
    profile = click.option(
        "--sandbox",
        type=click.Choice(list(NAMES)),
        callback=_choose,
        expose_value=False,
        help="The sandbox of every tool, whatever its manifest and its place ask for.",
    )
    return profile(walls(command))
