"""Sets of prompts over catalogues of tools, each with the calls that are right: JSON Lines files, read and checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import jsonschema_rs
import msgspec

from narratoria import bounds, json_lines, strict_json
from narratoria.errors import NarratoriaError
from narratoria.events import JsonObject
from narratoria.narrator.protocol import ToolCard
from narratoria.tools.schema.excerpts import shorten
from narratoria.tools.schema.tables import Table, read_as


class EvaluationSetInvalid(NarratoriaError):
    """A set of prompts cannot be used; the message names the file, the line and the key."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    name: str
    tools: tuple[ToolCard, ...]
    state: Mapping[str, Any] = field(default_factory=dict)
    premise: str = ""


class ExpectedCall(Table, frozen=True):
    tool: str
    input: JsonObject = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    catalogue: Catalogue
    prompt: str
    calls: tuple[ExpectedCall, ...]
    order: tuple[tuple[int, int], ...] = ()
    alternatives: tuple[tuple[ExpectedCall, ...], ...] = ()
    tags: frozenset[str] = frozenset()

    @property
    def idle(self) -> bool:
        """Nothing is to be done: a refusal is right, and a plan without calls as good."""
        return not self.calls and not any(self.alternatives)

    @property
    def serviceable(self) -> bool:
        """Something is to be done, and nothing less will do."""
        return bool(self.calls) and all(self.alternatives)


# --- the files, as they are written --------------------------------------------------------------------

_Word = Annotated[str, msgspec.Meta(min_length=1)]


class _Example(Table, frozen=True):
    description: str = ""
    input: JsonObject = msgspec.field(default_factory=dict)


class _Tool(Table, frozen=True, kw_only=True):
    name: _Word
    description: _Word
    parameters: JsonObject = msgspec.field(default_factory=dict)
    examples: tuple[_Example, ...] = ()
    skill: str = ""


class _Catalogue(Table, frozen=True, kw_only=True):
    tools: tuple[_Tool, ...]
    name: str = ""
    state: JsonObject = msgspec.field(default_factory=dict)
    premise: str = ""


class _Line(Table, frozen=True, kw_only=True):
    catalogue: _Word
    prompt: str
    calls: tuple[ExpectedCall, ...]
    order: tuple[tuple[int, int], ...] = ()
    alternatives: tuple[tuple[ExpectedCall, ...], ...] = ()
    tags: frozenset[str] = frozenset()


def invalid(where: str, key: str, problem: str) -> EvaluationSetInvalid:
    return EvaluationSetInvalid(f"{where}: {key}: {problem}; see evals/README.md")


# --- reading -------------------------------------------------------------------------------------------


def load_catalogue(path: Path) -> Catalogue:
    """A `catalogues/NAME.json`: `tools`, and if you like `name` (else the file's), `state` and `premise`."""
    data = _object(_read(path, strict_json.read_file), str(path))

    def wrong(key: str, problem: str) -> EvaluationSetInvalid:
        return invalid(f"{path}, line {json_lines.line_of(path, key)}", key, problem)

    found = read_as(_Catalogue, data, wrong)
    names = [tool.name for tool in found.tools]
    for index, tool in enumerate(found.tools):
        if tool.name in names[:index]:
            raise wrong(f"tools[{index}].name", f"a second tool called {tool.name!r}; rename one")
        try:
            jsonschema_rs.validator_for(tool.parameters)
            properties = tool.parameters.get("properties", {}).values()
        except ValueError as error:
            first = str(error).partition("\n")[0]
            raise wrong(f"tools[{index}].parameters", f"no JSON Schema: {first}") from None
        if not all(isinstance(one, Mapping) for one in properties):
            raise wrong(f"tools[{index}].parameters", "each of the properties must be an object")
    cards = [
        ToolCard(tool.name, tool.description, tool.parameters, raw.get("examples", ()), tool.skill or None)
        for tool, raw in zip(found.tools, data["tools"], strict=True)
    ]
    return Catalogue(found.name or path.stem, tuple(cards), found.state, found.premise)


def load_set(path: Path) -> list[Case]:
    """The cases of a JSON Lines file; their catalogues lie in `catalogues/` beside it."""
    catalogues: dict[str, Catalogue] = {}
    return [_case(path, where, data, catalogues) for where, data in read_lines(path)]


def _case(path: Path, where: str, data: JsonObject, catalogues: dict[str, Catalogue]) -> Case:
    if "story" in data:
        raise invalid(where, "story", "a set about a story's rules is read by narratoria.evals.story_sets")
    line = read_as(_Line, data, lambda key, problem: invalid(where, key, problem))
    name = line.catalogue
    if name not in catalogues:
        file = path.parent / "catalogues" / f"{name}.json"
        if not os.path.isfile(file):  # noqa: PTH113 - `Path` raises for a name that is too long
            raise invalid(
                where, "catalogue", f"no catalogue {shorten(name, 80)!r}; expected it in {file.parent}"
            )
        catalogues[name] = load_catalogue(file)
    known = {tool.name for tool in catalogues[name].tools}
    for call in (*line.calls, *(call for calls in line.alternatives for call in calls)):
        if call.tool not in known:
            there = ", ".join(sorted(known)) or "none"
            problem = f"no tool {call.tool!r} in the catalogue {name!r}; there are {there}"
            raise invalid(where, "calls", problem)
        for slot, value in call.input.items():
            if isinstance(value, Mapping) and not isinstance(value.get("$any", []), list):
                raise invalid(where, f"input {slot!r}", f"$any: expected a list, got {value['$any']!r}")
    for pair in line.order:
        if not all(0 <= index < len(line.calls) for index in pair):
            raise invalid(where, "order", f"{pair!r} is no pair of indices into calls")
    return Case(catalogues[name], line.prompt, line.calls, line.order, line.alternatives, line.tags)


def read_lines(path: Path, most: int | None = None) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a JSON Lines file, at most so many, each with the words for where it stands."""
    found = [(f"{path}, line {number}", data) for number, data in _read(path, strict_json.read_lines, most)]
    if not found:
        raise EvaluationSetInvalid(f"{path}: no prompts; write one object per line, as evals/README.md tells")
    return [(where, _object(data, where)) for where, data in found]


def _read(path: Path, read: Callable[..., Any], *options: Any) -> Any:
    try:
        return read(path, *options)
    except bounds.DocumentFault as error:
        where = f"{path}, line {error.line}" if error.line else path
        raise EvaluationSetInvalid(f"{where}: {error}") from None
    except OSError as error:
        raise EvaluationSetInvalid(f"{path}: cannot be read: {error}; it must be a file") from None


def _object(data: Any, where: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise EvaluationSetInvalid(f"{where}: expected an object")
    return data
