"""The fact check: a wrapper that holds a narrator's words against the state, and has them told again where wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final, Literal

from narratoria.errors import PlanRejected
from narratoria.events import Done, Notice
from narratoria.factcheck.patch_ledger import Ledger
from narratoria.factcheck.receipts import CheckedClaim, audit, audit_summaries, contradictions, judged
from narratoria.narrator.invocation import retold_by
from narratoria.narrator.protocol import (
    Declaration,
    Learner,
    Narrator,
    NarratorRequest,
    NoMatch,
    Reteller,
    Review,
    declaration_of,
)
from narratoria.narrator.template import TemplateNarrator
from narratoria.run.plan import ExecutionResult, PlanDocument
from narratoria.tools.cancellation import TooSlow

CONTRADICTION: Final = "NARRATION_CONTRADICTS_STATE"
DROPPED: Final = (
    "The narrator's words did not agree with what happened; what was done is told plainly instead."
)


class FactChecked:
    """A narrator and the fact check of its narration.

    A narration without calls changes nothing, so a narrator that can plan again hears of contradictions while it plans
    (`request.check`). After the calls, one that can retell is asked to, as often as the turn has generations left; what
    it cannot mend is dropped. An author's words stand, flagged in the trace. So do the tools' own.
    """

    def __init__(
        self, narrator: Narrator, ledger: Ledger | None = None, last_resort: Narrator | None = None
    ) -> None:
        """`ledger` knows which patch made which fact, for the receipts. `last_resort` speaks for dropped words."""
        self._narrator, self._last_resort = narrator, last_resort or TemplateNarrator()
        self._ledger = ledger
        self._before: Sequence[CheckedClaim] = ()  # the claims of the last plan, judged before its calls

    @property
    def name(self) -> str:
        """The name of the narrator inside."""
        return self._narrator.name

    def declare(self, speaker: str = "") -> Declaration:
        """Return what the narrator inside declares of itself."""
        return declaration_of(self._narrator, speaker)

    def learns_from(self, error: BaseException) -> bool:
        """Tell if the narrator inside wants to hear of an error."""
        return isinstance(self._narrator, Learner) and self._narrator.learns_from(error)

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        """Return the plan of the narrator inside."""

        def objections(plan: PlanDocument) -> list[str]:
            return contradictions(judged(plan.narrative or "", request.state))

        plan = await self._narrator.plan(dataclasses.replace(request, check=objections))
        self._before = judged(plan.narrative or "", request.state)
        return plan

    async def review(
        self,
        request: NarratorRequest,
        plan: PlanDocument | None,
        traces: Sequence[ExecutionResult],
        seconds: float,
    ) -> Review:
        """Hold the narration and the tools' summaries against the state after the calls."""
        checked = _Checked(plan.narrative or "" if plan is not None else "")
        if checked.narrative:
            checked = await self._hold_to_state(request, checked.narrative, seconds)
        problems, notices = [*checked.objections, *checked.failures], list[Notice]()
        if checked.objections:
            detail = "; ".join([*problems, checked.ending])
            # For the trace. An author's words are the author's concern; the player hears when a model's are gone.
            notices.append(_notice("info", f"the narration contradicted the state: {detail}"))
            if checked.dropped:
                notices.append(_notice("warn", DROPPED))
        stated = {receipt.claim for receipt in checked.receipts}
        found = audit_summaries(_summaries(traces), request.state, traces=traces, ledger=self._ledger)
        of_tools = [receipt for receipt in found if receipt.claim not in stated]
        if objections := contradictions(of_tools):
            problems += objections
            detail = "; ".join([*objections, "they stand as they are"])
            notices.append(_notice("info", f"a tool's own words contradicted the state: {detail}"))
        narrative = None
        if checked.retold or checked.dropped:
            acted = any(result.ok for trace in traces for result in trace.tool_results)
            plain = dataclasses.replace(request, parent_plan=None, last_trace=None)
            told = "" if acted or checked.narrative else (await self._last_resort.plan(plain)).narrative
            narrative = checked.narrative or told
        return Review(narrative, [*checked.receipts, *of_tools], problems, notices)

    async def _hold_to_state(self, request: NarratorRequest, narrative: str, seconds: float) -> _Checked:
        trace, ledger, narrator = request.last_trace, self._ledger, self._narrator
        receipts = audit(narrative, request.state, before=self._before, trace=trace, ledger=ledger)
        first = contradictions(receipts)
        if not first or not isinstance(narrator, Reteller):
            return _Checked(narrative, receipts, first)
        quietly = dataclasses.replace(request, say=lambda text: None)  # the first telling was heard already
        words, objections, failures = narrative, first, list[str]()
        for _ in range(request.attempt, request.generations):
            try:
                words = await retold_by(narrator, quietly, words, objections, seconds)
            except NoMatch:  # a chain whose speaker cannot
                return _Checked(narrative, receipts, first)
            except TooSlow as error:
                failures.append(f"not told again {error}")
                break
            except Exception as error:  # foreign code: what it raises costs its words, not the turn
                failures.append(f"not told again: {error or type(error).__name__}")
                if not isinstance(error, PlanRejected) and not self.learns_from(error):
                    break
                continue
            receipts = audit(words, request.state, trace=trace, ledger=ledger)
            objections = contradictions(receipts)
            if not objections:
                return _Checked(words, receipts, first, failures, retold=True)
            failures.append(f"told again, and still not so: {'; '.join(objections)}")
        return _Checked("", [], first, failures, dropped=True)


@dataclasses.dataclass(frozen=True, slots=True)
class _Checked:
    """A narration as it stands, its receipts, and the objections to it on the way."""

    narrative: str
    receipts: Sequence[CheckedClaim] = ()
    objections: Sequence[str] = ()  # to the first version
    failures: Sequence[str] = ()  # of the attempts to tell it again
    retold: bool = False
    dropped: bool = False

    @property
    def ending(self) -> str:
        dropped = "it was dropped" if self.dropped else "it stands as it is"
        return "it was told again" if self.retold else dropped


def _notice(level: Literal["info", "warn"], message: str) -> Notice:
    return Notice(level=level, code=CONTRADICTION, message=message)


def _summaries(traces: Sequence[ExecutionResult]) -> str:
    """The summaries of the calls that completed, as paragraphs."""
    completed = [result for trace in traces for result in trace.tool_results if result.ok]
    ends = [
        next((one for one in reversed(each.events) if isinstance(one, Done) and one.ok), None)
        for each in completed
    ]
    return "\n\n".join(end.summary for end in ends if end is not None and end.summary)
