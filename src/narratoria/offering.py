"""What the player is offered after a turn."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from narratoria.events import Choices, StatePatch, UiEvent
from narratoria.narrator.rules.patterns import ENGLISH, readings
from narratoria.plan import CallResult
from narratoria.session import Session

MAX_CHOICES: Final = 12


def offer_after(
    session: Session,
    prompt: str,
    completed: Collection[CallResult],
    hints: Sequence[str],
    *,
    settled: bool,
    failed: Collection[CallResult] = (),
) -> Choices:
    """What tools offer stands until others are offered, so that nobody is stranded; only the choice that was taken and
    did its work is gone. What a narrator offers, in a refusal above all, is for this moment and passes with it, unless
    the next turn came to nothing (not `settled`)."""
    if offered := choices_of(
        [*completed, *failed]
    ):  # 000 §13.4 rule 7: of all tools, whatever became of them
        return Choices(choices=offered)
    standing = session.choices if session.standing is None else session.standing
    if any(isinstance(event, StatePatch) for one in completed for event in one.events):
        said = set(readings(prompt, ENGLISH))
        standing = [choice for choice in standing if said.isdisjoint(readings(choice, ENGLISH))]
    if hints:
        return Choices(choices=list(hints), standing=list(standing))
    if not settled:
        return Choices(choices=list(session.choices), standing=session.standing)
    return Choices(choices=list(standing))


def choices_of(results: Collection[CallResult]) -> list[str]:
    """000 §4.4: the choices tools offered, in order, each once; malformed ones are left out."""
    found: dict[str, None] = {}
    for result in results:
        for event in result.events:
            if isinstance(event, UiEvent) and event.event == "narrative_choice":
                offered = (event.payload or {}).get("choices")
                for choice in offered if isinstance(offered, list) else ():
                    if isinstance(choice, str) and choice.strip():
                        found.setdefault(choice.strip())
    return list(found)[:MAX_CHOICES]
