"""What commands share: reading JSON from an option, writing it, and a console that respects NO_COLOR."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.text import Text


def console(*, stderr: bool = False) -> Console:
    """Rich reads NO_COLOR itself; text from tools is never interpreted as markup."""
    return Console(stderr=stderr, markup=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


def read_json(option: str, text: str) -> Any:
    """A JSON argument: literal, `@file`, or `-` for standard input. A mistake is a usage error."""
    if text == "-":
        source = sys.stdin.read()
    elif text.startswith("@"):
        try:
            source = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise click.BadParameter(f"{text[1:]}: {error}", param_hint=option) from None
    else:
        source = text
    try:
        return msgspec.json.decode(source)
    except (msgspec.DecodeError, RecursionError) as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint=option) from None


def read_object(option: str, text: str) -> dict[str, Any]:
    value = read_json(option, text)
    if not isinstance(value, dict):
        raise click.BadParameter(f"must be a JSON object, got {type(value).__name__}", param_hint=option)
    return value


def styled(*parts: tuple[str, str]) -> Text:
    """Text with styles, safe for whatever a tool wrote: control characters are shown, not obeyed."""
    text = Text()
    for content, style in parts:
        text.append(printable(content), style)
    return text


def printable(text: str) -> str:
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\x{ord(char):02x}" for char in text)
