"""Sets of prompts about a story's own rules, and the score of its narrators on them.

A line of such a set names a story and a prompt, where the player is (`at`) and what else is so (`state`), and what is
right: `expect`, or the ids of the `rules` that are meant.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from narratoria.evals.case_sets import invalid, read_lines
from narratoria.evals.report import EvaluationReport, Outcome
from narratoria.events import JsonObject
from narratoria.narrator.embedding.loading import load_embedder
from narratoria.narrator.protocol import NarratorRequest
from narratoria.narrator.roster import BY_RULES, RULES
from narratoria.narrator.rules.scripted import Action, ScriptedNarrator
from narratoria.play.story import Story
from narratoria.play.story_library import open_story
from narratoria.state import merge
from narratoria.tools.schema.tables import Table, read_as

STILL: Final = "still"  # nothing changes, whoever answers; a refusal is as good
TOLD: Final = "told"  # a rule answers, not one marked `fallback`, and nothing changes
TOLD_ANYHOW: Final = "told*"  # any rule answers, and nothing changes
NONE: Final = "none"  # nothing changes, and no rule answers but one marked `fallback`; nothing is asked back
_UNCHANGED: Final = frozenset({STILL, TOLD, TOLD_ANYHOW, NONE})

Understand: TypeAlias = Callable[[NarratorRequest], tuple[list[Action], list[Action]]]


@dataclass(frozen=True, slots=True)
class StoryCase:
    story: Story
    prompt: str
    state: Mapping[str, Any]
    expect: tuple[str, ...]  # any of these is right: a rule's id, several joined by +, or a word above
    choices: tuple[str, ...] = ()  # what the page offers
    asking_counts: bool = False  # an action that is first asked about counts as understood


COLUMNS: Final = {
    "right": "right",
    "offered": "offered",
    "unaskedActions": "unasked acts",
    "refused": "refused",
}


# --- reading -------------------------------------------------------------------------------------------


def is_story_set(path: Path) -> bool:
    """Tell if the first line of a set names a story."""
    return any("story" in line for _, line in read_lines(path, 1))


class _Line(Table, frozen=True, kw_only=True):
    story: str
    prompt: str
    at: str = ""
    state: JsonObject = msgspec.field(default_factory=dict)
    choices: tuple[str, ...] = ()
    expect: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    rules: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


def load_story_set(path: Path) -> list[StoryCase]:
    stories: dict[str, Story] = {}
    return [_case(where, data, stories) for where, data in read_lines(path)]


def _case(where: str, data: JsonObject, stories: dict[str, Story]) -> StoryCase:
    line = read_as(_Line, data, lambda key, problem: invalid(where, key, problem))
    if line.story not in stories:
        stories[line.story] = open_story(line.story)
    story = stories[line.story]
    if line.expect and line.rules is msgspec.UNSET:
        wanted = line.expect
    elif line.expect is msgspec.UNSET and line.rules is not msgspec.UNSET:
        wanted = ("+".join(line.rules) or STILL,)
    else:
        raise invalid(where, "expect", "a list is needed, either expect or rules")
    known = {rule.id for rule in story.rules.rules} if story.rules is not None else set()
    for one in wanted:
        if one not in _UNCHANGED and not set(one.split("+")) <= known:
            raise invalid(where, "expect", f"{one!r} is no rule of the story {story.id!r}")
    place = {"place": {"id": line.at}} if line.at else {}
    state = merge(merge(story.state, line.state), place)
    return StoryCase(story, line.prompt, state, wanted, line.choices, line.rules is not msgspec.UNSET)


# --- scoring -------------------------------------------------------------------------------------------


def evaluate_story_set(cases: Sequence[StoryCase], narrators: Sequence[str] = BY_RULES) -> EvaluationReport:
    """Ask the rules, the paraphrase narrator, or one after the other as a chain does; each prompt once unmeasured."""
    ways: dict[str, Understand] = {}
    outcomes = []
    for case in cases:
        if case.story.id not in ways:
            ways[case.story.id] = _way(case.story, narrators)
        understand = ways[case.story.id]
        request = NarratorRequest(case.prompt, state=case.state, choices=case.choices)
        understand(request)
        started = time.process_time()
        actions, asked_about = understand(request)
        spent = time.process_time() - started
        outcomes.append(_outcome(case, actions, asked_about, spent))
    return EvaluationReport(" → ".join(narrators), tuple(outcomes), COLUMNS, frozenset({"unaskedActions"}))


def _way(story: Story, narrators: Sequence[str]) -> Understand:
    rules = story.scripted_narrator()
    if "paraphrase" not in narrators:
        return lambda request: (rules.understand(request)[0], [])
    embedder = load_embedder()[1]
    from narratoria.narrator.paraphrase.paraphrase_narrator import ParaphraseNarrator  # needs `local`

    paraphrase = ParaphraseNarrator(rules, embedder, refusal=story.refusal)

    def by_meaning(request: NarratorRequest) -> tuple[list[Action], list[Action]]:
        understood = paraphrase.understand(request)
        return understood.actions, list(understood.doubts)

    if RULES not in narrators:
        return by_meaning
    return lambda request: _by_words(rules, request) or by_meaning(request)


def _by_words(rules: ScriptedNarrator, request: NarratorRequest) -> tuple[list[Action], list[Action]] | None:
    """None where the rules in front leave a prompt to meaning: they miss a part of it, or only have a last resort."""
    actions, missed = rules.understand(request)
    whole = actions and not missed and not any(action.rule.fallback for action in actions)
    return (actions, []) if whole else None


def _outcome(
    case: StoryCase, actions: Sequence[Action], asked_about: Sequence[Action], spent: float
) -> Outcome:
    meant = [*actions, *asked_about] if case.asking_counts else actions
    right = any(_fits(meant, actions, asked_about, expected) for expected in case.expect)
    wanted = {name for expected in case.expect for name in expected.split("+")}
    acts = any(action.acts and action.rule.id not in wanted for action in actions)
    named = {action.rule.id for action in (*actions, *asked_about)} if asked_about else set()
    offered = any(set(expected.split("+")) <= named for expected in case.expect)
    counts = {
        "right": (right, 1),
        "offered": (
            offered and not right and not acts,
            1,
        ),  # the story asks back, and the right one is an answer
        "unaskedActions": (not right and acts, 1),  # an action was done that nobody asked for
        "refused": (not actions and not asked_about, 1),
    }
    kind = "#still" if _UNCHANGED & set(case.expect) else "#rules"
    return Outcome(case.prompt, (case.story.id, kind), counts, spent)


def _fits(meant: Sequence[Action], done: Sequence[Action], asked: Sequence[Action], expected: str) -> bool:
    still = not any(action.acts for action in done)
    if expected == STILL:
        return still
    if expected == NONE:
        return still and not asked and all(action.rule.fallback for action in done)
    if expected in (TOLD, TOLD_ANYHOW):
        own = expected == TOLD_ANYHOW or not any(action.rule.fallback for action in meant)
        return still and own and bool(meant)
    return "+".join(action.rule.id for action in meant) == expected
