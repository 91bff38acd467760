"""`narrator.toml`: the rules of a scripted narrator, read and checked.

Every mistake is a `StoryProblem` that names the file, the line, the rule and the key; a `StoryInvalid` has those of the
whole file. docs/stories.md tells the keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from narratoria.errors import ArgumentsInvalid, StoryInvalid, StoryProblem
from narratoria.narrator.rules.fillable import slots
from narratoria.narrator.rules.patterns import ENGLISH, Language, Pattern, PatternError, language
from narratoria.narrator.rules.rule_tables import (
    LINES,
    CallTemplate,
    CaseTable,
    LanguageTable,
    RulesTable,
    RuleTable,
    Texts,
)
from narratoria.run.plan import tool_name
from narratoria.toml_lines import read_toml, toml_problem
from narratoria.tools.contract.conditions import Condition, condition
from narratoria.tools.contract.expectations import ConditionError
from narratoria.tools.schema.tables import as_meant, table_problems
from narratoria.tools.schema.typed import parser_for
from narratoria.typed_values import converter

_case_table: Final = converter(CaseTable)
_Groups: TypeAlias = set[str] | None  # of the patterns; None if these cannot be read


@dataclass(frozen=True, slots=True)
class Case:
    """The words, calls and patch of a rule in one situation."""

    when: Condition = field(default_factory=Condition)
    narrative: Texts = ()
    then: Texts | None = None
    instead: Texts | None = None
    unavailable: Texts | None = None
    calls: tuple[CallTemplate, ...] = ()
    patch: Mapping[str, Any] = field(default_factory=dict)
    choices: Texts = ()
    expect: Mapping[str, Any] = field(default_factory=dict)
    closing: bool = True

    @property
    def acts(self) -> bool:
        """Tell if it changes the state."""
        return bool(self.patch) or any(call.required for call in self.calls)


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    patterns: tuple[Pattern, ...]
    cases: tuple[Case, ...]
    independent: bool = False
    fallback: bool = False  # speaks when neither the words of another rule nor a meaning fits
    careful: bool = False  # what it does cannot be taken back: done only when asked for in its own words
    offer: Texts = ()  # the words in which the story asks back for it or offers it

    def is_final(self, case: Case) -> bool:
        """Tell if this case is never done on a guess: it is marked careful, or it ends the story."""
        return case.acts and (self.careful or "ending" in case.patch)

    def may_answer(self, state: Mapping[str, Any]) -> bool:
        """Tell if some prompt could reach the rule in this state."""
        return any(case.when.may_hold(state) for case in self.cases)

    def match(self, words: Sequence[str]) -> dict[str, str] | None:
        for pattern in self.patterns:
            groups = pattern.match(words)
            if groups is not None:
                return groups
        return None


@dataclass(frozen=True, slots=True)
class Rules:
    """A whole `narrator.toml`."""

    rules: tuple[Rule, ...]
    closing: tuple[CallTemplate, ...] = ()
    language: Language = ENGLISH
    stage: str = "stage"
    # For a rule that does not say it itself: a tool it needs has failed.
    unavailable: Texts = LINES["unavailable"]
    confirm: Texts = LINES["confirm"]  # before an action of a careful rule that was asked for in other words
    unclear: Texts = LINES["unclear"]  # where it is not certain which of the {choices} is meant
    unanswered: Texts = LINES["unanswered"]  # to a question no rule answers
    undone: Texts = LINES["undone"]  # of the {rest} of a prompt that was understood in part only
    tables: Sequence[Mapping[str, Any]] = ()  # the rules as they are written, for messages about them

    def name_of(self, key: str) -> str:
        """The key at this path, as messages name it: `rule[3].calls` is `rule 'open' (no. 4): key 'calls'`."""
        return _named(key, self.tables)

    @classmethod
    def load(cls, path: Path) -> Rules:
        return cls.from_toml(read_toml(path), path)

    @classmethod
    def from_toml(cls, data: Mapping[str, Any], path: Path) -> Rules:
        reader = RulesReader(path, data)
        rules = reader.rules()
        if rules is None or reader.problems:
            raise StoryInvalid.of(reader.problems)
        return rules

    def without_english(self, lines: Texts) -> Rules:
        """The rules with these lines in place of the English ones that the file leaves as they are."""
        changed: dict[str, Any] = {key: lines for key, own in LINES.items() if getattr(self, key) == own}
        return replace(self, **changed)

    @property
    def calls(self) -> list[CallTemplate]:
        """Every call that is written in the rules."""
        return [call for rule in self.rules for case in rule.cases for call in case.calls] + [*self.closing]

    @property
    def tools(self) -> set[str]:
        """The names of all tools that the rules may call."""
        staged = any(case.patch or case.choices for rule in self.rules for case in rule.cases)
        return {call.tool_name for call in self.calls} | ({self.stage_name} if staged else set())

    @property
    def stage_name(self) -> str:
        """The name of the tool that carries out `set` and `choices`."""
        return tool_name(self.stage)

    @property
    def final_tools(self) -> set[str]:
        """The names of tools that are called only by actions that cannot be undone or need a confirmation."""
        final, other = set[str](), {call.tool_name for call in self.closing}
        for rule in self.rules:
            for case in rule.cases:
                (final if rule.is_final(case) else other).update(call.tool_name for call in case.calls)
        return final - other

    @property
    def end_the_story(self) -> bool:
        return any("ending" in case.patch for rule in self.rules for case in rule.cases)


# --- from the file to the rules --------------------------------------------------------------------------


class RulesReader:
    """Makes rules of tables, and notes what is wrong with them. After a mistake it goes on with what it can read."""

    def __init__(self, path: Path, data: Mapping[str, Any]) -> None:
        self.path = path
        self.data = data
        self.problems: list[StoryProblem] = []

    def rules(self) -> Rules | None:
        """Return the rules as far as they can be read; None if there are none."""
        file = self.file()
        if file is None or not file.rule:
            if not self.problems:
                self.fault("rule", _NO_RULES)
            return None
        language = _language(file.language)
        words = {key: _texts(value) for key, value in file.words.items()}
        self.slots(file.undone, {"rest"}, "undone")
        self.slots(file.unclear, {"choices"}, "unclear")
        names = [rule.id for rule in file.rule]
        for at, name in enumerate(names):
            if name in names[:at]:
                self.fault(f"rule[{at}].id", f"rule no. {names.index(name) + 1} has it already")
        return Rules(
            tuple(self.rule(table, at, words, language) for at, table in enumerate(file.rule)),
            self.calls(file.closing, set(), "finally"),
            language,
            file.stage,
            tables=self.data["rule"],
            **{key: _texts(getattr(file, key)) or lines for key, lines in LINES.items()},
        )

    def file(self) -> RulesTable | None:
        """Return the file, or else as it is perhaps meant; None if it cannot be read so either."""
        try:
            return _parse(self.data)
        except ArgumentsInvalid as error:
            found = table_problems(error)
        for one in found:
            self.fault(*one)
        self.data = as_meant(self.data, found)
        with suppress(ArgumentsInvalid):
            return _parse(self.data)
        return None

    def fault(self, key: str, problem: str, below: str = "") -> None:
        """Note what is wrong with the key at this path; `below` leads from the key to the line."""
        found = toml_problem(self.path, key + below, f"{_named(key, self.data.get('rule'))}: {problem}")
        self.problems += [found] if found not in self.problems else []  # cases inherit those of their rule

    def rule(self, table: RuleTable, at: int, words: Mapping[str, Texts], language: Language) -> Rule:
        where = f"rule[{at}]"
        patterns = self.patterns(_texts(table.patterns), f"{where}.patterns", words, language)
        groups = set[str]().union(*(pattern.groups for pattern in patterns)) if patterns else None
        gate = self.condition(table.when, where)
        raw = self.data["rule"][at]
        base = {key: value for key, value in raw.items() if key in _CASE_KEYS}
        cases = []
        for number, variant in enumerate(raw.get("cases", ({},))):
            place = f"{where}.cases[{number}]" if table.cases else where
            own = self.condition(variant.get("when", {}), place)
            keys = {key: place if key in variant else where for key in _CASE_KEYS}
            cases.append(self.case(_case_table({**base, **variant}), gate & own, groups, keys, place))
        marks = (table.independent, table.fallback, table.careful)
        return Rule(table.id, patterns, tuple(cases), *marks, _texts(table.offer))

    def patterns(self, sources: Texts, key: str, *how: Any) -> tuple[Pattern, ...]:
        """Return the patterns of a rule; none if one is wrong, since a group may be in that one only."""
        if not sources:
            self.fault(key, 'empty; say what the player may type, e.g. ["open door"]')
        found: list[Pattern] = []
        try:
            found += (Pattern(source, *how) for source in sources)
        except PatternError as error:
            self.fault(key, str(error), f"[{len(found)}]")
            return ()
        return tuple(found)

    def condition(self, table: Mapping[str, Any], where: str) -> Condition:
        try:
            return condition(table)
        except ConditionError as error:
            self.fault(f"{where}.when", str(error), f".{str(error).partition(': ')[0]}")
        return Condition()

    def case(
        self, table: CaseTable, when: Condition, groups: _Groups, keys: Mapping[str, str], where: str
    ) -> Case:
        """A case; `keys` has the table that each of its keys is written in, its own or its rule's."""
        for key in ("narrative", "then", "instead", "unavailable", "set", "choices"):
            self.slots(getattr(table, key), groups, f"{keys[key]}.{key}")
        calls = self.calls(table.calls, groups, f"{keys['calls']}.calls")
        narrative = _texts(table.narrative)
        if not (narrative or calls or table.set):
            self.fault(where, "it says nothing and does nothing; add 'narrative' or 'calls'")
        return Case(
            when=when,
            narrative=narrative,
            then=None if table.then is UNSET else _texts(table.then),
            instead=None if table.instead is UNSET else _texts(table.instead),
            unavailable=None if table.unavailable is UNSET else _texts(table.unavailable),
            calls=calls,
            patch=table.set,
            choices=_texts(table.choices),
            expect=table.expect,
            closing=table.closing,
        )

    def slots(self, template: Any, groups: _Groups, where: str) -> None:
        for name in sorted(slots(template)):
            if groups is not None and name not in groups and not name.startswith("state."):
                there = f"(there: {', '.join(sorted(groups)) or 'none'})"
                self.fault(where, f"{{{name}}} is no group of the patterns {there} and no {{state.…}}")

    def calls(self, tables: Sequence[CallTemplate], groups: _Groups, where: str) -> tuple[CallTemplate, ...]:
        found: dict[str, CallTemplate] = {}
        for at, table in enumerate(tables):
            self.slots(table.input, groups, f"{where}[{at}].input")
            self.slots("" if table.told is UNSET else table.told, groups, f"{where}[{at}].told")
            name, after = table.id or table.tool_name, _texts(table.after)
            for other in after:
                if other not in found:
                    self.fault(f"{where}[{at}].after", f"no earlier call here is {other!r}")
            if name in found:
                self.fault(f"{where}[{at}].id", f"{name!r} is used twice; give each call its own id")
            found[name] = msgspec.structs.replace(table, id=name, after=after)
        return tuple(found.values())


