"""A story's rules with all that they are checked against."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from narratoria.errors import StoryProblem
from narratoria.narrator.rules.rule_file import Case, Rule, Rules
from narratoria.story_check.tool_sources import ToolSources
from narratoria.toml_lines import toml_problem
from narratoria.tools.tool import Tool

AnyTool = Tool[Any, Any]
Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Place:
    """A rule, or a case of one, with its keys in the file."""

    rule: Rule
    at: int
    case: Case
    number: int
    own: frozenset[str] | None
    """The keys of the case's own table; None for a rule without cases."""

    def key(self, name: str) -> str:
        """Return where the case's `name` is written: in its own table, or in the rule it inherits it from."""
        if self.own is None or name not in self.own:
            return f"rule[{self.at}].{name}"
        return f"rule[{self.at}].cases[{self.number}].{name}"

    @property
    def table(self) -> str:
        return f"rule[{self.at}]" if self.own is None else f"rule[{self.at}].cases[{self.number}]"


@dataclass(frozen=True)
class RuleBook:
    """The rules of a story, its tools, the state it begins with, and the choices of its opening."""

    root: Path
    rules: Rules
    tools: Mapping[str, AnyTool]
    """The tools that can be looked at now, by the name that rules call them by."""
    broken: AbstractSet[str] = frozenset()
    """Tools that have a mistake of their own."""
    lacking: Mapping[str, str] = field(default_factory=dict)
    """Files that are not yet tools, by name, and what they lack."""
    servers: AbstractSet[str] = frozenset()
    """MCP servers, whose tools are known only once they run."""
    state: Mapping[str, Any] = field(default_factory=dict)
    choices: Sequence[str] = ()
    go_on: str = ""
    """The words for letting time pass, if the story has any of its own."""
    folders: Sequence[Path] = ()
    """Folders with the sources of the tools."""

    @property
    def path(self) -> Path:
        """The file of the rules."""
        return self.root / "narrator.toml"

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Every case of every rule, in order."""
        return tuple(self._places())

    def _places(self) -> Iterator[Place]:
        for at, rule in enumerate(self.rules.rules):
            tables = self.rules.tables[at].get("cases") if at < len(self.rules.tables) else None
            for number, case in enumerate(rule.cases):
                own = frozenset(tables[number]) if tables else None
                yield Place(rule, at, case, number, own)

    @cached_property
    def sources(self) -> ToolSources:
        """The sources of the tools."""
        return ToolSources.read(self.folders)

    def problem(self, key: str, message: str, severity: Severity = "error", below: str = "") -> StoryProblem:
        """Return a problem of a key in narrator.toml, which it names; `below` leads from the key to the line."""
        return toml_problem(self.path, key + below, f"{self.rules.name_of(key)}: {message}", severity)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "there are", cutoff: float = 0.6) -> str:
    """Return the name perhaps meant, or the names there are."""
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, 1, cutoff)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"{otherwise}: {', '.join(names) if names else 'none'}"
