"""The command line: `narratoria call | check | new | run | lint | plan | play | …`.

Exit codes: 0 ok, 1 failed, 2 usage, 124 timeout, 130 interrupted. `--json` prints one JSON document (or one a line)
on standard output and nothing else there; everything for people's eyes goes to standard error in that case.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Final

import click

from narratoria import __version__
from narratoria.errors import NarratoriaError

FAILED: Final = 1
USAGE: Final = 2
TIMED_OUT: Final = 124
INTERRUPTED: Final = 130

# Where each command lives. Only the one that is asked for is imported: `narratoria call` starts no web server.
COMMANDS: Final = {
    "call": ("narratoria.cli.call", "call"),
    "check": ("narratoria.cli.check", "check"),
    "eval": ("narratoria.cli.narrate", "evaluate_set"),
    "lint": ("narratoria.cli.plans", "lint"),
    "narrate": ("narratoria.cli.narrate", "narrate"),
    "new": ("narratoria.cli.new", "new"),
    "plan": ("narratoria.cli.plans", "plan"),
    "play": ("narratoria.cli.play", "play"),
    "replay": ("narratoria.cli.replay", "replay"),
    "run": ("narratoria.cli.plans", "run"),
    "schema": ("narratoria.cli.schema", "schema"),
    "sessions": ("narratoria.cli.sessions", "sessions"),
}


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)  # noqa: S101 - our own table
        return command


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="narratoria")
def cli() -> None:
    """Stories in which a narrator plans and tools in any language act."""


def main(arguments: list[str] | None = None) -> Any:
    """The entry point: runs a command and turns every ending into an exit code."""
    try:
        sys.exit(cli.main(arguments, prog_name="narratoria", standalone_mode=False) or 0)
    except click.UsageError as error:
        error.show()
        sys.exit(USAGE)
    except click.ClickException as error:
        error.show()
        sys.exit(FAILED)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except NarratoriaError as error:
        click.echo(f"narratoria: {error}", err=True)
        sys.exit(FAILED)
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # whoever read us is gone: nothing to say
        sys.exit(FAILED)
