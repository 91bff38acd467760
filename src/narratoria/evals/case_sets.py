"""Sets of prompts over catalogues of tools, each with the calls that are right: JSON Lines files, read and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import jsonschema_rs

from narratoria.errors import NarratoriaError
from narratoria.narrator.protocol import ToolCard


class EvaluationSetInvalid(NarratoriaError):
    """A set of prompts cannot be used; the message names the file, the line and the key."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    name: str
    tools: tuple[ToolCard, ...]
    state: Mapping[str, Any] = field(default_factory=dict)
    premise: str = ""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    tool: str
    input: Mapping[str, Any]


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


def load_catalogue(path: Path) -> Catalogue:
    """A `catalogues/NAME.json`: `tools`, and if you like `name` (else the file's), `state` and `premise`."""
    where = str(path)
    data = _json(read_text(path), where)
    tools = _member(data, "tools", list, where)
    cards = [_card(tool, f"{where}: tools[{index}]") for index, tool in enumerate(tools)]
    names = [card.name for card in cards]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise EvaluationSetInvalid(f"{where}: tools[{index}]: a second tool called {name!r}; rename one")
    return Catalogue(
        _member(data, "name", str, where, path.stem),
        tuple(cards),
        _member(data, "state", dict, where, {}),
        _member(data, "premise", str, where, ""),
    )


def _card(tool: Any, where: str) -> ToolCard:
    if not isinstance(tool, Mapping):
        raise EvaluationSetInvalid(f'{where}: expected an object with "name" and "description", got {tool!r}')
    examples = _member(tool, "examples", list, where, [])
    for index, example in enumerate(examples):
        if not isinstance(example, Mapping):
            raise EvaluationSetInvalid(f"{where}: examples[{index}]: expected an object, got {example!r}")
        _member(example, "description", str, f"{where}: examples[{index}]", "")
        _member(example, "input", dict, f"{where}: examples[{index}]", {})
    parameters = _member(tool, "parameters", dict, where, {})
    try:
        jsonschema_rs.validator_for(parameters)
        described = all(isinstance(one, Mapping) for one in parameters.get("properties", {}).values())
    except ValueError as error:
        raise EvaluationSetInvalid(f"{where}: parameters: no JSON Schema: {_first_line(error)}") from None
    if not described:
        raise EvaluationSetInvalid(f"{where}: parameters: each of the properties must be an object")
    skill = _member(tool, "skill", str, where, "")
    return ToolCard(
        name=_word(tool, "name", where),
        description=_word(tool, "description", where),
        parameters=parameters,
        examples=tuple(examples),
        skill=skill or None,
    )


def _word(data: Mapping[str, Any], key: str, where: str) -> str:
    text: str = _member(data, key, str, where)
    if not text.strip():
        raise EvaluationSetInvalid(f"{where}: {key}: empty; write some text")
    return text


_KINDS: Final[Mapping[type, str]] = {str: "text", list: "a list", dict: "an object"}


def _member(data: Mapping[str, Any], key: str, kind: type, where: str, default: Any = None) -> Any:
    """A key's value, of the right kind; one without a default must be there."""
    if key not in data:
        if default is None:
            raise EvaluationSetInvalid(f"{where}: no {key}; add it: {_KINDS[kind]} is needed")
        return default
    if not isinstance(data[key], kind):
        raise EvaluationSetInvalid(f"{where}: {key}: expected {_KINDS[kind]}, got {data[key]!r}")
    return data[key]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def load_set(path: Path) -> list[Case]:
    """The cases of a JSON Lines file; their catalogues lie in `catalogues/` beside it."""
    catalogues: dict[str, Catalogue] = {}
    cases = []
    for where, data in read_lines(path):
        missing = {"catalogue", "prompt", "calls"} - data.keys()
        if missing:
            other = "; it is about a story's rules: narratoria.evals.story_sets" if "story" in data else ""
            raise EvaluationSetInvalid(
                f"{where}: no {', '.join(sorted(missing))}{other}; see evals/README.md"
            )
        name = _word(data, "catalogue", where)
        if name not in catalogues:
            file = path.parent / "catalogues" / f"{name}.json"
            if not file.is_file():
                raise EvaluationSetInvalid(f"{where}: no catalogue {name!r}; expected it at {file}")
            catalogues[name] = load_catalogue(file)
        cases.append(_case(data, catalogues[name], where))
    return cases


def _case(data: Mapping[str, Any], catalogue: Catalogue, where: str) -> Case:
    prompt = _member(data, "prompt", str, where)
    known = [tool.name for tool in catalogue.tools]

    def expected(calls: Any) -> tuple[ExpectedCall, ...]:
        if not isinstance(calls, list) or not all(
            isinstance(call, Mapping) and isinstance(call.get("tool"), str) for call in calls
        ):
            raise EvaluationSetInvalid(
                f'{where}: calls are a list of {{"tool": …, "input": {{…}}}}, not {calls!r}'
            )
        for call in calls:
            if call["tool"] not in known:
                there = ", ".join(sorted(known)) or "none"
                raise EvaluationSetInvalid(
                    f"{where}: no tool {call['tool']!r} in the catalogue {catalogue.name!r}; there are {there}"
                )
        return tuple(ExpectedCall(call["tool"], _expected_input(call, where)) for call in calls)

    calls = expected(data["calls"])
    order = _member(data, "order", list, where, [])
    for pair in order:
        if not isinstance(pair, list) or len(pair) != 2 or not all(_is_index(one, calls) for one in pair):
            raise EvaluationSetInvalid(f"{where}: order: {pair!r} is no pair of indices into calls")
    tags = _member(data, "tags", list, where, [])
    for tag in tags:
        if not isinstance(tag, str):
            raise EvaluationSetInvalid(f"{where}: tags: expected texts, got {tag!r}")
    return Case(
        catalogue,
        prompt,
        calls,
        tuple((first, second) for first, second in order),
        tuple(expected(calls) for calls in _member(data, "alternatives", list, where, [])),
        frozenset(tags),
    )


def _expected_input(call: Mapping[str, Any], where: str) -> dict[str, Any]:
    given: dict[str, Any] = _member(call, "input", dict, where, {})
    for name, value in given.items():
        if isinstance(value, Mapping) and not isinstance(value.get("$any", []), list):
            raise EvaluationSetInvalid(
                f"{where}: input {name!r}: $any: expected a list, got {value['$any']!r}"
            )
    return given


def _is_index(one: Any, calls: Sized) -> bool:
    return isinstance(one, int) and not isinstance(one, bool) and 0 <= one < len(calls)


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationSetInvalid(f"{path}: cannot be read: {error}; it must be a file in UTF-8") from None


def read_lines(path: Path, most: int | None = None) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a JSON Lines file, at most so many, each with the words for where it stands."""
    found: list[tuple[str, dict[str, Any]]] = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip() and (most is None or len(found) < most):
            found.append((f"{path}, line {number}", _json(line, f"{path}, line {number}")))
    if not found:
        raise EvaluationSetInvalid(
            f"{path}: no prompts; write one JSON object per line, as evals/README.md tells"
        )
    return found


def _json(text: str, where: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EvaluationSetInvalid(f"{where}: not JSON: {error}") from None
    if not isinstance(data, dict):
        raise EvaluationSetInvalid(f"{where}: expected an object")
    return data
