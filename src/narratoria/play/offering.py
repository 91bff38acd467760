"""The choices a player is offered after a turn, and the ending after which there are none."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from narratoria.events import Choices, StatePatch, UiEvent
from narratoria.run.plan import CallResult
from narratoria.session import Session

MAX_CHOICES: Final = 12


def offer_after(
    session: Session,
    completed: Collection[CallResult],
    hints: Sequence[str],
    *,
    settled: bool,
    taken: Callable[[str], bool],
    failed: Collection[CallResult] = (),
) -> Choices:
    """Return the choices after a turn with these completed and failed calls.

    Choices of tools stand until others are offered; only the one that was `taken` and changed the state is gone. The
    narrator's `hints` are for this moment: they pass with the next turn, unless that came to nothing (not `settled`).
    """
    if offered := choices_of(
        [*completed, *failed]
    ):  # 000 §13.4 rule 7: of all tools, whatever became of them
        return Choices(choices=in_their_order(offered, session.choices))
    standing = session.choices if session.standing is None else session.standing
    if any(isinstance(event, StatePatch) for one in completed for event in one.events):
        standing = [choice for choice in standing if not taken(choice)]
    if hints:
        return Choices(choices=list(hints), standing=list(standing))
    if not settled:
        return Choices(choices=list(session.choices), standing=session.standing)
    return Choices(choices=list(standing))


def in_their_order(offered: Sequence[str], before: Sequence[str]) -> list[str]:
    """Return the choices with those that were offered before in the order they had: a player looks for them there."""
    known = iter([choice for choice in before if choice in offered])
    return [next(known) if choice in before else choice for choice in offered]


def choices_of(results: Collection[CallResult]) -> list[str]:
    """Return the choices that tools offered, in order, each once; malformed ones are left out."""
    # 000 §4.4.
    found: dict[str, None] = {}
    for result in results:
        for event in result.events:
            if isinstance(event, UiEvent) and event.event == "narrative_choice":
                offered = (event.payload or {}).get("choices")
                for choice in offered if isinstance(offered, list) else ():
                    if isinstance(choice, str) and choice.strip():
                        found.setdefault(choice.strip())
    return list(found)[:MAX_CHOICES]


def same_words(one: str, other: str) -> bool:
    """Tell if two texts have the same words; case and punctuation do not count."""
    first, second = (
        re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()) for text in (one, other)
    )
    return first == second


def ending_of(state: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the (id, title) of the ending the story has come to: state `ending`, set by a rule or a tool."""
    ending = state.get("ending")
    if not isinstance(ending, Mapping) or not isinstance(ending.get("id"), str):
        return None
    title = ending.get("title")
    return ending["id"], title if isinstance(title, str) else ending["id"]
