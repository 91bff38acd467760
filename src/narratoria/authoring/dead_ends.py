"""States of a story that no prompt can change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from narratoria.narrator.rules.patterns import Pattern
from narratoria.narrator.rules.rule_file import Rule
from narratoria.story_check.pattern_inclusion import included, sample


def may_act(rules: Sequence[Rule], state: Mapping[str, Any]) -> bool:
    """Tell if some prompt reaches a case that changes the state, past the rules and cases that answer before it."""
    taken: list[Pattern] = []  # what rules that surely answer now take
    for rule in rules:
        surely = False
        for case in rule.cases:
            if surely or not case.when.may_hold(state):
                continue
            if case.acts and not all(_is_taken(pattern, taken) for pattern in rule.patterns):
                return True
            surely = not case.when.reads_words
        if surely and not rule.fallback:
            taken += rule.patterns
    return False


def _is_taken(pattern: Pattern, taken: Sequence[Pattern]) -> bool:
    phrase = sample(pattern)
    return any(one.match(phrase) is not None for one in taken) and included(pattern, taken)
