"""`narrator.toml`: the rules of a scripted narrator, read and checked.

Every mistake is a `StoryInvalid` that names the file, the rule and the key. docs/stories.md tells the keys.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from narratoria import bounds
from narratoria.errors import StoryInvalid
from narratoria.narrator.rules.fillable import slots
from narratoria.narrator.rules.patterns import ENGLISH, Language, Pattern, PatternError, language
from narratoria.run.plan import PlanRetry
from narratoria.run.plan_problems import MAX_BACKOFF_MS, MAX_RETRIES
from narratoria.tools.contract.conditions import Condition, condition
from narratoria.tools.contract.expectations import ConditionError

Texts: TypeAlias = tuple[str, ...]

_CASE_KEYS: Final = (
    "when", "narrative", "then", "instead", "unavailable", "calls", "set", "choices", "expect", "finally",
)  # fmt: skip
_RULE_KEYS: Final = ("id", "patterns", "independent", "fallback", "careful", "cases", *_CASE_KEYS)
_CALL_KEYS: Final = ("id", "tool", "input", "after", "required", "async", "retries", "backoff_ms")
_FILE_KEYS: Final = (
    "language", "words", "stage", "finally", "rule", "unavailable", "confirm", "unanswered", "undone",
)  # fmt: skip
_LANGUAGE_KEYS: Final = ("articles", "lead", "trail", "joins")
OUT_OF_REACH: Final = ("That is out of reach just now.",)
CONFIRM: Final = ("That cannot be undone. If you mean it, say so plainly.",)
UNANSWERED: Final = (
    "There is no one here to say. You will have to find out by trying.",
    "The question stays in the air a while, and nothing comes to meet it.",
)
UNDONE: Final = ("Nothing comes of the rest, for now: “{rest}”.",)


@dataclass(frozen=True, slots=True)
class CallTemplate:
    """One call a rule makes: a tool, and an input whose strings may hold `{group}` and `{state.path}`."""

    id: str
    tool: str
    input: Mapping[str, Any] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    required: bool = True
    run_async: bool = False
    retry: PlanRetry = field(default_factory=PlanRetry)


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
        """Tells if it changes the state."""
        return bool(self.patch) or any(call.required for call in self.calls)


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    patterns: tuple[Pattern, ...]
    cases: tuple[Case, ...]
    independent: bool = False
    fallback: bool = False  # speaks when neither the words of another rule nor a meaning fits
    careful: bool = False  # what it does cannot be taken back: done only when asked for in its own words

    def is_final(self, case: Case) -> bool:
        """Tells if this case is never done on a guess: it is marked careful, or it ends the story."""
        return case.acts and (self.careful or "ending" in case.patch)

    def may_answer(self, state: Mapping[str, Any]) -> bool:
        """Tells if some prompt could reach the rule in this state."""
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
    tongue: Language = ENGLISH
    stage: str = "stage"
    root: Path | None = None
    unavailable: Texts = OUT_OF_REACH  # for a rule that does not say it itself: a tool it needs has failed
    confirm: Texts = CONFIRM  # before a deed of a careful rule that was asked for in other words
    unanswered: Texts = UNANSWERED  # to a question no rule answers
    undone: Texts = UNDONE  # of the {rest} of a prompt that was understood in part only

    @classmethod
    def load(cls, path: Path) -> Rules:
        return cls.from_toml(read_toml(path), path)

    @classmethod
    def from_toml(cls, data: Mapping[str, Any], path: Path) -> Rules:
        reader = _Reader(path)
        reader.keys(data, _FILE_KEYS, "the file")
        tongue = reader.language(data.get("language", {}))
        words = reader.words(data.get("words", {}))
        stage = reader.typed(data, "stage", str, "the file", "stage")
        tables = reader.typed(data, "rule", list, "the file", [])
        if not tables:
            reader.fail(
                "rule",
                "there are no rules; add one as [[rule]], or delete the file and the story's narrator 'rules'",
            )
        rules: list[Rule] = []
        known: dict[str, int] = {}
        for number, table in enumerate(tables, 1):
            rule = reader.rule(table, number, words, tongue)
            if rule.id in known:
                reader.fail(
                    f"rule {rule.id!r} (no. {number}): key 'id'", f"rule no. {known[rule.id]} has it already"
                )
            known[rule.id] = number
            rules.append(rule)
        closing = reader.calls(data.get("finally", []), "finally", set())
        reader.slots(data.get("undone"), {"rest"}, "the file: key 'undone'")
        return cls(
            tuple(rules),
            closing,
            tongue,
            stage,
            path.parent,
            unavailable=reader.texts(data, "unavailable", "the file") or OUT_OF_REACH,
            confirm=reader.texts(data, "confirm", "the file") or CONFIRM,
            unanswered=reader.texts(data, "unanswered", "the file") or UNANSWERED,
            undone=reader.texts(data, "undone", "the file") or UNDONE,
        )

    @property
    def tools(self) -> set[str]:
        """Every tool the rules may call, as they name it."""
        cases = [case for rule in self.rules for case in rule.cases]
        named = {call.tool for case in cases for call in case.calls} | {call.tool for call in self.closing}
        return named | ({self.stage} if any(case.patch or case.choices for case in cases) else set())

    @property
    def final_tools(self) -> set[str]:
        """Tools that only deeds call which must never be somebody's guess."""
        final, other = set[str](), {call.tool for call in self.closing}
        for rule in self.rules:
            for case in rule.cases:
                (final if rule.is_final(case) else other).update(call.tool for call in case.calls)
        return final - other

    @property
    def end_the_story(self) -> bool:
        return any("ending" in case.patch for rule in self.rules for case in rule.cases)


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file of a story, or `StoryInvalid` with the line."""
    try:
        return bounds.decode_toml(bounds.read_file(path).decode())
    except FileNotFoundError:
        raise StoryInvalid(f"{path}: there is no such file; a story needs it") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StoryInvalid(f"{path}: cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise StoryInvalid(f"{path}: not TOML: {error}") from None
    except bounds.OutOfBounds as error:
        raise StoryInvalid(f"{path}: {error}") from None


def unknown_key(key: str, known: Iterable[str]) -> str:
    """The error message for an unknown key."""
    names = list(known)
    near = difflib.get_close_matches(key, names, 1)
    return f"unknown key; did you mean {near[0]!r}?" if near else f"unknown key; known are {', '.join(names)}"


# --- reading ---------------------------------------------------------------------------------------------


class _Reader:
    """Turns tables into rules, and says what is wrong with them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fail(self, where: str, problem: str) -> None:
        raise StoryInvalid(f"{self.path}: {where}: {problem}")

    def keys(self, table: Any, known: Sequence[str], where: str) -> None:
        if not isinstance(table, Mapping):
            self.fail(where, f"expected a table, got {table!r}")
        for key in table:
            if key not in known:
                self.fail(f"{where}: key {key!r}", unknown_key(key, known))

    def typed(self, table: Mapping[str, Any], key: str, kind: type, where: str, default: Any) -> Any:
        value = table.get(key, default)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            names = {
                str: "a string",
                bool: "true or false",
                int: "a whole number",
                list: "a list",
                dict: "a table",
            }
            self.fail(f"{where}: key {key!r}", f"expected {names[kind]}, got {value!r}")
        return value

    def texts(self, table: Mapping[str, Any], key: str, where: str) -> Texts:
        value = table.get(key, [])
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            self.fail(f"{where}: key {key!r}", f"expected a string or a list of strings, got {value!r}")
        return tuple(" ".join(item.split()) if "\n\n" not in item else _paragraphs(item) for item in items)

    def language(self, table: Any) -> Language:
        self.keys(table, _LANGUAGE_KEYS, "language")
        if not table:
            return ENGLISH
        found = {key: self.texts(table, key, "language") for key in _LANGUAGE_KEYS}
        return language(" ".join(found["articles"]), found["lead"], found["trail"], found["joins"])

    def words(self, table: Any) -> dict[str, Texts]:
        if not isinstance(table, Mapping):
            self.fail("words", f"expected a table of lists, got {table!r}")
        return {key: self.texts(table, key, "words") for key in table}

    def rule(self, table: Any, number: int, words: Mapping[str, Texts], tongue: Language) -> Rule:
        name = table.get("id") if isinstance(table, Mapping) else None
        where = f"rule {name!r} (no. {number})" if isinstance(name, str) else f"rule no. {number}"
        self.keys(table, _RULE_KEYS, where)
        if not isinstance(name, str) or not name.strip():
            self.fail(f"{where}: key 'id'", 'missing; give the rule a short name, such as id = "open-door"')
        patterns = self.patterns(table, where, words, tongue)
        groups = set().union(*(pattern.groups for pattern in patterns))
        base = {key: value for key, value in table.items() if key in _CASE_KEYS}
        variants = self.typed(table, "cases", list, where, [{}])
        if not variants:
            self.fail(f"{where}: key 'cases'", "empty; leave it out, or add one as [[rule.cases]]")
        gate = self.condition(base.pop("when", {}), where)
        cases = []
        for index, variant in enumerate(variants, 1):
            place = where if variants == [{}] else f"{where}, case {index}"
            self.keys(variant, _CASE_KEYS, place)
            cases.append(self.case({**base, **variant}, gate, place, groups))
        independent = self.typed(table, "independent", bool, where, False)
        fallback = self.typed(table, "fallback", bool, where, False)
        careful = self.typed(table, "careful", bool, where, False)
        return Rule(str(name), patterns, tuple(cases), independent, fallback, careful)

    def patterns(
        self, table: Mapping[str, Any], where: str, words: Mapping[str, Texts], tongue: Language
    ) -> tuple[Pattern, ...]:
        sources = self.texts(table, "patterns", where)
        if not sources:
            self.fail(f"{where}: key 'patterns'", 'missing; say what the player may type, e.g. ["open door"]')
        found = []
        for source in sources:
            try:
                found.append(Pattern(source, words, tongue))
            except PatternError as error:
                self.fail(f"{where}: key 'patterns'", str(error))
        return tuple(found)

    def condition(self, table: Any, where: str) -> Condition:
        try:
            return condition(table)
        except ConditionError as error:
            raise StoryInvalid(f"{self.path}: {where}: key 'when': {error}") from None

    def case(self, table: Mapping[str, Any], gate: Condition, where: str, groups: set[str]) -> Case:
        own = self.condition(table.get("when", {}), where)
        when = gate & own
        said = {key: self.texts(table, key, where) for key in ("narrative", "then", "instead", "unavailable")}
        calls = self.calls(table.get("calls", []), where, groups)
        patch = self.typed(table, "set", dict, where, {})
        for key in ("narrative", "then", "instead", "unavailable", "set", "choices"):
            self.slots(table.get(key), groups, f"{where}: key {key!r}")
        if not (said["narrative"] or calls or patch):
            self.fail(where, "it says nothing and does nothing; add 'narrative' or 'calls'")
        return Case(
            when=when,
            narrative=said["narrative"],
            then=said["then"] if "then" in table else None,
            instead=said["instead"] if "instead" in table else None,
            unavailable=said["unavailable"] if "unavailable" in table else None,
            calls=calls,
            patch=patch,
            choices=self.texts(table, "choices", where),
            expect=self.typed(table, "expect", dict, where, {}),
            closing=self.typed(table, "finally", bool, where, True),
        )

    def slots(self, template: Any, groups: set[str], where: str) -> None:
        for name in sorted(slots(template)):
            if name not in groups and not name.startswith("state."):
                there = ", ".join(sorted(groups)) or "none"
                self.fail(
                    where, f"{{{name}}} is no group of the patterns (there: {there}) and no {{state.…}}"
                )

    def calls(self, tables: Any, where: str, groups: set[str]) -> tuple[CallTemplate, ...]:
        if not isinstance(tables, list):
            self.fail(f"{where}: key 'calls'", f"expected a list of tables, got {tables!r}")
        found: list[CallTemplate] = []
        for number, table in enumerate(tables, 1):
            place = f"{where}, call {number}"
            self.keys(table, _CALL_KEYS, place)
            found.append(self.call(table, place, groups))
        names = [call.id for call in found]
        for call in found:
            for other in call.after:
                if other not in names[: names.index(call.id)]:
                    self.fail(f"{where}: call {call.id!r}: key 'after'", f"no earlier call here is {other!r}")
            if names.count(call.id) > 1:
                self.fail(f"{where}: call {call.id!r}: key 'id'", "used twice; give each call its own id")
        return tuple(found)

    def call(self, table: Mapping[str, Any], where: str, groups: set[str]) -> CallTemplate:
        tool = self.typed(table, "tool", str, where, "")
        if not tool.strip():
            self.fail(f"{where}: key 'tool'", "missing; name a tool of the story's tools folder")
        given = self.typed(table, "input", dict, where, {})
        self.slots(given, groups, f"{where}: key 'input'")
        retries = self.typed(table, "retries", int, where, PlanRetry().max_retries)
        backoff = self.typed(table, "backoff_ms", int, where, PlanRetry().backoff_ms)
        if not 0 <= retries <= MAX_RETRIES:
            self.fail(f"{where}: key 'retries'", f"{retries} is outside 0..{MAX_RETRIES}")
        if not 0 <= backoff <= MAX_BACKOFF_MS:
            self.fail(f"{where}: key 'backoff_ms'", f"{backoff} is outside 0..{MAX_BACKOFF_MS}")
        return CallTemplate(
            id=self.typed(table, "id", str, where, "") or tool.rsplit("/", 1)[-1],
            tool=tool,
            input=given,
            after=self.texts(table, "after", where),
            required=self.typed(table, "required", bool, where, True),
            run_async=self.typed(table, "async", bool, where, False),
            retry=PlanRetry(max_retries=retries, backoff_ms=backoff),
        )


def _paragraphs(text: str) -> str:
    """Prose is wrapped in the file and flows in the client; a blank line is a paragraph."""
    return "\n\n".join(" ".join(block.split()) for block in text.split("\n\n") if block.strip())
