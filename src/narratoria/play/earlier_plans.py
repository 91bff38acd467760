"""The plans a turn has made so far: their ids, the one that the next plan replaces, and those not worth repeating."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from narratoria.errors import INVALID_ARGUMENTS, REFUSED, PlanRejected
from narratoria.narrator.invocation import readable
from narratoria.play.disabled_skills import Skills
from narratoria.run.plan import CallResult, ExecutionResult, PlanDocument, PlannedCall
from narratoria.run.plan_references import FROM, LITERAL

_REASON: Final = 200  # characters of a failure that a rejection repeats


class FutileCall(NamedTuple):
    """A call that failed for its arguments, or that a person refused."""

    tool_path: str
    reason: str


class EarlierPlans:
    """The plans of a turn so far. `problems` say why the last one was rejected; it ran where there are none."""

    def __init__(self, skills: Skills) -> None:
        self.skills = skills
        self.ids: set[str] = set()
        self.parent: PlanDocument | None = None
        self.parent_id: str | None = None
        self.problems: tuple[str, ...] = ()
        self._futile: dict[bytes, FutileCall] = {}  # by the calls of their plan

    def recall(
        self,
        ids: Iterable[str],
        parent_id: str | None,
        futile: Iterable[tuple[PlanDocument, FutileCall]],
        problems: tuple[str, ...],
    ) -> None:
        """Take up what the records of an interrupted turn say of its plans."""
        self.ids.update(ids)
        self.parent_id = parent_id
        self.problems = problems
        for plan, failure in futile:
            self._remember(plan, failure)

    def own_id(self, wanted: str, attempt: int) -> str:
        """Return an id that no plan of this turn has: the wanted one, or one made of it.

        Records, undo and tools know a call by the id of its plan and its own.
        """
        wanted = readable(str(wanted))  # a narrator in Python may put anything into one
        found, number = wanted, attempt
        while found in self.ids:
            found, number = f"{wanted}~{number}", number + 1
        self.ids.add(found)
        return found

    def replace(self, plan: PlanDocument | None, plan_id: str) -> None:
        """Make the next plan replace this one, which failed or was rejected."""
        # 000 §13.6: `parentPlanId`.
        self.parent, self.parent_id = plan, plan_id

    def note(self, plan: PlanDocument, trace: ExecutionResult) -> None:
        """Take note of a plan that failed: the next one replaces it, and does not repeat wrong arguments."""
        self.replace(plan, plan.request_id)
        for call, result in zip(plan.tools, trace.tool_results, strict=True):
            if is_futile(call, result):
                self._remember(plan, FutileCall(call.tool_path, result.error or ""))

    def _remember(self, plan: PlanDocument, failure: FutileCall) -> None:
        self._futile.setdefault(self._calls_of(plan), failure)

    def check(self, plan: PlanDocument) -> None:
        """Refuse a plan whose calls failed for their arguments before, or were refused by a person. A narrator that
        repeats it knows no better, and is no longer offered the tool.
        """
        failure = self._futile.get(self._calls_of(plan)) if self._futile else None
        if failure is not None:
            self.skills.avoid(failure.tool_path)
            reason = failure.reason[:_REASON]
            raise PlanRejected(
                [f"$.tools: the same calls failed before in this turn ({reason}); correct their input"]
            )

    def _calls_of(self, plan: PlanDocument) -> bytes:
        """Return what a plan does, without the names it has for it: ids, words and retries."""
        numbers = {call.tool_id: index for index, call in enumerate(plan.tools)}
        return msgspec.json.encode(
            [
                (
                    self.skills.resolver.name_of(call.tool_path),
                    _numbered(call.input, numbers),
                    sorted(numbers[one] for one in call.dependencies),
                    call.required,
                )
                for call in plan.tools
            ],
            order="deterministic",
        )


def is_futile(call: PlannedCall, result: CallResult) -> bool:
    """Tell if a call failed for its arguments, or was refused by a person, and its plan with it."""
    return call.required and not result.ok and result.verdict in (INVALID_ARGUMENTS, REFUSED)


def _numbered(value: Any, numbers: Mapping[str, int]) -> Any:
    """Return an input with the calls that it refers to by their numbers. It was checked, so it is not too deep."""
    if isinstance(value, dict):
        if LITERAL in value:
            return value
        if FROM in value:
            return {**value, FROM: numbers.get(value[FROM])}
        return {key: _numbered(item, numbers) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbered(item, numbers) for item in value]
    return value
