"""Tables of documents that people write, such as a story's rules, decoded into declared types."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar

import msgspec

from narratoria.errors import ArgumentsInvalid
from narratoria.tools.schema.typed import parser_for

_T = TypeVar("_T", bound="Table")


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a document: its keys are the fields, and there are no others."""


def read_as(type_: type[_T], data: Any, invalid: Callable[[str, str], Exception]) -> _T:
    """Return `data` as `type_`; raise `invalid(path, problem)` for the first key that is wrong: `rule[2].id`."""
    try:
        document: _T = _parser(type_)(data)
    except ArgumentsInvalid as error:
        raise invalid(*table_problems(error)[0]) from None
    return document


def table_problems(error: ArgumentsInvalid) -> list[tuple[str, str]]:
    """Return each key that is wrong, as a path, with its problem; of an unknown one, the key perhaps meant."""
    return [_problem(line) for line in error.problems]


def _problem(line: str) -> tuple[str, str]:
    path, _, problem = line.partition(": ")
    known = problem.partition("unknown key; known: ")[2]
    return path, unknown_key(path.rpartition(".")[2], known.split(", ")) if known else problem


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the problem of an unknown key."""
    names = list(known)
    near = difflib.get_close_matches(key, names, 1)
    return f"unknown key; did you mean {near[0]!r}?" if near else f"unknown key; known: {', '.join(names)}"


@cache
def _parser(type_: type[Table]) -> Callable[[Any], Any]:
    return parser_for(type_)
