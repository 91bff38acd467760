"""The texts in the page's scripts: strings and the fixed parts of templates, each with what stands before it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<pattern>(?<=[(,=:\[!&|?{};\s])/(?![*/\s])(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*)
    |"(?P<double>(?:[^"\\\n]|\\.)*)"
    |'(?P<single>(?:[^'\\\n]|\\.)*)'
    |(?P<template>`)""",
    re.DOTALL | re.VERBOSE,
)
HOLE = "\0"  # stands for `${…}` in the text of a template


class Text(NamedTuple):
    line: int
    before: str
    text: str


def texts_of(script: str) -> Iterator[Text]:
    """Yield the texts of a script, without comments and regular expressions."""
    for at, text in _scan(script, 0, "")[0]:
        yield Text(script.count("\n", 0, at) + 1, script[max(0, at - 60) : at], text)


def _scan(script: str, at: int, end: str) -> tuple[list[tuple[int, str]], int]:
    """Return the texts from `at` up to the brace that closes a part of a template, and the place after it."""
    found: list[tuple[int, str]] = []
    depth = 0
    while at < len(script):
        token = _TOKEN.match(script, at)
        if token and token["template"]:
            more, at = _template(script, token.end())
            found += more
        elif token:
            text = token["double"] if token["double"] is not None else token["single"]
            if text is not None:
                found.append((at, text))
            at = token.end()
        else:
            if end and script[at] == end and depth == 0:
                return found, at + 1
            depth += {"{": 1, "}": -1}.get(script[at], 0)
            at += 1
    return found, at


def _template(script: str, at: int) -> tuple[list[tuple[int, str]], int]:
    found, text, start = [], "", at - 1
    while script[at] != "`":
        if script[at] == "\\":
            text, at = text + script[at + 1], at + 2
        elif script.startswith("${", at):
            more, at = _scan(script, at + 2, "}")
            found, text = found + more, text + HOLE
        else:
            text, at = text + script[at], at + 1
    return [(start, text), *found], at + 1
