"""One exchange: prompt → plan → execution → replan … → narration. A turn is a transaction, and it always ends.

At most five generations, five seconds each; after that the narrator of last resort speaks and the player goes on. An
error of a narrator or a tool costs an attempt, never the turn.
"""
# 000 §13.6: the bounds.

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import msgspec

from narratoria import telemetry
from narratoria.errors import JournalError, NarratoriaError, PlanRejected, SessionBusy, describe
from narratoria.events import (
    Choices,
    MemoriesRecalled,
    Narration,
    NarratorChosen,
    Notice,
    PlanMade,
    PlanRefused,
    RecalledMemory,
    TurnCommitted,
    TurnStarted,
)
from narratoria.narrator.invocation import as_written, ask, declared_by, readable, review_of
from narratoria.narrator.protocol import (
    Declaration,
    Narrator,
    NarratorRequest,
    PastTurn,
    Reviewer,
    card,
)
from narratoria.play.disabled_skills import Skills
from narratoria.play.earlier_plans import EarlierPlans
from narratoria.play.killed_writes import take_back_killed_writes
from narratoria.play.offering import ending_of, offer_after
from narratoria.play.turn_narrative import narrative_of
from narratoria.play.turn_speech import Speech
from narratoria.play.turn_types import PLAIN, Interrupted, Origin, TurnResult, TurnSettings
from narratoria.run.plan import CallResult, ExecutionResult, PlanDocument, PlanMetadata
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session

MAX_PROMPT: Final = 20_000
QUEUE_LENGTH: Final = 4
SHORT: Final = 600  # letters of a memory in the record of the turn it was recalled for


async def take_turn(
    session: Session,
    prompt: str,
    *,
    narrator: Narrator,
    registry: ToolRegistry,
    executor: PlanExecutor | None = None,
    origin: Origin = "player",
    settings: TurnSettings = TurnSettings(),  # noqa: B008 (frozen)
    resume: Interrupted | None = None,
) -> TurnResult:
    """Take one turn. Turns of a session run one at a time: a few prompts may wait, more raise `SessionBusy`."""
    if session.waiting_turns >= QUEUE_LENGTH:
        raise SessionBusy(
            f"session {session.id}: {QUEUE_LENGTH} prompts are waiting already; let a turn end first"
        )
    async with session.next_turn():
        executor = executor or PlanExecutor(registry, session)
        turn = _Turn(session, prompt, narrator, executor, origin, settings, resume)
        with telemetry.turn(settings.story, session.id, turn.result.turn) as span:
            result = await turn.take()
            span.note(outcome=result.outcome, narrator=result.narrator)
            if result.outcome == "fallback":
                span.failed("FALLBACK")
        return result


