"""Options of `call`, `check` and `dev` for the parts of a request beside its input: state, operation, dependencies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from narratoria.cli.output import read_object
from narratoria.events import JsonObject

_F = TypeVar("_F", bound=Callable[..., Any])


def request_options(command: _F) -> _F:
    """Add `--state`, `--operation` and `--dependencies` to a command."""
    for option in (
        click.option(
            "--dependencies",
            metavar="JSON",
            help="Outputs of the calls before it, by their toolId: JSON, a file, or -.",
        ),
        click.option("--operation", help="The operation; by default the manifest's, or run."),
        click.option(
            "--state",
            metavar="JSON",
            help="The session's state, for a tool that wants it: JSON, a file, or -.",
        ),
    ):
        command = option(command)
    return command


def given_object(option: str, text: str | None) -> JsonObject | None:
    """Return the object of an option that may be left out."""
    return None if text is None else read_object(option, text)
