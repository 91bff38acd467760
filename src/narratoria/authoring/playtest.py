"""Playtesting: players made of chance play a story and report what they ran into.

Half of the players choose at random, among the choices and commands made from the rules' own patterns. The other half
are greedy: each has a share of the rules and tries those first that have not answered it yet. A player is decided by
the seed and its number alone, so a fault can be met again.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from narratoria.errors import NarratoriaError, StoryInvalid
from narratoria.events import CallFinished, JsonObject, Notice
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.paraphrase.rule_phrases import phrases, readable
from narratoria.narrator.protocol import NarratorRequest
from narratoria.narrator.rules.patterns import Pattern
from narratoria.narrator.rules.rule_file import Case, Rule
from narratoria.narrator.rules.scripted import Action, ScriptedNarrator
from narratoria.play.casting import last_resort
from narratoria.play.game import Game
from narratoria.play.story import Story
from narratoria.play.turn_types import TurnResult
from narratoria.run.plan import PlanDocument
from narratoria.session import Record
from narratoria.session.approvals import approving
from narratoria.story_check.pattern_inclusion import included, sample

FaultKind: TypeAlias = Literal["failed call", "dead end", "unanswered choice", "notice", "crash"]

_PHRASES: Final = 12  # made of each rule
_TRIES: Final = 3  # of an ending that is sought
_RARE: Final = 8  # turns in which something could be tried: what has had no more is tried at once
_CHOOSES: Final = 0.6  # of a player at random: the part of its turns in which it takes a choice
_CHOOSES_GREEDILY: Final = 0.4
_CHOOSES_RARELY: Final = 0.2  # of a greedy player that has something rare to try
_SLOT: Final = re.compile(r"\{(\w+)\}")
_THINGS: Final = ("it", "stone", "door", "water")
_REFUSALS_SHOWN: Final = 20


class Fault(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Something that should not happen to a player, and the way there."""

    kind: FaultKind
    message: str
    player: int
    prompts: list[str]
    """All that the player had typed, the last of it met the fault."""
    count: int = 1
    session: str | None = None
    """A saved session in which it happened again, to open."""


class Ending(msgspec.Struct, kw_only=True):
    """An ending that players came to."""

    title: str
    count: int
    shortest: int
    """The turns of the quickest player."""
    state: JsonObject
    """The state of the quickest player at the end."""


class Report(msgspec.Struct, kw_only=True):
    """The findings of a playtest."""

    story: str
    players: int
    seed: int
    turns: int = 0
    seconds: float = 0.0
    faults: list[Fault] = []
    unreached_rules: list[str] = []
    unreached_cases: list[str] = []
    """Cases that never answered, of rules that did: `open-door: 1 3`."""
    endings: dict[str, Ending] = {}
    refusals: int = 0
    """Turns in which no rule answered."""
    refused: list[str] = []

    @property
    def turns_per_second(self) -> float:
        return self.turns / self.seconds if self.seconds else 0.0

    def to_json(self) -> JsonObject:
        document: JsonObject = msgspec.to_builtins(self)
        return {"clean": not self.faults, **document, "turnsPerSecond": round(self.turns_per_second, 2)}


class _Watched(ScriptedNarrator):
    """The story's rules, and a note of the cases that answered the turn."""

    def __init__(self, story: Story) -> None:
        super().__init__(story.scripted_narrator().rules)
        self.answered: list[tuple[Rule, Case]] = []

    def compose(self, request: NarratorRequest, actions: list[Action]) -> PlanDocument:
        self.answered += [(action.rule, action.case) for action in actions]
        return super().compose(request, actions)


