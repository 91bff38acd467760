"""Input and output shared by commands: JSON from an option, JSON printed, and a console that respects NO_COLOR."""

from __future__ import annotations

import math
import os
import re
import sys
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from rich.console import Console
from rich.text import Text

from narratoria.bounds import DocumentFault, read_file, read_stream
from narratoria.errors import ToolValidationError
from narratoria.run.plan import CallResult
from narratoria.tools.deadline import LONGEST_TIMEOUT, check_seconds
from narratoria.unicode_text import legible_data

_PATH: Final = re.compile(r"[^\s{}\[\]\"]+\.json|[^\s{}\[\]\"]*/[^\s{}\[\]\"]*")


class Seconds(click.FloatRange):
    """A time above zero, and at most `longest`: what is longer can only be meant in milliseconds."""

    def __init__(self, longest: float = LONGEST_TIMEOUT) -> None:
        super().__init__(min=0, min_open=True)
        self.longest = longest

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value} is not a number of seconds", param, ctx)
        try:
            check_seconds(param.opts[0] if param is not None else "a time", seconds, self.longest)
        except ToolValidationError as error:
            self.fail(str(error), param, ctx)
        return seconds


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # Rich would end the program here, and leave the tool running


def console(*, stderr: bool = False) -> Console:
    """Return a console. Rich reads NO_COLOR itself; text from tools is never interpreted as markup."""
    return _Console(stderr=stderr, markup=False, highlight=False, soft_wrap=True)


def page() -> Console:
    """Return a console for a story's text, which wraps. The other console never breaks a line."""
    return _Console(markup=False, highlight=False, width=min(88, console().width))


def unsaid(result: CallResult) -> list[str]:
    """Return the suggestions that the error text does not contain."""
    return [one for one in result.suggestions if one not in (result.error or "")]


def print_json(value: Any) -> None:
    try:
        text = msgspec.json.encode(value)
    except UnicodeEncodeError:  # the name of a file that is not UTF-8
        text = msgspec.json.encode(legible_data(msgspec.to_builtins(value)))
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def read_json(option: str, text: str) -> Any:
    """Parse a JSON argument: literal, `@file` or the path of a file that is there, or `-` for standard input. A mistake
    is a usage error.
    """
    file = text[1:] if text.startswith("@") else text if _is_file(text) else None
    try:
        if text == "-":
            source = read_stream(sys.stdin.buffer)
        elif file is not None:
            source = read_file(Path(file))
        else:
            source = os.fsencode(text)  # what the shell gave us, whatever the locale makes of it
    except (OSError, ValueError) as error:
        raise click.BadParameter(f"{file or text}: {error}", param_hint=option) from None
    from narratoria.strict_json import read  # not every command reads JSON

    try:
        return read(source)
    except DocumentFault as error:
        hint = f"; if it is a file, there is no {text} here" if file is None and _PATH.fullmatch(text) else ""
        place = "standard input" if text == "-" else file
        what = error.at(place) if place is not None else f"{error}{hint}"
        raise click.BadParameter(what, param_hint=option) from None


def _is_file(text: str) -> bool:
    """Tell if an argument is the path of a file: no JSON that is an object is."""
    try:
        return not text.lstrip().startswith(("{", "[")) and Path(text).is_file()
    except (OSError, ValueError):
        return False


def read_object(option: str, text: str) -> dict[str, Any]:
    value = read_json(option, text)
    if not isinstance(value, dict):
        raise click.BadParameter(f"must be a JSON object, got {type(value).__name__}", param_hint=option)
    return value


def styled(*parts: tuple[str, str]) -> Text:
    """Return text with styles; control characters in it are shown, not obeyed."""
    text = Text()
    for content, style in parts:
        text.append(printable(content), style)
    return text


def printable(text: str) -> str:
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text)
