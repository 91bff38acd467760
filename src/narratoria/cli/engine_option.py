"""The options `--engine` and `--ray`, of the commands that run tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from narratoria.kinds.placement import choose

Command = TypeVar("Command", bound=Callable[..., Any])


def _choose(context: click.Context, parameter: click.Parameter, engine: str | None) -> None:
    address = context.params.pop("ray_address", None)
    if address is not None and engine == "local":
        raise click.UsageError("--ray names a cluster, and --engine local uses none", context)
    if engine is not None or address is not None:
        context.call_on_close(choose("local" if engine == "local" else "ray", address))


def engine_option(command: Command) -> Command:
    """Let a person choose where the tools run."""
    command = click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        callback=_choose,
        expose_value=False,
        help="Where executables run: here, or on a Ray cluster; by default on one only those that ask for resources.",
    )(command)
    return click.option(
        "--ray",
        "ray_address",
        metavar="ADDRESS",
        is_eager=True,
        help="The Ray cluster to use; without one, it is started on this machine.",
    )(command)
