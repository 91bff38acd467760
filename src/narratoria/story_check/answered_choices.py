"""Choices that a story offers: whether a rule answers each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from narratoria.errors import StoryProblem
from narratoria.narrator.paraphrase.rule_phrases import phrases
from narratoria.narrator.protocol import NarratorRequest
from narratoria.narrator.rules.fillable import slots
from narratoria.narrator.rules.rule_file import Case, Rule
from narratoria.narrator.rules.scripted import ScriptedNarrator
from narratoria.story_check.rule_book import RuleBook
from narratoria.toml_lines import toml_problem
from narratoria.tools.contract.conditions import Condition

_PHRASES: Final = 12  # of each rule
_NEAR: Final = 0.8


def choice_problems(book: RuleBook) -> Iterator[StoryProblem]:
    """Yield choices of the opening that no rule answers then, and choices of cases, and words for going on, that no
    rule answers ever.
    """
    at_first = ScriptedNarrator(book.rules)
    for number, choice in enumerate(book.choices):
        if not _is_answered(choice, at_first, book):
            message = f"key 'opening.choices[{number}]': no rule answers {choice!r} at the beginning; "
            message += _advice(choice, at_first, book)
            yield toml_problem(
                book.root / "story.toml", f"opening.choices[{number}]", message, severity="warning"
            )
    at_any_time = ScriptedNarrator(replace(book.rules, rules=tuple(map(_anyhow, book.rules.rules))))
    if book.go_on and not _is_answered(book.go_on, at_any_time, book):
        message = f"key 'go_on': no rule answers {book.go_on!r}; {_advice(book.go_on, at_any_time, book)}"
        yield toml_problem(book.root / "story.toml", "go_on", message, severity="warning")
    told: set[str] = set()
    for place in book.places:
        for number, choice in enumerate(place.case.choices):
            key = f"{place.key('choices')}[{number}]"
            if key in told or slots(choice) or _is_answered(choice, at_any_time, book):
                continue
            told.add(key)
            advice = _advice(choice, at_any_time, book)
            yield book.problem(key, f"no rule answers {choice!r}; {advice}", "warning")


def offer_problems(book: RuleBook) -> Iterator[StoryProblem]:
    """Yield the words of `offer` that the patterns of their own rule do not fit."""
    for at, rule in enumerate(book.rules.rules):
        alone = ScriptedNarrator(replace(book.rules, rules=(_anyhow(rule),)))
        for offer in rule.offer:
            if rule.patterns and not slots(offer) and not _is_answered(offer, alone, book):
                near = get_close_matches(offer.casefold(), phrases(rule.patterns, _PHRASES), 1, _NEAR)
                hint = f"did you mean {near[0]!r}?" if near else "add its words to the patterns"
                yield book.problem(
                    f"rule[{at}].offer", f"no pattern of the rule fits {offer!r}; {hint}", "warning"
                )


def _advice(choice: str, narrator: ScriptedNarrator, book: RuleBook) -> str:
    """Return the choice of the story, or the words of a rule, that is meant if a letter is wrong; else what to do."""
    offered = [*book.choices, *(one for place in book.places for one in place.case.choices if one != choice)]
    spoken = [phrase for rule in narrator.rules.rules for phrase in phrases(rule.patterns, _PHRASES)]
    for known in (offered, spoken):
        plain = {one.casefold(): one for one in reversed(known)}  # a capital is no wrong letter
        for near in (plain[one] for one in get_close_matches(choice.casefold(), plain, 3, _NEAR)):
            if near != choice and not slots(near) and _is_answered(near, narrator, book):
                return f"did you mean {near!r}?"
    return "add its words to the patterns of one, or offer something else"


def _is_answered(choice: str, narrator: ScriptedNarrator, book: RuleBook) -> bool:
    actions, missed = narrator.understand(NarratorRequest(choice, dict(book.state)))
    return bool(actions) and not missed


def _anyhow(rule: Rule) -> Rule:
    """Return the rule without its conditions, and without its cases for a story that is over."""
    cases = tuple(replace(case, when=Condition()) for case in rule.cases if not _after_the_end(case))
    return replace(rule, cases=cases)


def _after_the_end(case: Case) -> bool:
    return any(test.path[:1] == ("ending",) and not test.holds({}) for test in case.when.tests)
