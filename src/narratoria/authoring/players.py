"""The players of a playtest: one that chooses at random, and a greedy one that looks for what nobody has seen yet."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Final

from narratoria.authoring.dead_ends import may_act
from narratoria.authoring.explored_story import Aim, ExploredStory
from narratoria.authoring.playtest_report import Fault, FaultKind
from narratoria.errors import NarratoriaError
from narratoria.events import CallFinished, JsonObject, Notice
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.protocol import NarratorRequest
from narratoria.narrator.rules.rule_file import Rules
from narratoria.narrator.rules.scripted import Action, ScriptedNarrator
from narratoria.play.casting import last_resort
from narratoria.play.game import Game
from narratoria.play.story import Story
from narratoria.play.turn_types import TurnResult
from narratoria.run.plan import PlanDocument
from narratoria.session import Record
from narratoria.session.approvals import approving

_CHOOSES: Final = 0.6  # of a player at random: the part of its turns in which it takes a choice
_CHOOSES_GREEDILY: Final = 0.1  # of a greedy player that has something new to try
_CHOOSES_IDLY: Final = 0.5  # of a greedy player that has not
_SEARCHES: Final = 3  # turns between two searches for a way that found none


class _Watched(ScriptedNarrator):
    """The story's rules, and a note of the cases that answered the turn."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        self.answered: list[Action] = []

    def compose(self, request: NarratorRequest, actions: list[Action]) -> PlanDocument:
        self.answered += actions
        return super().compose(request, actions)


class Player:
    """A player at random: what it types next, and what happened to it. After an ending it begins again."""

    def __init__(self, story: Story, explored: ExploredStory, number: int, chance: random.Random) -> None:
        self.story = story
        self.explored = explored
        self.number = number
        self.chance = chance
        self.narrator = _Watched(explored.narrator.rules)
        self.turns = 0
        self.reached: set[Aim] = set()
        self.faults: list[Fault] = []
        self.endings: list[tuple[str, str, int, JsonObject]] = []  # id, title, turns, state
        self.refused: list[str] = []
        self.is_lost = False  # after a crash: the next game would end in the same way
        # of the present game
        self.game: Game | None = None
        self.typed: list[str] = []
        self.offered: Sequence[str] = ()
        # of the present turn
        self.prompt: str | None = None
        self.answered: list[Aim] = []
        self.before: JsonObject = {}
        self.after: JsonObject = {}
        self.failures: list[tuple[FaultKind, str]] = []
        self.full = False  # as a sink it takes everything

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

    def choose(self) -> None:
        """Decide what to type in the next turn, or to begin again."""
        self.prompt = None if self.game is None else self._next(self.game.session.snapshot())

    async def take_turn(self) -> None:
        """Type what was decided. After an ending one thing more is said, and a new game begins."""
        game, self.answered = self.game, []
        if game is None or self.prompt is None:
            await self._begin()
            return
        over = game.ending
        self.typed.append(self.prompt)
        self.turns += 1
        self.narrator.answered.clear()
        self.before = game.session.snapshot()
        try:
            result = await game.prompt(self.prompt)
        except NarratoriaError as error:
            self._fault("crash", f"{type(error).__name__}: {error}")
            self.is_lost = True
            return
        self.after = game.session.snapshot()
        self.answered = [self.explored.aim_of(action.rule, action.case) for action in self.narrator.answered]
        self.reached.update(self.answered)
        self._note(game, result, self.prompt)
        if over is not None:
            await self.close()
        elif game.ending is not None:
            self.endings.append((*game.ending, len(self.typed), self.after))

    async def _begin(self) -> None:
        await self.close()
        chain = ChainNarrator([self.narrator], last_resort=last_resort(self.story))
        game = self.game = Game.new(self.story, narrator=chain)
        game.session.approvals.approver = approving("playtest")
        game.session.attach(self)
        self.typed = []
        self._note(game, game.begin(), None)

    async def close(self) -> None:
        if self.game is not None:
            game, self.game = self.game, None
            await game.close()

    def _note(self, game: Game, result: TurnResult, prompt: str | None) -> None:
        for kind, message in self.failures:
            self._fault(kind, message)
        self.failures.clear()
        if prompt is not None and not self.answered:
            self.refused.append(prompt)
            if prompt in self.offered:
                self._fault("unanswered choice", f"{prompt!r} was offered, and no rule answers it")
        if game.ending is None and not may_act(self.narrator.rules.rules, game.session.snapshot()):
            self._fault("dead end", "no rule can change anything any more, and it is no ending")
        self.offered = list(result.choices)

    def _fault(self, kind: FaultKind, message: str) -> None:
        self.faults.append(Fault(kind=kind, message=message, player=self.number, prompts=[*self.typed]))

    # --- choosing ------------------------------------------------------------------------------------------

    def _next(self, state: JsonObject) -> str | None:
        if self.offered and self.chance.random() < _CHOOSES:
            return self.chance.choice([*self.offered])
        return self._some_command(state)

    def _some_command(self, state: JsonObject) -> str:
        rules = [rule for rule in self.narrator.rules.rules if rule.may_answer(state)]
        rule = self.chance.choice(rules or self.narrator.rules.rules)
        return self.explored.command(rule, state, self.chance)


