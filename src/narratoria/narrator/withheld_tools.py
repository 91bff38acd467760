"""Tools that a story keeps for its rules, hidden from other narrators.

A rule says when an action is possible and what is told of it. The local narrator knows only what a tool means: it would
light a torch that burns already, so it sees no tool that a rule calls. A model sees those, but not the stage tool, as
that writes any state, nor tools whose actions cannot be undone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from narratoria.errors import PlanRejected
from narratoria.narrator.protocol import Declaration, Narrator, NarratorRequest, NoMatch, declaration_of
from narratoria.run.plan import PlanDocument

if TYPE_CHECKING:
    from narratoria.play.story import Story


class WithoutTools:
    """A narrator that plans without the tools named here."""

    def __init__(self, narrator: Narrator, tools: Collection[str]) -> None:
        self._narrator = narrator
        self._tools = frozenset(tools)

    @property
    def name(self) -> str:
        return self._narrator.name

    def declare(self, speaker: str = "") -> Declaration:
        return declaration_of(self._narrator, speaker)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        free = [card for card in request.tools if card.name not in self._tools]
        if request.tools and not free:
            raise NoMatch("the story keeps its tools for its rules")
        return await self._narrator.plan(replace(request, tools=free))


@dataclass(frozen=True, slots=True)
class Withheld:
    """Tools that a story keeps from a model, and the right to end the story."""

    tools: frozenset[str] = frozenset()
    ending: bool = False

    @classmethod
    def by(cls, story: Story, *, beside_rules: bool) -> Withheld:
        """The stage tool; with rules in the chain, also the tools that only rules with final actions call."""
        if story.rules is None:
            return cls()
        kept = {story.rules.stage_name, *(story.rules.final_tools if beside_rules else ())}
        return cls(frozenset(kept) - frozenset(story.free_tools), story.rules.end_the_story)

    def free(self, request: NarratorRequest) -> NarratorRequest:
        """The request without the tools that are kept."""
        return replace(request, tools=[card for card in request.tools if card.name not in self.tools])

    def check(self, plan: PlanDocument) -> None:
        """A tool the story sets free may take a patch; the state's `ending` is not to be in it."""
        if not self.ending:
            return
        problems = [
            f"$.calls[{index}].input.{name}: `ending` is for the story's rules alone; leave it out"
            for index, call in enumerate(plan.tools)
            for name, value in call.input.items()
            if isinstance(value, Mapping) and "ending" in value
        ]
        if problems:
            raise PlanRejected(problems)
