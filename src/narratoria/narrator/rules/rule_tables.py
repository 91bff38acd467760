"""The tables of `narrator.toml`, as they are written."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from narratoria.events import JsonObject
from narratoria.narrator.english.lexicon import entry
from narratoria.run.plan import PlanRetry, tool_name
from narratoria.run.plan_problems import MAX_BACKOFF_MS, MAX_RETRIES
from narratoria.tools.schema.tables import Table

Texts: TypeAlias = tuple[str, ...]

# The lines of a story in English, by the keys that replace them.
LINES: Final[dict[str, Texts]] = {key: tuple(lines) for key, lines in entry("rule_lines.by_key").items()}


class CallTemplate(Table, frozen=True, kw_only=True):
    """One call a rule makes: a tool, and an input whose strings may hold `{group}` and `{state.path}`."""

    tool: Annotated[str, Meta(min_length=1)]
    id: str = ""
    input: JsonObject = msgspec.field(default_factory=dict)
    after: str | Texts = ()
    required: bool = True
    run_async: bool = msgspec.field(name="async", default=False)
    retries: Annotated[int, Meta(ge=0, le=MAX_RETRIES)] = PlanRetry().max_retries
    backoff_ms: Annotated[int, Meta(ge=0, le=MAX_BACKOFF_MS)] = PlanRetry().backoff_ms
    told: str | UnsetType = UNSET

    @property
    def tool_name(self) -> str:
        return tool_name(self.tool)


class CaseTable(Table, frozen=True, kw_only=True):
    """A table `[[rule.cases]]`."""

    when: JsonObject = msgspec.field(default_factory=dict)
    narrative: str | Texts = ()
    then: str | Texts | UnsetType = UNSET
    instead: str | Texts | UnsetType = UNSET
    unavailable: str | Texts | UnsetType = UNSET
    calls: tuple[CallTemplate, ...] = ()
    set: JsonObject = msgspec.field(default_factory=dict)
    choices: str | Texts = ()
    expect: JsonObject = msgspec.field(default_factory=dict)
    closing: bool = msgspec.field(name="finally", default=True)


class RuleTable(CaseTable, frozen=True, kw_only=True):
    """A table `[[rule]]`."""

    id: Annotated[str, Meta(min_length=1)]
    patterns: str | Texts
    independent: bool = False
    fallback: bool = False
    careful: bool = False
    offer: str | Texts = ()
    cases: Annotated[tuple[CaseTable, ...], Meta(min_length=1)] | UnsetType = UNSET


class LanguageTable(Table, frozen=True, kw_only=True):
    """The table `[language]`."""

    articles: str | Texts = ()
    lead: str | Texts = ()
    trail: str | Texts = ()
    joins: str | Texts = ()


class RulesTable(Table, frozen=True, kw_only=True):
    """The whole file."""

    language: LanguageTable | UnsetType = UNSET
    words: dict[str, str | Texts] = msgspec.field(default_factory=dict)
    stage: str = "stage"
    closing: tuple[CallTemplate, ...] = msgspec.field(name="finally", default=())
    rule: tuple[RuleTable, ...] = ()
    unavailable: str | Texts = LINES["unavailable"]
    confirm: str | Texts = LINES["confirm"]
    unclear: str | Texts = LINES["unclear"]
    unanswered: str | Texts = LINES["unanswered"]
    undone: str | Texts = LINES["undone"]
