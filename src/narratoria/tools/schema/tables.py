"""Tables of documents that people write, such as a story's rules, decoded into declared types."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from narratoria.errors import ArgumentsInvalid
from narratoria.state import lookup
from narratoria.tools.schema.typed import parser_for

_T = TypeVar("_T", bound="Table")
_PART: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_MEANT: Final = re.compile(r"unknown key; did you mean '([^']+)'\?")


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
    """Return each key that is wrong, as a path, with its problem; of an unknown one, the key perhaps meant.

    A key that is missing only because it is misspelt is left out.
    """
    found = [_problem(line) for line in error.problems]
    meant = {f"{_table_of(path)}{near[1]}" for path, problem in found if (near := _MEANT.search(problem))}
    return [
        (path, problem) for path, problem in found if not (path in meant and problem.startswith("missing"))
    ]


def as_meant(data: Mapping[str, Any], problems: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the document without its unknown keys, as `table_problems` names them: what a misspelt one holds is under
    the name that is perhaps meant.
    """
    document: dict[str, Any] = deepcopy(dict(data))
    for path, problem in problems:
        *above, name = (int(found[1]) if found[1] else found[2] for found in _PART.finditer(path))
        table = lookup(document, above, None)
        if problem.startswith("unknown key") and isinstance(table, dict) and name in table:
            value, meant = table.pop(name), _MEANT.search(problem)
            if meant:
                table.setdefault(meant[1], value)
    return document


def _table_of(path: str) -> str:
    """Return the path of the table that a key is in, with its dot."""
    table, dot, _ = path.rpartition(".")
    return table + dot


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
