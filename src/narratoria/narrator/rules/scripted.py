"""The scripted narrator: rules in a story's data turn what a player types into a plan.

It is enough to play a whole story without any model.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import UnsetType

from narratoria.events import JsonObject
from narratoria.narrator.english.lexicon import pattern, words
from narratoria.narrator.english.mood import Mood, mood
from narratoria.narrator.english.normalise import quotes_said, with_apostrophes, word_list
from narratoria.narrator.english.second_thoughts import corrected, takes_back
from narratoria.narrator.english.words import NOUNISH, VERBS
from narratoria.narrator.protocol import Declaration, NarratorRequest, NoMatch
from narratoria.narrator.rules.fillable import fill
from narratoria.narrator.rules.patterns import MAX_PROMPT, bare, clauses, meaningful, readings, with_verb
from narratoria.narrator.rules.rule_file import Case, Rule, Rules
from narratoria.narrator.rules.rule_tables import CallTemplate, Texts
from narratoria.run.plan import PlanDocument, PlannedCall, PlanRetry
from narratoria.state import merge, plain
from narratoria.tools.contract.conditions import SAID
from narratoria.tools.schema.excerpts import shorten

_QUALMS: Final = pattern("story_rules.qualms")
_WISHES: Final = pattern("story_rules.wishes")
_SENTENCE_END: Final = re.compile(r"[.!?;]+")


@dataclass(frozen=True, slots=True)
class Action:
    """One clause of the prompt, understood."""

    rule: Rule
    case: Case
    groups: Mapping[str, str]
    state: Mapping[str, Any]
    available: bool

    @property
    def acts(self) -> bool:
        return self.available and self.case.acts

    @property
    def ends(self) -> bool:
        """Tell if the story is over after it; the rest of the prompt is then not done."""
        return self.available and "ending" in self.case.patch

    @property
    def is_final(self) -> bool:
        return self.available and self.rule.is_final(self.case)


@dataclass(frozen=True, slots=True)
class _Fit:
    rank: tuple[int, int]
    action: Action
    words: tuple[str, ...]
    clauses: int


class ScriptedNarrator:
    """Plans by rules; raises `NoMatch` where they have nothing to say.

    `new_id` makes the plan's requestId. With `whole`, a prompt whose words fit only in part is left to the next
    narrator; otherwise the part is done, and what is left undone is said. With `defers`, a prompt that fits only a rule
    marked `fallback` is left to the next narrator too, which goes by meaning and asks these rules again.
    """

    name = "rules"

    def __init__(
        self,
        rules: Rules,
        *,
        whole: bool = False,
        defers: bool = False,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self.rules = rules
        self._whole = whole
        self._defers = defers
        self._new_id = new_id
        self._told: Mapping[str, str] = {}  # of the last plan's calls

    @classmethod
    def load(cls, path: Path, *, new_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> ScriptedNarrator:
        """From a `narrator.toml`; raise `StoryInvalid` when it has a mistake."""
        return cls(Rules.load(path), new_id=new_id)

    def declare(self, speaker: str = "") -> Declaration:
        return Declaration(lists_calls="never", told=self._told)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        actions, missed = self.understand(request)
        if not actions:
            raise NoMatch(f"no rule fits {shorten(request.prompt, 80)!r}")
        resorts = self._defers and any(action.rule.fallback for action in actions)
        if resorts or (self._whole and missed):
            raise NoMatch(f"no rule fits the whole of {shorten(request.prompt, 80)!r}")
        plan = self.compose(request, actions)
        told = [part for part in (plan.narrative, self.undone(missed, request)) if part]
        return msgspec.structs.replace(plan, narrative=" ".join(told) or None)

    def undone(self, missed: Sequence[str], request: NarratorRequest) -> str:
        """A sentence about the parts of the prompt that are not done; parts that were ruled out are left out."""
        wanted = [part for part in missed if mood(word_list(part)) is not Mood.RULED_OUT]
        texts = self.rules.undone
        rest = shorten(", ".join(" ".join(part.replace("_", " ").split()) for part in wanted), 80)
        text = texts[len(request.history) % len(texts)] if rest else ""
        return str(fill(text, {"rest": rest}, request.state))

    def understand(self, request: NarratorRequest) -> tuple[list[Action], list[str]]:
        """The actions of the rules that the words of the prompt fit, and the parts of it that fit none."""
        prompt = request.prompt[:MAX_PROMPT]
        prompt = quotes_said(prompt) if self.rules.language.contracts else prompt
        request = replace(request, prompt=corrected(prompt))
        missed: list[str] = []
        actions = list(self._understand(request, missed))
        if _is_doubtful(request.prompt, actions, missed):
            return [], [request.prompt]
        return actions, missed

    def answer(self, words: str, request: NarratorRequest, state: Mapping[str, Any]) -> Action | None:
        """The action for exactly these words in this state, if a rule fits them."""
        fit = self._fit([words], (), state, _disabled_tools(request))
        return fit.action if fit is not None else None

    def compose(self, request: NarratorRequest, actions: list[Action]) -> PlanDocument:
        """The plan of these actions, one after the other."""
        calls = _Sheet(self.rules, request)
        for action in actions:
            if action.available:
                calls.add(action)
        calls.close(actions)
        self._told = calls.told
        narrative = _narrative(actions, len(request.history), self.rules.unavailable) or None
        return request.answer(narrative, calls.planned, request_id=self._new_id())

    def _understand(self, request: NarratorRequest, missed: list[str]) -> Iterator[Action]:
        """The longest runs of clauses some rule fits, left to right; what no rule fits goes to `missed`.

        A later clause is judged by the state the earlier ones are expected to leave.
        """
        pieces = clauses(request.prompt, self.rules.language)
        disabled = _disabled_tools(request)
        state: JsonObject = plain(request.state)
        verb: tuple[str, ...] = ()
        at = 0
        while at < len(pieces):
            fits = [self._fit(pieces[at:end], verb, state, disabled) for end in range(len(pieces), at, -1)]
            # The rule that stands first wins; where one rule fits both, the longer run of clauses.
            best = min((fit for fit in fits if fit is not None), key=lambda fit: fit.rank, default=None)
            if best is None:
                missed.append(pieces[at])
                at += 1
                continue
            best = self._without_other_actions(best, fits, pieces[at:], disabled)
            yield best.action
            at, verb = at + best.clauses, best.words
            state = foresee(best.action, state)
            if best.action.ends:
                return

    def _without_other_actions(
        self, best: _Fit, fits: Sequence[_Fit | None], pieces: list[str], disabled: frozenset[str]
    ) -> _Fit:
        """`best`, or the same rule for fewer clauses: `...` in a pattern may skip words, but no action of its own."""
        equal = (best.rank, best.action.groups)
        short = [fit for fit in fits if fit and (fit.rank, fit.action.groups) == equal][-1]
        state = foresee(short.action, plain(short.action.state))
        for piece in pieces[short.clauses : best.clauses]:
            words = bare(meaningful(piece, self.rules.language), self.rules.language)
            other = self._fit([piece], (), state, disabled) if words[0] in VERBS | NOUNISH else None
            if other is not None and not other.action.rule.fallback:
                return short
        return best

    def _fit(
        self, pieces: list[str], verb: tuple[str, ...], state: Mapping[str, Any], disabled: frozenset[str]
    ) -> _Fit | None:
        together = " and ".join(pieces)
        spoken = readings(" ".join(pieces), self.rules.language)
        if len(pieces) > 1:
            spoken += readings(together, self.rules.language)
        # "take the oil and the wick": a clause without a verb borrows one, as a last resort.
        borrowed = with_verb(verb, together, self.rules.language)
        for resort, options in enumerate((spoken, borrowed)):
            for place, rule in enumerate(self.rules.rules):
                for option in options:
                    action = _try(rule, option, state, disabled)
                    if action is not None:
                        return _Fit((resort, place), action, option, len(pieces))
        return None


def foresee(action: Action, state: JsonObject) -> JsonObject:
    """The state an action is expected to leave."""
    if action.available:
        for change in (action.case.expect, action.case.patch):
            state = merge(state, fill(change, action.groups, state))
    return state


def _try(
    rule: Rule, words: tuple[str, ...], state: Mapping[str, Any], disabled: frozenset[str]
) -> Action | None:
    groups = rule.match(words)
    if groups is None:
        return None
    situation = {**state, SAID: groups}
    fitting = [case for case in rule.cases if case.when.holds(situation)]
    if not fitting:
        return None
    for case in fitting:
        if not any(call.required and call.tool_name in disabled for call in case.calls):
            return Action(rule, case, groups, state, available=True)
    return Action(rule, fitting[0], groups, state, available=False)


class _Sheet:
    """The calls of one plan while they are being collected."""

    def __init__(self, rules: Rules, request: NarratorRequest) -> None:
        self.planned: list[PlannedCall] = []
        self.told: dict[str, str] = {}
        self._rules = rules
        self._attempt = request.attempt
        self._disabled = _disabled_tools(request)
        self._frontier: list[str] = []  # what the next action waits for

    def add(self, action: Action) -> None:
        """An action waits for the one before it: "I light the torch and examine the door" needs the light."""
        before = [] if action.rule.independent else self._frontier
        names: dict[str, str] = {}
        calls = [call for call in action.case.calls if call.tool_name not in self._disabled]
        for call in calls:
            after = [names[other] for other in call.after if other in names]
            names[call.id] = self._plan(call, after or before, action)
        waited_for = {other for call in calls for other in call.after}
        ends = [call for call in calls if call.id not in waited_for]
        needed = [call for call in ends if call.required] or ends
        last = [names[call.id] for call in needed]
        if action.case.patch:
            last = [self._stage({"patch": action.case.patch}, last or before, action)]
        self._frontier = last or self._frontier

    def close(self, actions: list[Action]) -> None:
        """Choices of the last action that has some, and the calls every plan of this story ends with.

        What an action offered is stale when a later one calls a tool: that one may offer its own, as it leaves things.
        """
        done = [action for action in actions if action.available]
        last = max((at for at, action in enumerate(done) if action.case.calls), default=0)
        offering = [action for action in done[last:] if action.case.choices]
        before = [call.tool_id for call in self.planned]
        if offering:
            choices = list(offering[-1].case.choices)
            self._stage({"choices": choices}, before, offering[-1], required=False)
        if done and all(action.case.closing for action in done):
            for call in self._rules.closing:
                if call.tool_name not in self._disabled:
                    self._plan(call, before, done[-1])

    def _stage(
        self, given: JsonObject, dependencies: list[str], action: Action, *, required: bool = True
    ) -> str:
        call = CallTemplate(id="stage", tool=self._rules.stage, input=given, required=required)
        return self._plan(call, dependencies, action)

    def _plan(self, call: CallTemplate, dependencies: list[str], action: Action) -> str:
        tool_id = unused(f"{call.id}{self._attempt}", {planned.tool_id for planned in self.planned})
        if not isinstance(call.told, UnsetType):
            self.told[tool_id] = str(fill(call.told, action.groups, action.state))
        self.planned.append(
            PlannedCall(
                tool_id=tool_id,
                tool_path=call.tool,
                input=fill(call.input, action.groups, action.state),
                dependencies=list(dependencies),
                required=call.required,
                async_=call.run_async,
                retry_policy=PlanRetry(max_retries=call.retries, backoff_ms=call.backoff_ms),
            )
        )
        return tool_id


def unused(name: str, used: Collection[str]) -> str:
    """The name, or with the first number behind it that makes it another than those in use."""
    numbered = (f"{name}-{number}" for number in count(2))
    return name if name not in used else next(one for one in numbered if one not in used)


def _disabled_tools(request: NarratorRequest) -> frozenset[str]:
    """Tools the plan must not call: those disabled by their own name or by their skill's."""  # 000 §13.3
    by_skill = {card.name for card in request.tools if card.skill in request.disabled_skills}
    return request.disabled_skills | by_skill


