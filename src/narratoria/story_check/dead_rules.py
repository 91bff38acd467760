"""Rules and cases that never answer, because an earlier one always does."""

from __future__ import annotations

from collections.abc import Iterator

from narratoria.errors import StoryProblem
from narratoria.narrator.rules.patterns import Pattern
from narratoria.narrator.rules.rule_file import Case, Rule
from narratoria.story_check.pattern_inclusion import included, sample
from narratoria.story_check.rule_book import Place, RuleBook
from narratoria.tools.contract.conditions import Condition


def dead_rule_problems(book: RuleBook) -> Iterator[StoryProblem]:
    """Yield rules all of whose words an earlier rule takes, and cases behind one that always holds."""
    rules = book.rules.rules
    for at, rule in enumerate(rules):
        takers = _takers(rule, rules[:at])
        if takers:
            names = " and ".join(f"{one.id!r} (no. {rules.index(one) + 1})" for one in takers)
            verb = "take" if len(takers) > 1 else "takes"
            message = (
                f"it can never answer: {names} {verb} all its words first; put it before, or narrow the other"
            )
            yield book.problem(f"rule[{at}]", message, "warning")
            continue
        for place in (one for one in book.places if one.at == at):
            earlier = _shadow(place)
            if earlier is not None:
                message = (
                    f"it is never used: case no. {earlier + 1} holds whenever it does; put that one last"
                )
                yield book.problem(place.table, message, "warning")


def _shadow(place: Place) -> int | None:
    """Return the earlier case that holds whenever this one does, and cannot fail for want of a tool."""
    for number, other in enumerate(place.rule.cases[: place.number]):
        needed = {call.tool for call in other.calls if call.required}
        own = {call.tool for call in place.case.calls if call.required}
        if needed <= own and implies(place.case.when, other.when):
            return number
    return None


def _takers(rule: Rule, earlier: tuple[Rule, ...]) -> list[Rule]:
    """Return the earlier rules that together take every word of this one; none if something is left to it."""
    found: list[Rule] = []
    candidates = [other for other in earlier if any(_always_first(other, case) for case in rule.cases)]
    for pattern in rule.patterns:
        phrase = sample(pattern)
        near = [other for other in candidates if other.match(phrase) is not None]
        for case in rule.cases:
            taking = _taking(pattern, [other for other in near if _always_first(other, case)], earlier, case)
            if not taking:
                return []  # nearly all end here
            found += [other for other in taking if other not in found]
    return found


def _taking(pattern: Pattern, near: list[Rule], earlier: tuple[Rule, ...], case: Case) -> list[Rule]:
    """Return one rule that takes all of a pattern, or else those that do it together with others."""
    for rule in near:
        if included(pattern, rule.patterns):
            return [rule]
    if not near:
        return []
    others = [rule for rule in earlier if _always_first(rule, case)]
    return near if included(pattern, [other for rule in others for other in rule.patterns]) else []


def _always_first(other: Rule, case: Case) -> bool:
    """Tell if an earlier rule answers whenever this case would, if its words fit. A last resort may be passed over."""
    if other.fallback:
        return False
    return any(implies(case.when, earlier.when) and not earlier.when.reads_words for earlier in other.cases)


def implies(one: Condition, other: Condition) -> bool:
    """Tell if `other` surely holds where `one` does: it asks for a part of the same."""
    return (
        all(test in one.tests for test in other.tests)
        and all(group in one.any_of for group in other.any_of)
        and all(option in one.none_of for option in other.none_of)
    )
