"""After the calls: the narration is held to the state, and told again where it claims what is not so."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from narratoria.errors import PlanRejected
from narratoria.factcheck.patch_ledger import Ledger
from narratoria.factcheck.receipts import Receipt, audit, contradictions
from narratoria.narrator.protocol import Learner, Narrator, NarratorRequest, NoMatch
from narratoria.plan import ExecutionResult


@runtime_checkable
class Reteller(Protocol):
    """A narrator that can tell a thing again when it is shown to be wrong."""

    async def retell(self, request: NarratorRequest, narrative: str, objections: Sequence[str]) -> str: ...


@dataclasses.dataclass(frozen=True, slots=True)
class Told:
    """The narration as it stands, its receipts, and what was wrong with it on the way."""

    narrative: str  # empty where nothing of it could be kept
    receipts: list[Receipt]
    objections: list[str]  # to what was told first
    retold: bool = False
    failures: list[str] = dataclasses.field(default_factory=list)  # of telling it again

    @property
    def dropped(self) -> bool:
        return not self.narrative


async def hold_to_state(
    narrator: Narrator,
    request: NarratorRequest,
    narrative: str,
    *,
    before: Sequence[Receipt],
    trace: ExecutionResult,
    ledger: Ledger | None = None,
    time_limit: float,
) -> Told:
    """Judge the narration against the state after the calls. A narrator that can is asked to mend it, as often as the
    turn has generations left; what it cannot mend is dropped, for it is not so. An author's words stand, flagged."""
    receipts = audit(narrative, request.state, before=before, trace=trace, ledger=ledger)
    first = contradictions(receipts)
    if not first or not isinstance(narrator, Reteller):
        return Told(narrative, receipts, first)
    quietly = dataclasses.replace(request, say=lambda text: None)  # the first telling was heard already
    words, objections, failures = narrative, first, list[str]()
    for _ in range(request.attempt, request.generations):
        try:
            async with asyncio.timeout(time_limit):
                words = await narrator.retell(quietly, words, objections)
        except NoMatch:  # a chain whose speaker cannot
            return Told(narrative, receipts, first)
        except TimeoutError:
            failures.append(f"not told again within {time_limit:g} s")
            break
        except Exception as error:  # a narrator is foreign code: what it raises costs its words, not the turn
            failures.append(f"not told again: {error or type(error).__name__}")
            if not _is_mendable(narrator, error):
                break
            continue
        receipts = audit(words, request.state, trace=trace, ledger=ledger)
        objections = contradictions(receipts)
        if not objections:
            return Told(words, receipts, first, retold=True, failures=failures)
        failures.append(f"told again, and still not so: {'; '.join(objections)}")
    return Told("", [], first, failures=failures)


def _is_mendable(narrator: Narrator, error: Exception) -> bool:
    return isinstance(error, PlanRejected) or (isinstance(narrator, Learner) and narrator.learns_from(error))