def _is_doubtful(prompt: str, actions: list[Action], missed: list[str]) -> bool:
    """Tell if other words of the prompt may rule the actions out: "don't, whatever you do, light it"."""
    if not any(action.acts for action in actions):
        return False
    if any(action.is_final for action in actions) and (missed or is_hedged(prompt)):
        return True
    # "Go inside? No." does nothing; "Go inside. No, wait." leaves it open what is to be done.
    answers = [answer.partition(",")[0] for answer in _SENTENCE_END.split(prompt)[1:]]
    if any(takes_back(word_list(answer)) for answer in answers):
        return True
    return any(mood(word_list(part)) is not Mood.ORDER for part in missed)


def is_hedged(prompt: str) -> bool:
    """Tell if a prompt asks, sets a condition or wavers; no final action is done on such a prompt."""
    if "?" in prompt or not words("story_rules.hedges").isdisjoint(word_list(prompt)):
        return True
    low = with_apostrophes(prompt).casefold()
    wish = _WISHES.search(low)
    return _QUALMS.search(low) is not None or (wish is not None and "but" in low[wish.end() :].split())


def _narrative(actions: list[Action], turn: int, unavailable: Texts) -> str:
    lost = [action for action in actions if not action.available]
    done = [action for action in actions if action.available]
    said: list[str] = []
    for action in lost:
        own = action.case.unavailable
        said.append(_choose(own if own is not None else unavailable, action, turn))
    for position, action in enumerate(done):
        case = action.case
        text = case.narrative
        if position and case.then is not None:
            text = case.then
        elif lost and not position and case.instead is not None:
            text = case.instead
        said.append(_choose(text, action, turn))
    pieces = [piece for piece in dict.fromkeys(said) if piece]
    long = any("\n\n" in piece or len(piece) > 160 for piece in pieces)
    return ("\n\n" if long else " ").join(pieces)


def _choose(texts: Texts, action: Action, turn: int) -> str:
    """One of the variants: another each turn, the same one when a turn is replayed."""
    return str(fill(texts[turn % len(texts)], action.groups, action.state)) if texts else ""
