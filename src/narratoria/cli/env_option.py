"""The option `--env`, of every command that runs tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from narratoria.errors import ToolValidationError
from narratoria.kinds.environment import pass_on

Command = TypeVar("Command", bound=Callable[..., Any])


def _pass_on(context: click.Context, parameter: click.Parameter, entries: tuple[str, ...]) -> None:
    try:
        context.call_on_close(pass_on(entries))
    except ToolValidationError as error:
        raise click.UsageError(str(error), context) from None


def env_option(command: Command) -> Command:
    """Let a person pass variables to the tools that the command runs."""
    return click.option(
        "--env",
        multiple=True,
        metavar="NAME[=VALUE]",
        callback=_pass_on,
        expose_value=False,
        help="Pass a variable of the environment to the tools.",
    )(command)
