"""Sets of prompts over catalogues of tools, each with the calls that are right: JSON Lines files, read and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    data = _json(path.read_text(encoding="utf-8"), str(path))
    cards = [
        ToolCard(
            name=tool["name"],
            description=tool["description"],
            parameters=tool.get("parameters", {}),
            examples=tuple(tool.get("examples", ())),
            skill=tool.get("skill"),
        )
        for tool in data["tools"]
    ]
    return Catalogue(data["name"], tuple(cards), data.get("state", {}), data.get("premise", ""))


def load_set(path: Path) -> list[Case]:
    """The cases of a JSON Lines file; their catalogues lie in `catalogues/` beside it."""
    catalogues: dict[str, Catalogue] = {}
    cases = []
    for where, data in read_lines(path):
        missing = {"catalogue", "prompt", "calls"} - data.keys()
        if missing:
            other = "; it is about a story's rules: narratoria.narrator.story_sets" if "story" in data else ""
            raise EvaluationSetInvalid(
                f"{where}: no {', '.join(sorted(missing))}{other}; see evals/README.md"
            )
        name = data["catalogue"]
        if name not in catalogues:
            file = path.parent / "catalogues" / f"{name}.json"
            if not file.is_file():
                raise EvaluationSetInvalid(f"{where}: no catalogue {name!r}; expected it at {file}")
            catalogues[name] = load_catalogue(file)
        cases.append(_case(data, catalogues[name], where))
    return cases


def _case(data: Mapping[str, Any], catalogue: Catalogue, where: str) -> Case:
    for key in ("order", "alternatives", "tags"):
        if not isinstance(data.get(key, []), list):
            raise EvaluationSetInvalid(f"{where}: {key}: expected a list, got {data[key]!r}")
    known = [tool.name for tool in catalogue.tools]

    def expected(calls: Any) -> tuple[ExpectedCall, ...]:
        if not isinstance(calls, list) or not all(
            isinstance(call, Mapping) and "tool" in call for call in calls
        ):
            raise EvaluationSetInvalid(
                f'{where}: calls are a list of {{"tool": …, "input": {{…}}}}, not {calls!r}'
            )
        for call in calls:
            if call["tool"] not in known:
                there = ", ".join(sorted(known))
                raise EvaluationSetInvalid(
                    f"{where}: no tool {call['tool']!r} in the catalogue {catalogue.name!r}; there are {there}"
                )
        return tuple(ExpectedCall(call["tool"], call.get("input", {})) for call in calls)

    calls, order = expected(data["calls"]), data.get("order", [])
    for pair in order:
        if not isinstance(pair, list) or len(pair) != 2 or any(one not in range(len(calls)) for one in pair):
            raise EvaluationSetInvalid(f"{where}: order: {pair!r} is no pair of indices into calls")
    return Case(
        catalogue,
        data["prompt"],
        calls,
        tuple((first, second) for first, second in order),
        tuple(expected(calls) for calls in data.get("alternatives", ())),
        frozenset(data.get("tags", ())),
    )


def read_lines(path: Path, most: int | None = None) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a JSON Lines file, at most so many, each with the words for where it stands."""
    found: list[tuple[str, dict[str, Any]]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
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
    except ValueError as error:
        raise EvaluationSetInvalid(f"{where}: not JSON: {error}") from None
    if not isinstance(data, dict):
        raise EvaluationSetInvalid(f"{where}: expected an object")
    return data