_parse: Final[Callable[[Any], RulesTable]] = parser_for(RulesTable)
_NO_RULES: Final = (
    "there are no rules; add one as [[rule]], or delete the file and the story's narrator 'rules'"
)
_IN_RULE: Final = re.compile(r"rule\[(\d+)\]\.?(.*)")
_CASE_KEYS: Final = frozenset(field.encode_name for field in msgspec.structs.fields(CaseTable)) - {"when"}


def _named(key: str, tables: Any) -> str:
    found = _IN_RULE.fullmatch(key)
    if found is None:
        return f"key {key!r}"
    at = int(found[1])
    table = tables[at] if isinstance(tables, Sequence) and at < len(tables) else None
    name = table.get("id") if isinstance(table, Mapping) else None
    where = f"rule {name!r} (no. {at + 1})" if isinstance(name, str) else f"rule no. {at + 1}"
    return f"{where}: key {found[2]!r}" if found[2] else where


def _language(table: LanguageTable | UnsetType) -> Language:
    if table is UNSET:
        return ENGLISH
    articles = " ".join(_texts(table.articles))
    return language(articles, _texts(table.lead), _texts(table.trail), _texts(table.joins))


def _texts(value: str | Texts) -> Texts:
    """Prose is wrapped in the file and flows in the client; a blank line is a paragraph."""
    items = (value,) if isinstance(value, str) else value
    return tuple(
        "\n\n".join(" ".join(block.split()) for block in item.split("\n\n") if block.strip())
        for item in items
    )