class GreedyPlayer(Player):
    """A player that looks for cases which have answered nobody yet, and for the ways to them."""

    def __init__(
        self, story: Story, explored: ExploredStory, number: int, chance: random.Random, *, ends_first: bool
    ) -> None:
        super().__init__(story, explored, number, chance)
        self.ends_first = ends_first
        self.chosen: Counter[str] = Counter()
        self.aim: Aim | None = None  # of the turn
        self.way: list[Aim] = []
        self.rest = 0  # turns until it may search again

    def _next(self, state: JsonObject) -> str | None:
        self._settle()
        if self.game is not None and self.game.ending is not None:
            return self._some_command(state)
        wanted = self.explored.new_aims(self.number)
        here = self.explored.next_here(wanted, state, self.chance, ends_first=self.ends_first)
        if self.offered and self.chance.random() < (_CHOOSES_GREEDILY if here else 0.0):
            return self._choice()
        if here is not None:
            self.aim, words = here
            self.explored.claimed[self.aim] = self.number
            return words
        return self._on_the_way(wanted, state)

    def _settle(self) -> None:
        """Let go of what it was after in its last turn."""
        if self.aim is not None:
            if not self.explored.reached[self.aim]:
                self.explored.searched[self.aim] += 1
            self.explored.claimed.pop(self.aim, None)
            self.aim = None
        if self.way and self.explored.reached[self.way[-1]]:  # by another player
            self.way = []

    def _on_the_way(self, wanted: set[Aim], state: JsonObject) -> str | None:
        """The next step to a state in which a case is new; None to begin again; else something idle."""
        step = self._step(state)
        if step is not None:
            return step
        self.rest -= 1
        if wanted and self.rest <= 0:
            for start, is_new_game in ((state, False), (self.explored.start, True)):
                if is_new_game and len(self.typed) < 1:
                    break
                self.way = self.explored.way_to(wanted, start)
                if self.way:
                    self.explored.claimed[self.way[-1]] = self.number
                    step = None if is_new_game else self._step(state)
                    if step is not None or (is_new_game and self.way):
                        return step
            self.rest = _SEARCHES
        if self.offered and self.chance.random() < _CHOOSES_IDLY:
            return self._choice()
        return self._some_command(state)

    def _step(self, state: JsonObject) -> str | None:
        """Words for the next case on the way; the way is given up where there are none."""
        while self.way:
            aim = self.way.pop(0)
            words = self.explored.words_for(aim, state, self.chance)
            if words is not None:
                return words
            self.explored.avoid(aim, state)
            self._give_up(aim)
        return None

    def _give_up(self, aim: Aim) -> None:
        goal = self.way[-1] if self.way else aim
        self.explored.searched[goal] += 1
        self.explored.claimed.pop(goal, None)
        self.way = []

    def _choice(self) -> str:
        least = min(self.chosen[choice] for choice in self.offered)
        choice = self.chance.choice([one for one in self.offered if self.chosen[one] == least])
        self.chosen[choice] += 1
        return choice