class _Turn:
    def __init__(
        self,
        session: Session,
        prompt: str,
        narrator: Narrator,
        executor: PlanExecutor,
        origin: Origin,
        settings: TurnSettings,
        resume: Interrupted | None,
    ) -> None:
        self.session = session
        self.narrator = narrator
        self.executor = executor
        self.origin: Origin = origin
        self.settings = settings
        self.resume = resume
        self.skills = Skills(session, executor.resolver, settings.disabled_skills)
        number = session.turn_count + 1 if resume is None else resume.turn
        self.result = TurnResult(number, readable(prompt)[:MAX_PROMPT])
        self.asked = self.result.prompt if prompt.strip() else settings.going_on
        self.too_long = len(prompt) > MAX_PROMPT
        self.said: list[str] = []
        self.told: dict[str, str] = {}  # by id of a call, the narrator's words in place of its summary
        self.speech = Speech(session, 1)  # of the narrator in this attempt
        self.earlier = EarlierPlans(self.skills)
        if resume is not None:
            self.earlier.recall(resume.ids, resume.parent, resume.futile, resume.problems)
            session.approvals.recall(resume.approvals)
        self.fresh: PlanDocument | None = None  # the plan that succeeded, if it is of this turn's attempts

    async def take(self) -> TurnResult:
        session, result = self.session, self.result
        await take_back_killed_writes(session)
        session.turn = session.turn_count = result.turn
        if self.resume is None:
            session.record(TurnStarted(turn=result.turn, prompt=result.prompt, origin=self.origin))
            if self.settings.recalled:
                session.record(MemoriesRecalled(memories=[*map(_in_short, self.settings.recalled)]))
        if self.too_long:
            session.notice(
                Notice(level="warn", message=f"only the first {MAX_PROMPT:,} characters were read")
            )
        try:
            if not await self._generations():
                await self._fall_back()
            await self._review()
        except asyncio.CancelledError:
            result.outcome = "cancelled"
            self._close()
            raise
        self._close()
        await self._save()
        return result

    # --- plans ---------------------------------------------------------------------------------------------

    async def _generations(self) -> bool:
        """Plan and execute until a plan succeeds; False when the attempts are used up."""
        first = 1
        trace: ExecutionResult | None = None
        if self.resume is not None:
            self.skills.disabled |= self.resume.disabled
            first = max(1, self.resume.attempt)
            if self.resume.plan is not None:
                self.result.narrator = self.resume.narrator
                self.told |= self.resume.told
                trace = await self._execute(self.resume.plan, self.resume.completed)
                if trace.success:
                    return True
                first += 1
        for attempt in range(first, self.settings.generations + 1):
            plan = await self._generate(attempt, trace)
            if plan is None:
                continue
            self._announce(plan, attempt)
            trace = await self._execute(plan, {})
            if trace.success:
                self.fresh = plan
                return True
        return False

    async def _generate(self, attempt: int, trace: ExecutionResult | None) -> PlanDocument | None:
        """Ask the narrator once. Any error is recorded as a problem, and costs this attempt."""
        request, earlier = self._request(attempt, self.earlier.parent, trace), self.earlier
        plan: PlanDocument | None = None
        rejected: str | None = None
        earlier.problems = ()
        try:
            with telemetry.generation(attempt) as span:
                plan = as_written(await ask(self.narrator, request, self.settings.generation_timeout))
                span.made_by(self.narrator.name)
            plan = msgspec.structs.replace(
                plan,
                request_id=earlier.own_id(plan.request_id, attempt),
                disabled_skills=sorted({*plan.disabled_skills, *self.skills.failed}),
                metadata=PlanMetadata(generation_attempt=attempt, parent_plan_id=earlier.parent_id),
            )
            self.skills.check(plan)
            earlier.check(plan)
        except PlanRejected as error:
            problems = list(error.problems)
            if plan is not None:
                rejected = plan.request_id
            elif error.plan_id is not None:
                rejected = earlier.own_id(error.plan_id, attempt)
                if isinstance(error.plan, PlanDocument):
                    plan = msgspec.structs.replace(error.plan, request_id=rejected)
            earlier.problems = error.problems
        except (
            NarratoriaError
        ) as error:  # no match, or a narrator that failed: the attempt's, not the player's
            problems = [str(error)]
        else:
            return plan
        if rejected is not None:
            earlier.replace(plan, rejected)
        problems = [readable(str(problem)) for problem in problems]
        self.result.problems.extend(problems)
        self.session.record(
            PlanRefused(
                attempt=attempt,
                problems=problems,
                narrator=self.narrator.name,
                plan=rejected,
                rejected=bool(earlier.problems),
            )
        )
        return None

    def _request(
        self, attempt: int, parent: PlanDocument | None, trace: ExecutionResult | None
    ) -> NarratorRequest:
        speech = self.speech = Speech(self.session, attempt)
        return NarratorRequest(
            prompt=self.asked,
            state=self.session.state,
            history=[PastTurn(*turn) for turn in self.session.past],
            tools=[card(tool) for tool in self.executor.registry if self.skills.offers(tool)],
            skills=[one for one in self.settings.skills if one.name not in self.skills.withheld],
            disabled_skills=self.skills.withheld,
            attempt=attempt,
            generations=self.settings.generations,
            parent_plan=parent,
            parent_plan_id=parent.request_id if parent is not None else self.earlier.parent_id,
            problems=self.earlier.problems,
            last_trace=trace,
            memories=self.settings.memories,
            recall=lambda: (
                self.settings.memories or self.settings.recall(self.result.prompt, self.session.state)
            ),
            premise=self.settings.premise,
            authors_note=self.settings.authors_note,
            lore=self.settings.lore,
            choices=tuple(self.session.choices),
            say=speech.say,
            unsay=speech.unsay,
            note=speech.note,
            spent=self.session.record,
        )

    def _announce(self, plan: PlanDocument, attempt: int) -> None:
        self.result.narrator = self.narrator.name
        self.result.plans.append(plan)
        declared = self._declared(self.narrator.name)
        self.result.problems.extend(f"{name}: {why}" for name, why in declared.failures.items())
        self.session.record(
            NarratorChosen(
                narrator=self.narrator.name, attempt=attempt, passed_over=dict(declared.passed_over)
            )
        )
        told = {one.tool_id: declared.told[one.tool_id] for one in plan.tools if one.tool_id in declared.told}
        self.told |= told
        self.session.record(
            PlanMade(plan=plan.to_data(), attempt=attempt, narrator=self.narrator.name, told=told)
        )
        if plan.narrative:
            self.said = [plan.narrative]
            self.speech.complete(plan.narrative)

    def _declared(self, speaker: str) -> Declaration:
        """Return the narrator's declaration. If it cannot make one, that is a problem, and it declares nothing."""
        try:
            return declared_by(self.narrator, speaker)
        except NarratoriaError as error:
            problem = readable(f"{self.narrator.name}: {error}")
            if problem not in self.result.problems:
                self.result.problems.append(problem)
            return Declaration()

    async def _review(self) -> None:
        """Let a narrator that reviews its narration do so after the calls."""
        if not isinstance(self.narrator, Reviewer):
            return
        plan, result = self.fresh, self.result
        attempt = plan.metadata.generation_attempt if plan is not None else 1
        request = self._request(attempt, plan, result.traces[-1] if result.traces else None)
        try:
            review = await review_of(
                self.narrator, request, plan, result.traces, self.settings.generation_timeout
            )
        except NarratoriaError as error:  # the narration stands as it was planned
            result.problems.append(readable(f"{self.narrator.name}: {error}"))
            return
        if review.narrative is not None:
            told = readable(review.narrative)
            self.said = [told] if told else []
            self.speech.replace(told)
        result.receipts.extend(review.receipts)
        result.problems.extend(readable(str(one)) for one in review.problems)
        for notice in review.notices:
            self.session.notice(notice)

    async def _execute(self, plan: PlanDocument, completed: dict[str, CallResult]) -> ExecutionResult:
        if plan.tools:
            await self._write_down()
        trace, ended_by = await self.executor.settle(
            plan, completed=completed, generations=self.settings.generations
        )
        if ended_by is not None:  # a turn goes on: what ends an evaluation costs it this attempt
            self.result.problems.append(describe(ended_by))
        self.result.traces.append(trace)
        if plan not in self.result.plans:
            self.result.plans.append(plan)
            self.said = [plan.narrative] if plan.narrative else []
        for call, result in zip(plan.tools, trace.tool_results, strict=True):
            self.skills.note(call.tool_path, result)
        if not trace.success:
            self.earlier.note(plan, trace)
        return trace

    # --- ending --------------------------------------------------------------------------------------------

    async def _fall_back(self) -> None:
        """Let the narrator of last resort speak after the last attempt, so that the player can go on."""
        # 000 §13.6.
        request = self._request(
            self.settings.generations, None, self.result.traces[-1] if self.result.traces else None
        )
        speaker, limit = self.settings.last_resort, self.settings.generation_timeout
        try:
            plan = await ask(speaker, request, limit)
        except (
            NarratoriaError
        ) as error:  # a narrator of the caller's own may fail; the turn ends all the same
            self.result.problems.append(str(error))
            speaker, plan = PLAIN, await PLAIN.plan(request)
        self.result.outcome = "fallback"
        self.result.narrator = speaker.name
        self.said = [plan.narrative or ""]

    def _close(self) -> None:
        session, result = self.session, self.result
        session.approvals.end_turn()
        calls = [one for trace in result.traces for one in trace.tool_results]
        completed = [one for one in calls if one.ok]
        declared = self._declared(result.narrator)
        result.narrative = narrative_of(
            completed,
            declared,
            said=self.said,
            told=self.told,
            plans=result.plans,
            name_of=self.executor.resolver.name_of,
            list_calls=self.settings.list_calls,
        )
        offer = offer_after(
            session,
            completed,
            [readable(one) for one in declared.choices if isinstance(one, str)],
            settled=result.outcome == "completed",
            taken=lambda choice: self.settings.takes_choice(self.asked, choice),
            failed=[one for one in calls if not one.ok],
        )
        if ending_of(session.state) is not None:
            offer = Choices(choices=[])  # the story is over: there is nothing left to choose
        result.choices = offer.choices
        attempt = result.plans[-1].metadata.generation_attempt if result.plans else 1
        session.record(Narration(text=result.narrative, narrator=result.narrator, attempt=attempt))
        session.record(offer)
        session.record(TurnCommitted(turn=result.turn, outcome=result.outcome))
        session.choices, session.standing = result.choices, offer.standing
        session.past.append((result.prompt, result.narrative))
        session.turn = None

    async def _write_down(self) -> None:
        """Record the plan in the journal before a tool acts: after a crash the same call is made under the same id."""
        if self.session.journal is not None:
            with contextlib.suppress(JournalError):  # the turn's end tries again, and tells the player
                await self.session.journal.flush()

    async def _save(self) -> None:
        if self.session.journal is None:
            return
        try:
            await self.session.journal.commit_turn()
        except JournalError as error:
            self.result.unsaved = str(error)
            self.session.notice(Notice(level="error", message=f"this turn could not be saved: {error}"))


def _in_short(recalled: RecalledMemory) -> RecalledMemory:
    text = recalled.text
    return recalled if len(text) <= SHORT else msgspec.structs.replace(recalled, text=f"{text[:SHORT]}…")


__all__ = ["Interrupted", "TurnResult", "TurnSettings", "card", "take_turn"]
