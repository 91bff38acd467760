"""The command line: `narratoria call | check | mcp | new | run | lint | plan | play | …`.

Exit codes: 0 ok, 1 failed, 2 usage, 124 timeout, 130 interrupted, 129 and 143 hung up and terminated, 141 the reader
of standard output is gone. `--json` prints one JSON document (or one a line) on standard output and nothing else
there; all text for people goes to standard error in that case.
"""

from __future__ import annotations

import errno
import gc
import importlib
import io
import os
import sys
from pathlib import Path
from typing import Any, Final

import click

from narratoria import __version__
from narratoria.cli.signals import exit_code, install_signals
from narratoria.errors import NarratoriaError
from narratoria.kinds.process.ending import COMMAND_SECONDS, end_within
from narratoria.unicode_text import escaped

FAILED: Final = 1
USAGE: Final = 2
TIMED_OUT: Final = 124
INTERRUPTED: Final = 130
UNHEARD: Final = 141

# Where each command lives. Only the one that is asked for is imported: `narratoria call` starts no web server.
COMMANDS: Final = {
    "call": ("narratoria.cli.call", "call"),
    "check": ("narratoria.cli.check", "check"),
    "dev": ("narratoria.cli.dev_command", "dev"),
    "doctor": ("narratoria.cli.doctor", "doctor"),
    "eval": ("narratoria.cli.eval_command", "evaluate_set"),
    "lint": ("narratoria.cli.plans", "lint"),
    "mcp": ("narratoria.cli.mcp", "mcp"),
    "model": ("narratoria.cli.model", "model"),
    "narrate": ("narratoria.cli.narrate", "narrate"),
    "new": ("narratoria.cli.new", "new"),
    "plan": ("narratoria.cli.plans", "plan"),
    "play": ("narratoria.cli.play", "play"),
    "playtest": ("narratoria.cli.playtest_command", "playtest_command"),
    "replay": ("narratoria.cli.replay_command", "replay"),
    "run": ("narratoria.cli.plans", "run"),
    "schema": ("narratoria.cli.schema", "schema"),
    "serve": ("narratoria.cli.serve", "serve"),
    "sessions": ("narratoria.cli.sessions", "sessions"),
    "skills": ("narratoria.cli.skills", "skills"),
    "stories": ("narratoria.cli.stories", "stories"),
    "tools": ("narratoria.cli.tools", "tools"),
}


class _Unheard(Exception):
    """The reader of standard output is gone."""


class CommandGroup(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:  # click would make it an ordinary failure
            raise _Unheard from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)  # noqa: S101 - our own table
        spare_the_collector()
        return command


def spare_the_collector() -> None:
    """Exempt imported objects from garbage collection, and collect less often.

    Events come by the thousand and hold no cycles. Only for a process that runs nothing but Narratoria.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@click.command(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="narratoria")
def cli() -> None:
    """Stories in which a narrator plans and tools in any language act."""


def main(arguments: list[str] | None = None) -> Any:
    """Run a command and turn every ending into an exit code: the entry point."""
    _open_streams()
    install_signals(sys.argv[1:] if arguments is None else arguments)
    _export()
    try:
        code = cli.main(arguments, prog_name="narratoria", standalone_mode=False) or 0
        sys.stdout.flush()
        sys.exit(code)
    except click.UsageError as error:
        error.show()
        sys.exit(USAGE)
    except click.ClickException as error:
        error.show()
        sys.exit(FAILED)
    except (KeyboardInterrupt, click.Abort):
        # the exit waits for threads, also for one that is stuck, and so does a word to a reader that is
        end_within(COMMAND_SECONDS, exit_code(INTERRUPTED))
        click.echo("interrupted", err=True)
        sys.exit(exit_code(INTERRUPTED))
    except NarratoriaError as error:
        click.echo(escaped(f"narratoria: {error}", keep="\n\t"), err=True)
        sys.exit(FAILED)
    except (_Unheard, BrokenPipeError):
        _give_up_stdout()  # whoever read us is gone: nothing to say
        sys.exit(UNHEARD)
    except (OSError, UnicodeError) as error:
        _give_up_stdout()
        click.echo(f"narratoria: {_in_words(error)}", err=True)
        sys.exit(FAILED)


def _export() -> None:
    """Set up OpenTelemetry, if a variable of it is set."""
    if any(name.startswith("OTEL_") for name in os.environ) and "_NARRATORIA_COMPLETE" not in os.environ:
        from narratoria.cli.exporting import set_up

        set_up()


def _in_words(error: OSError | UnicodeError) -> str:
    """Return a system error as text, with advice if Narratoria's home cannot be written."""
    if not isinstance(error, OSError) or error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
        return str(error)
    from narratoria.store.store import data_home, unwritable

    home = data_home()
    refused = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else Path()
    if not refused.is_relative_to(home) and not home.is_relative_to(refused):
        return str(error)
    return unwritable(home, error)


def _open_streams() -> None:
    """Refuse to run without standard output; escape characters that the streams cannot show."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - for the rest of our life
    if sys.stdout is None:
        click.echo("narratoria: standard output is closed; redirect it to /dev/null instead", err=True)
        sys.exit(FAILED)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _give_up_stdout() -> None:
    """Point standard output at /dev/null, so that Python does not complain about unwritten output at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
