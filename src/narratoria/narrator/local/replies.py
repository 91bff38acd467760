"""The answers of the local narrator: a plan, or words about what it did not understand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from narratoria.narrator.english.clauses import Clause
from narratoria.narrator.english.mood import Mood
from narratoria.narrator.english.words import NOUNISH, VERBS, split_name
from narratoria.narrator.local.tool_matching import Candidate

WHICH: Final = "Which of the two do you mean?"
CONDITION: Final = "I cannot tell whether that is so. Say what is to be done, and I will do it."
CUT: Final = "That was more than I can take in at once: what comes last is left undone."
TOO_LONG: Final = "That is more than I can take in at once. Say it in shorter requests, one after the other."
UNKNOWN: Final = "I don't know how to do that here."
_BACK: Final = {
    "i": "you",
    "me": "you",
    "my": "your",
    "myself": "yourself",
    "we": "you",
    "our": "your",
    "us": "you",
}


def not_understood(clause: Clause) -> str:
    """Says the clause back to the player: "my" becomes "your" where it is an order, else it is quoted."""
    first = clause.tokens[0].low
    if clause.mood is Mood.ORDER and (first in VERBS or first in NOUNISH):
        words = [first, *(_BACK.get(token.low, token.text) for token in clause.tokens[1:])]
        return f"I don't know how to {_shortened(words)} here."
    return f"I don't know what to do about “{_shortened([token.text for token in clause.tokens])}” here."


def _shortened(words: Sequence[str]) -> str:
    text = re.sub(r" (?=[,.!?;:%])", "", " ".join(words))
    return text if len(text) <= 60 else text[:57] + "…"


def what_is_wanting(candidate: Candidate) -> str:
    """The reason why a tool that was meant is not called."""
    if candidate.filling.unfit:
        return candidate.filling.unfit[0]
    slot = next((s for s in candidate.tool.slots if s.name in candidate.filling.missing), None)
    if slot is None:
        return UNKNOWN
    what = str(slot.schema.get("description") or " ".join(split_name(slot.name)))
    return f"For that, I need to know more: {what.rstrip('.?')}?"


def quoted_after_colon(prompt: str) -> tuple[str, str] | None:
    """ "note on R-12: check the leader" with what follows the colon in quotation marks; None without a colon."""
    head, colon, tail = prompt.partition(": ")
    text = tail.strip()
    if not colon or not head.strip() or not text or '"' in text or "“" in text:
        return None
    return f'{head} "{text}"', text
