"""Several narrators, asked in turn: the first that has an answer speaks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from narratoria.errors import PlanRejected
from narratoria.narrator.asking import NarratorFailed, ask
from narratoria.narrator.protocol import Narrator, NarratorRequest, NoMatch, Refusal
from narratoria.narrator.retelling import Reteller
from narratoria.plan import PlanDocument

_SHARE: Final = 0.8  # of the time left, for a narrator with others behind it
_LAST_SHARE: Final = 0.95  # for the last one: the template needs next to none


class ChainNarrator:
    """Falls through on no match, failure or time-out; `last_speaker` and `passed_over` say what happened.

    An honest refusal ("nothing here can do that") is kept while the later narrators are asked, and is the answer
    when none of them knows better. The last narrator, usually the template, is asked only when there is none.
    """

    def __init__(
        self,
        narrators: Sequence[Narrator],
        *,
        last_resort: Narrator | None = None,
        time_limit: float = 5.0,
        on_refusal: Callable[[Refusal], None] = lambda refusal: None,
    ) -> None:
        self.narrators = tuple(narrators)
        self.last_resort = last_resort
        self.time_limit = time_limit
        self.on_refusal = on_refusal
        self.last_speaker = ""
        self.last_choices: tuple[str, ...] = ()
        self.passed_over: dict[str, str] = {}

    @property
    def name(self) -> str:
        return self.last_speaker or " → ".join(one.name for one in self.narrators)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        self.passed_over = {}
        self.last_choices = ()
        refusal: Refusal | None = None
        refuser = ""
        clock = asyncio.get_running_loop().time
        end = clock() + self.time_limit
        for behind, narrator in zip(range(len(self.narrators))[::-1], self.narrators, strict=True):
            # Whoever asks the chain waits as long as for one narrator: a slow one must leave time for the next.
            share = max(0.0, end - clock()) * (_SHARE if behind else _LAST_SHARE)
            try:
                plan = await ask(narrator, request, share)
            except Refusal as error:
                if refusal is None:
                    refusal, refuser = error, narrator.name
                self.passed_over[narrator.name] = str(error)
            except NoMatch as error:
                self.passed_over[narrator.name] = str(error) or "no match"
            except (NarratorFailed, PlanRejected) as error:
                self.passed_over[narrator.name] = str(error)
            else:
                self.last_speaker = narrator.name
                self.last_choices = tuple(getattr(narrator, "last_choices", ()))
                return plan
        if refusal is not None:
            self.last_speaker = refuser
            self.last_choices = refusal.choices
            self.on_refusal(refusal)
            return PlanDocument(narrative=refusal.narrative)
        if self.last_resort is not None:
            self.last_speaker = self.last_resort.name
            return await self.last_resort.plan(request)
        self.last_speaker = ""
        raise NoMatch("; ".join(f"{name}: {why}" for name, why in self.passed_over.items()) or "no narrator")

    async def retell(self, request: NarratorRequest, narrative: str, objections: Sequence[str]) -> str:
        """Whoever spoke last tells it again, if they can."""
        for narrator in self.narrators:
            if narrator.name == self.last_speaker and isinstance(narrator, Reteller):
                return await narrator.retell(request, narrative, objections)
        raise NoMatch(f"{self.last_speaker or 'nobody'} tells a thing only once")