class _Player:
    """One player: what it types next, and what happened to it. After an ending it begins again."""

    def __init__(self, story: Story, number: int, settings: Settings) -> None:
        self.story = story
        self.number = number
        self.greedy = number % 2 == 1
        self.seeks_endings = number % 4 == 3
        self.chance = random.Random(f"{settings.seed}/{number}")  # noqa: S311 - a game, no secret
        self.narrator = _Watched(story)
        self.rules = self.narrator.rules.rules
        shares = max(1, settings.players // 2)
        self.share = {rule.id for at, rule in enumerate(self.rules) if at % shares == number // 2}
        self.turns = 0
        self.chosen: Counter[str] = Counter()  # choices
        self.tried: Counter[tuple[str, int | None]] = Counter()  # rules, each with the case that was aimed at
        self.open: Counter[tuple[str, int | None]] = Counter()  # turns in which it could have been tried
        self.reached: dict[str, set[int]] = {}
        self.faults: list[Fault] = []
        self.endings: list[tuple[str, str, int, JsonObject]] = []  # id, title, turns, state
        self.refused: list[str] = []
        # of the present game
        self.game = self._new_game()
        self.typed: list[str] = []
        self.offered: Sequence[str] = ()
        # of the present turn
        self.failures: list[tuple[FaultKind, str]] = []
        self.full = False  # as a sink it takes everything

    def _new_game(self) -> Game:
        chain = ChainNarrator([self.narrator], last_resort=last_resort(self.story))
        game = Game.new(self.story, narrator=chain)
        game.session.approvals.approver = approving("playtest")
        game.session.attach(self)
        return game

    # --- as a sink of the session --------------------------------------------------------------------------

    def push(self, record: Record) -> None:
        event = record.event
        if isinstance(event, CallFinished) and not event.ok and not event.part and event.state != "skipped":
            said = (event.error or event.message).removeprefix(f"{event.tool}: ")
            self.failures.append(("failed call", f"{event.tool}: {said}"))
        elif isinstance(event, Notice):
            self.failures.append(("notice", event.message))

    async def wait(self) -> None:
        return None

    # --- playing -------------------------------------------------------------------------------------------

    async def play(self, turns: int) -> None:
        while self.turns < turns and not self._is_lost:
            if self.typed:
                self.game, self.typed = self._new_game(), []
            try:
                await self._play_once(turns)
            finally:
                await self.game.close()

    async def _play_once(self, turns: int) -> None:
        """Play until the story ends, and say one thing more then."""
        game = self.game
        result = game.begin()
        self._note(result, None)
        while self.turns < turns:
            over = game.ending
            prompt = self._next(result.choices)
            self.typed.append(prompt)
            self.turns += 1
            self.narrator.answered.clear()
            try:
                result = await game.prompt(prompt)
            except NarratoriaError as error:
                self._fault("crash", f"{type(error).__name__}: {error}")
                return
            self._note(result, prompt)
            if over is not None:
                return
            if game.ending is not None:
                self.endings.append((*game.ending, len(self.typed), game.session.snapshot()))

    @property
    def _is_lost(self) -> bool:
        """True after a crash: the next game would end in the same way."""
        return any(fault.kind == "crash" for fault in self.faults)

    def _note(self, result: TurnResult, prompt: str | None) -> None:
        for rule, case in self.narrator.answered:
            self.reached.setdefault(rule.id, set()).add(rule.cases.index(case))
        for kind, message in self.failures:
            self._fault(kind, message)
        self.failures.clear()
        if prompt is not None and not self.narrator.answered:
            self.refused.append(prompt)
            if prompt in self.offered:
                self._fault("unanswered choice", f"{prompt!r} was offered, and no rule answers it")
        if self.game.ending is None and not self._may_act():
            self._fault("dead end", "no rule can change anything any more, and it is no ending")
        self.offered = list(result.choices)

    def _may_act(self) -> bool:
        return may_act(self.rules, self.game.session.snapshot())

    def _fault(self, kind: FaultKind, message: str) -> None:
        self.faults.append(Fault(kind=kind, message=message, player=self.number, prompts=[*self.typed]))

    # --- choosing ------------------------------------------------------------------------------------------

    def _next(self, choices: Sequence[str]) -> str:
        state = self.game.session.snapshot()
        rules = [rule for rule in self.rules if rule.may_answer(state)] or list(self.rules)
        if not self.greedy:
            if choices and self.chance.random() < _CHOOSES:
                return self.chance.choice(list(choices))
            return self._command(self.chance.choice(rules), state)
        aims = [(rule, self._new_case(rule, state)) for rule in rules]
        self.open.update((rule.id, case) for rule, case in aims)
        rule, case = min(aims, key=lambda aim: self._appeal(*aim))
        is_rare = case is not None and not self.tried[rule.id, case] and self.open[rule.id, case] <= _RARE
        if choices and self.chance.random() < (_CHOOSES_RARELY if is_rare else _CHOOSES_GREEDILY):
            least = min(self.chosen[choice] for choice in choices)
            choice = self.chance.choice([one for one in choices if self.chosen[one] == least])
            self.chosen[choice] += 1
            return choice
        self.tried[rule.id, case] += 1
        return self._command(rule, state)

    def _new_case(self, rule: Rule, state: Mapping[str, Any]) -> int | None:
        """The case of a rule that may answer now and never did; None if there is none."""
        known = self.reached.get(rule.id, ())
        for at, case in enumerate(rule.cases):
            if case.when.may_hold(state):
                if at not in known:
                    return at
                if not case.when.reads_words:  # it surely answers, before those after it
                    return None
        return None

    def _appeal(self, rule: Rule, case: int | None) -> tuple[Any, ...]:
        """The order in which a greedy player tries rules: with a new case, least tried, those that can seldom be tried,
        those of its own share. A rule that has answered it counts as tried once more. Endings come last, but not for
        every second player.
        """
        tried = self.tried[rule.id, case]
        ends = case is not None and rule.is_final(rule.cases[case])
        is_sought = self.seeks_endings and ends and tried < _TRIES
        is_rare = self.open[rule.id, case] <= _RARE
        again = max(0, tried - 1) if is_rare else tried  # the words may have been those of another rule
        return (
            case is None,
            again + (rule.id in self.reached and not is_sought),
            ends and not is_sought,
            not is_rare,
            rule.id not in self.share,
            self.open[rule.id, case],
            self.chance.random(),
        )

    def _command(self, rule: Rule, state: Mapping[str, Any]) -> str:
        known = phrases(rule.patterns, _PHRASES) or [rule.id]
        things = [*_names(state), *_THINGS]
        return readable(_SLOT.sub(lambda _: self.chance.choice(things), self.chance.choice(known)))


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


def _names(state: Mapping[str, Any]) -> list[str]:
    """Words for things: the keys of the state, which are often their names."""
    found: list[str] = []
    for key, value in state.items():
        found.append(key)
        if isinstance(value, Mapping):
            found += map(str, value)
    return found[:50]


class Settings(msgspec.Struct, frozen=True):
    """The size of a playtest, and the seed that decides it."""

    players: int = 8
    turns: int = 40
    seed: int = 0
    at_once: int = max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)


async def playtest(
    story: Story, settings: Settings, *, told: Callable[[int], None] = lambda done: None
) -> Report:
    """Let players play; `told` hears how many are done. Tools run for real, sessions are kept nowhere."""
    if story.rules is None:
        raise StoryInvalid(f"{story.root}: there is no narrator.toml; playtesting needs rules to go by")
    started = time.perf_counter()
    places = asyncio.Semaphore(settings.at_once)
    done: list[_Player] = []

    async def one(number: int) -> None:
        async with places:
            player = _Player(story, number, settings)
            await player.play(settings.turns)
            done.append(player)
            told(len(done))

    async with asyncio.TaskGroup() as group:
        for number in range(settings.players):
            group.create_task(one(number))
    report = Report(story=story.id, players=settings.players, seed=settings.seed)
    report.seconds = round(time.perf_counter() - started, 3)
    return _summed_up(report, story, sorted(done, key=lambda player: player.number))


def _summed_up(report: Report, story: Story, players: Sequence[_Player]) -> Report:
    reached: dict[str, set[int]] = {}
    for player in players:
        report.turns += player.turns
        report.refusals += len(player.refused)
        report.refused += [one for one in player.refused if one not in report.refused]
        for rule_id, cases in player.reached.items():
            reached.setdefault(rule_id, set()).update(cases)
        for name, title, turns, state in player.endings:
            _add_ending(report, name, Ending(title=title, count=1, shortest=turns, state=state))
        for fault in player.faults:
            _add_fault(report, fault)
    report.refused = report.refused[:_REFUSALS_SHOWN]
    for rule in story.scripted_narrator().rules.rules:
        if rule.id not in reached:
            report.unreached_rules.append(rule.id)
        else:
            missed = sorted(set(range(len(rule.cases))) - reached[rule.id])
            if missed:
                report.unreached_cases.append(f"{rule.id}: {' '.join(str(number + 1) for number in missed)}")
    return report


def _add_ending(report: Report, name: str, ending: Ending) -> None:
    known = report.endings.setdefault(name, ending)
    if known is not ending:
        known.count += 1
        if ending.shortest < known.shortest:
            known.shortest, known.state = ending.shortest, ending.state


def _add_fault(report: Report, fault: Fault) -> None:
    """Keep one fault of each kind and message: the one met soonest."""
    for at, known in enumerate(report.faults):
        if (known.kind, known.message) == (fault.kind, fault.message):
            count = known.count + 1
            if len(fault.prompts) < len(known.prompts):
                report.faults[at] = fault
            report.faults[at].count = count
            return
    report.faults.append(fault)
