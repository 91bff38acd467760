"""Several narrators asked in turn."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence

import pytest

from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.protocol import Declaration, NarratorRequest, NoMatch, Refusal
from narratoria.narrator.template import TemplateNarrator
from narratoria.play.casting import granted_time
from narratoria.run.plan import PlanDocument


class Speaker:
    def __init__(
        self, name: str, answer: PlanDocument | Exception | None, choices: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self.answer = answer
        self.choices = choices

    def declare(self, speaker: str = "") -> Declaration:
        return Declaration(choices=self.choices)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        if self.answer is None:
            await asyncio.Event().wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        assert self.answer is not None
        return self.answer


class Mender(Speaker):
    async def retell(self, request: NarratorRequest, narrative: str, objections: Sequence[str]) -> str:
        return f"{self.name} says: not {narrative}"


async def test_two_narrators_that_hang_still_leave_time_for_the_third() -> None:
    chain = ChainNarrator(
        [Speaker("a", None), Speaker("b", None), Speaker("c", PlanDocument(narrative="c"))], time_limit=0.5
    )
    started = time.monotonic()
    plan = await chain.plan(NarratorRequest("x"))
    assert plan.narrative == "c"
    assert 0.4 < time.monotonic() - started < 3
    assert list(chain.passed_over) == ["a", "b"]
    assert "no plan within 0.4" in chain.passed_over["a"]


async def test_whoever_waits_as_long_as_for_one_narrator_gets_the_last_resort() -> None:
    chain = ChainNarrator(
        [Speaker("a", None), Speaker("b", None)], last_resort=TemplateNarrator(), time_limit=0.5
    )
    async with asyncio.timeout(0.5 + 0.5):
        await chain.plan(NarratorRequest("x"))
    assert chain.last_speaker == "template"


async def test_what_a_narrator_says_after_its_time_is_heard_by_nobody() -> None:
    heard: list[str] = []
    spoken = asyncio.Event()

    class Stubborn(Speaker):
        async def plan(self, request: NarratorRequest) -> PlanDocument:
            request.say("Half of ")
            while not late.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await late.wait()
            request.say("the rest")
            spoken.set()
            return PlanDocument()

    late = asyncio.Event()
    request = NarratorRequest("x", say=heard.append, unsay=heard.clear)
    chain = ChainNarrator([Stubborn("a", None), Speaker("b", PlanDocument(narrative="b"))], time_limit=0.1)
    assert (await chain.plan(request)).narrative == "b"
    late.set()
    await spoken.wait()
    assert heard == []


async def test_choices_come_from_the_one_who_spoke() -> None:
    chain = ChainNarrator(
        [Speaker("a", NoMatch(), ("A",)), Speaker("b", PlanDocument(narrative="b"), ("B",))], time_limit=5
    )
    await chain.plan(NarratorRequest("x"))
    assert chain.last_choices == ("B",)


async def test_only_the_one_who_spoke_tells_it_again() -> None:
    spoken = PlanDocument(narrative="x")
    chain = ChainNarrator([Mender("a", NoMatch()), Mender("b", spoken)], time_limit=5)
    await chain.plan(NarratorRequest("x"))
    assert await chain.retell(NarratorRequest("x"), "x", ["no"]) == "b says: not x"
    plain = ChainNarrator([Speaker("c", spoken)], time_limit=5)
    await plain.plan(NarratorRequest("x"))
    with pytest.raises(NoMatch, match="only once"):
        await plain.retell(NarratorRequest("x"), "x", ["no"])


async def test_nobody_speaks_when_all_pass_and_the_reasons_are_told() -> None:
    chain = ChainNarrator([Speaker("a", NoMatch("no")), Speaker("b", ValueError("bad"))], time_limit=5)
    with pytest.raises(NoMatch, match="a: no; b: ValueError: bad"):
        await chain.plan(NarratorRequest("x"))
    assert chain.name == "a → b"


async def test_the_first_refusal_is_kept_while_others_are_asked() -> None:
    heard: list[Refusal] = []
    chain = ChainNarrator(
        [
            Speaker("a", Refusal("not here", ["go"])),
            Speaker("b", Refusal("nor here")),
            Speaker("c", NoMatch()),
        ],
        last_resort=TemplateNarrator(),
        time_limit=5,
        on_refusal=heard.append,
    )
    plan = await chain.plan(NarratorRequest("x"))
    assert (plan.narrative, chain.last_speaker, chain.last_choices) == ("not here", "a", ("go",))
    assert len(heard) == 1


async def test_cancelling_the_chain_is_not_taken_for_a_failure() -> None:
    chain = ChainNarrator([Speaker("a", None)], last_resort=TemplateNarrator(), time_limit=30)
    task = asyncio.create_task(chain.plan(NarratorRequest("x")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_model_may_be_granted_more_than_five_seconds() -> None:
    assert granted_time({}) == 5.0
    assert granted_time({"NARRATORIA_LLM_TIMEOUT": "2"}) == 5.0
    assert granted_time({"NARRATORIA_LLM_TIMEOUT": "40"}) == 50.0
    assert granted_time({"NARRATORIA_LLM_TIMEOUT": "soon"}) == 5.0
