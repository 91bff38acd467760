"""The narrator that is a language model: any OpenAI-compatible server, or any other `Adapter`.

One call of `plan` is one attempt. What was wrong with an answer is remembered until the next attempt at the same
prompt and told to the model then; the turn has five. `learns_from` says which failures are worth the next one.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from narratoria.agent.adapters import adapter as model
from narratoria.agent.adapters.answers import TextOf
from narratoria.agent.adapters.settings import number_in
from narratoria.errors import NarratoriaError, PlanRejected
from narratoria.narrator.llm.plan_reply import (
    MAX_NARRATIVE,
    Shortening,
    narrative_of,
    narrative_schema,
    plan_of,
    reply_schema,
)
from narratoria.narrator.llm.prompting import Prompting
from narratoria.narrator.llm.skill_guidance import MOST_READ, READINGS, asked_to_read, told
from narratoria.narrator.protocol import Declaration, NarratorRequest
from narratoria.narrator.withheld_tools import Withheld
from narratoria.run.plan import PlanDocument
from narratoria.run.plan_executor import GENERATION_TIMEOUT
from narratoria.tools.deadline import Budget, BudgetTracker

MAX_TOKENS: Final = 700
_SMALLEST: Final = 4
_WORTHWHILE: Final = 0.8  # a prompt that is not this much shorter is not worth an attempt
_FORMS: Final = ("typed", "loose", "json", "text")  # what is asked of the server, ever less
_PATIENCE: Final = 2.0  # seconds a player waits for a busy server; after that it is the next narrator's turn
_BUSY: Final = 1.0  # seconds a busy server is left alone when it does not say how many
_STUMBLES: Final = 2  # failures of the server in one turn, after which it is left alone
_FOR_GOOD: Final = (model.ModelTimedOut, model.ModelUnreachable, model.ModelRefused, model.ReplyTooLarge)


class LLMNarrator:
    """Plans by asking a model. What it learns of the server (context too long, no schemas) it keeps."""

    def __init__(
        self,
        adapter: model.Adapter,
        *,
        name: str = "llm",
        prompting: Prompting | None = None,
        budget: Budget | BudgetTracker | None = None,
        time_limit: float | None = GENERATION_TIMEOUT,
        max_tokens: int = MAX_TOKENS,
        max_narrative: int = MAX_NARRATIVE,
        withheld: Withheld = Withheld(),  # noqa: B008 (frozen)
    ) -> None:
        """`max_tokens` bounds an answer, `max_narrative` the characters of its narrative."""
        self.adapter = adapter
        self.prompting = prompting or Prompting()
        self.tracker = BudgetTracker(budget) if isinstance(budget, Budget) else budget
        self.time_limit = time_limit
        self.max_tokens = max_tokens
        self.max_narrative = max_narrative
        self.withheld = withheld
        self.last_choices: tuple[str, ...] = ()
        self._name = name
        self._problems: tuple[str, Sequence[str]] = ("", ())  # the last prompt, and what the answer did wrong
        self._read: list[str] = []  # skills, and pages of them, that the model asked for
        self._form = 0
        self._smaller = 0
        self._shrunk = False  # the last overflow left something to take away
        self._stumbles = 0  # of the server, in this turn
        self._free_at = 0.0  # when a busy server may be asked again, by the monotonic clock

    @classmethod
    def from_environment(
        cls,
        environment: Mapping[str, str] | None = None,
        *,
        adapter: model.Adapter | None = None,
        prompting: Prompting | None = None,
        withheld: Withheld = Withheld(),  # noqa: B008 (frozen)
    ) -> LLMNarrator:
        """NARRATORIA_LLM_URL, _MODEL, _KEY or OPENAI_*; bounds by NARRATORIA_LLM_TIMEOUT, _MAX_TOKENS, _MAX_COST."""
        if adapter is None:
            from narratoria.agent.adapters.openai_compatible import OpenAIAdapter  # needs the extra `llm`

        env = os.environ if environment is None else environment
        tokens = number_in(env, "NARRATORIA_LLM_MAX_TOKENS", above_zero=True)
        cost = number_in(env, "NARRATORIA_LLM_MAX_COST", above_zero=True)
        budget = Budget(max_tokens=None if tokens is None else int(tokens), max_cost=cost)
        if cost is not None and not env.get("NARRATORIA_LLM_PRICE"):
            raise NarratoriaError(
                "NARRATORIA_LLM_MAX_COST bounds nothing without NARRATORIA_LLM_PRICE, what a million tokens cost; "
                "such as 0.15/0.60"
            )
        return cls(
            adapter or OpenAIAdapter.from_environment(env),
            prompting=prompting,
            budget=None if tokens is None and cost is None else budget,
            time_limit=number_in(env, "NARRATORIA_LLM_TIMEOUT", above_zero=True) or GENERATION_TIMEOUT,
            withheld=withheld,
        )

    @property
    def name(self) -> str:
        """The name of the narrator: `llm`."""
        return self._name

    def declare(self, speaker: str = "") -> Declaration:
        """Return what the narrator declares of itself."""
        return Declaration(reads_memories=True, choices=self.last_choices)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        """One attempt: a plan, or an exception that says why not."""
        self.last_choices = ()
        off = request.disabled_skills
        enabled = [card for card in request.tools if card.name not in off and card.skill not in off]
        request = self.withheld.free(dataclasses.replace(request, tools=enabled))
        if request.attempt == 1:
            self._problems = ("", ())
            self._stumbles = 0
        reply = await self._reply(request)
        try:
            plan, choices = plan_of(reply.text, request, self.max_narrative)
            self.withheld.check(plan)
            # Without calls the state is final. With calls, the narrative is reviewed after them.
            if not plan.tools and (objections := request.check(plan)):
                raise PlanRejected([f"$.narrative: {objection}" for objection in objections])
        except PlanRejected as error:
            self._problems = (request.prompt, [*self._cut_off(reply, request), *error.problems])
            raise
        self._problems = ("", ())
        self.last_choices = choices
        return plan

    async def _reply(self, request: NarratorRequest) -> model.ModelReply:
        """Ask for a plan. A model that wants to read of a skill first is given it, and asked again."""
        for reading in range(READINGS + 1):
            closed = told(request, request.tools, self._read).closed if reading < READINGS else ()
            schema = None
            if self._form < 2:
                schema = reply_schema(
                    request.tools,
                    typed=self._form == 0,
                    longest=self.max_narrative,
                    readable=[name for name, _ in closed],
                )
            reply = await self._ask(request, self._messages(request, may_read=bool(closed)), schema)
            wanted = asked_to_read(reply.text, closed)
            if not wanted:
                break
            request.unsay()
            request.note(f"it reads {', '.join(wanted)}")
            self._read = list(dict.fromkeys([*self._read, *wanted]))[-MOST_READ:]
        return reply

    def learns_from(self, error: BaseException) -> bool:
        """True for what the next attempt can do better: by the problems it is told, a smaller prompt, a looser form.

        A server that hangs, is gone or refuses us will do so again; one that stumbles is asked once more.
        """
        if isinstance(error, PlanRejected):
            return True
        if isinstance(error, model.ContextOverflow):
            return self._shrunk
        if isinstance(error, model.FormatRefused):
            return True  # without a form there is none to refuse
        if isinstance(error, model.ModelBusy):
            return self._free_at - time.monotonic() <= _PATIENCE and self._stumbles < _STUMBLES
        return (
            isinstance(error, model.ModelFailed)
            and not isinstance(error, _FOR_GOOD)
            and self._stumbles < _STUMBLES
        )

    async def retell(self, request: NarratorRequest, narrative: str, objections: Sequence[str]) -> str:
        """The narrative again, which should be true to the state in `request`: the one after the calls."""
        again = "Tell it again, true to the state. The calls are done."
        said = [f"You wrote: {narrative}", *objections, again]
        schema = narrative_schema(self.max_narrative) if self._form < 2 else None
        request = self.withheld.free(request)
        reply = await self._ask(request, self._messages(request, said), schema)
        return narrative_of(reply.text, self.max_narrative, request.note)

    def _messages(
        self, request: NarratorRequest, problems: Sequence[str] = (), *, may_read: bool = False
    ) -> list[dict[str, Any]]:
        prompt, known = self._problems
        said = dict.fromkeys([*(known if prompt == request.prompt else ()), *request.problems])
        return self.prompting.messages(
            request, problems=[*said, *problems], smaller=self._smaller, read=self._read, may_read=may_read
        )

    async def _ask(
        self, request: NarratorRequest, messages: list[dict[str, Any]], schema: dict[str, Any] | None
    ) -> model.ModelReply:
        if self.tracker is not None:
            self.tracker.check()
        await self._wait_until_free()
        question = model.ModelRequest(
            messages,
            schema=schema,
            any_json=_FORMS[self._form] == "json",
            max_tokens=self.max_tokens,
            timeout=self.time_limit,
        )
        began = time.monotonic()
        try:
            reply = await model.complete(self.adapter, question, self._listener(request))
        except model.ModelFailed as error:
            self._note(error, request, messages)
            raise
        request.spent(reply.account(time.monotonic() - began, getattr(self.adapter, "model", None) or ""))
        if self.tracker is not None:
            usage = reply.usage
            self.tracker.spend(
                input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost=usage.cost
            )
        return reply

    def _listener(self, request: NarratorRequest) -> Callable[[str], None]:
        """Passes the narrative on while the answer around it is still being written."""
        narrative, shortening = TextOf("narrative"), Shortening(self.max_narrative)

        def hear(piece: str) -> None:
            text = shortening.feed(narrative.feed(piece))
            if narrative.done:
                text += shortening.end()
            if text:
                request.say(text)

        return hear

    def _note(
        self, error: model.ModelFailed, request: NarratorRequest, messages: list[dict[str, Any]]
    ) -> None:
        """Adapts the next attempt to a failure of the server."""
        if isinstance(error, model.ContextOverflow):
            self._shrink(request, messages)
        elif isinstance(error, model.FormatRefused):
            self._form = min(self._form + 1, len(_FORMS) - 1)
        else:
            self._stumbles += 1
        if isinstance(error, model.ModelBusy):
            self._free_at = time.monotonic() + (_BUSY if error.retry_after is None else error.retry_after)

    async def _wait_until_free(self) -> None:
        left = self._free_at - time.monotonic()
        if left > _PATIENCE:
            raise model.ModelBusy(
                f"{self.adapter.name} asked to be left alone for another {left:.0f} s", left
            )
        if left > 0:
            await asyncio.sleep(left)

    def _shrink(self, request: NarratorRequest, messages: list[dict[str, Any]]) -> None:
        """Halve the prompt's bounds until they bite; some servers count the schema too, so that gets looser."""
        before, told = (self._smaller, self._form), _length(messages)
        while self._smaller < _SMALLEST:
            self._smaller += 1
            if _length(self._messages(request)) <= _WORTHWHILE * told:
                break
        self._form = max(self._form, 1)
        self._shrunk = before != (self._smaller, self._form)

    def _cut_off(self, reply: model.ModelReply, request: NarratorRequest) -> list[str]:
        """The problem to tell a model whose answer was cut off; where the context was full, the prompt shrinks."""
        if reply.finish != "length":
            return []
        if reply.usage.counted and reply.usage.output_tokens < self.max_tokens:
            self._shrink(request, self._messages(request))
        return [f"the answer was cut off after {reply.usage.output_tokens} tokens; be shorter"]


def _length(messages: list[dict[str, Any]]) -> int:
    return sum(len(message["content"]) for message in messages)
