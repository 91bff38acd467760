"""After the calls: the narration is held to the state, and told again where it claims what is not so."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from narratoria.narrator.ledger import Ledger
from narratoria.narrator.protocol import Narrator, NarratorRequest, NoMatch
from narratoria.narrator.receipts import Receipt, audit, contradictions
from narratoria.plan import ExecutionResult


@runtime_checkable
class Reteller(Protocol):
    """A narrator that can tell a thing again when it is shown to be wrong."""

    async def retell(self, request: NarratorRequest, narrative: str, objections: Sequence[str]) -> str: ...


@dataclasses.dataclass(frozen=True, slots=True)
class Told:
    """The narration as it stands, its receipts, and what was wrong with it on the way."""

    narrative: str
    receipts: list[Receipt]
    objections: list[str]  # to what was told first
    retold: bool = False
    failure: str = ""  # why it could not be told again


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
    """Judge the narration against the state after the calls; a narrator that can is asked once to mend it."""
    receipts = audit(narrative, request.state, before=before, trace=trace, ledger=ledger)
    objections = contradictions(receipts)
    if not objections or not isinstance(narrator, Reteller):
        return Told(narrative, receipts, objections)
    quietly = dataclasses.replace(request, say=lambda text: None)  # the first telling was heard already
    try:
        async with asyncio.timeout(time_limit):
            retold = await narrator.retell(quietly, narrative, objections)
    except NoMatch:  # a chain whose speaker cannot
        return Told(narrative, receipts, objections)
    except TimeoutError:
        return Told(narrative, receipts, objections, failure=f"not told again within {time_limit:g} s")
    except Exception as error:  # a narrator is foreign code; the first telling stands, with its flags
        return Told(
            narrative, receipts, objections, failure=f"not told again: {type(error).__name__}: {error}"
        )
    return Told(retold, audit(retold, request.state, trace=trace, ledger=ledger), objections, retold=True)
