"""Fills the slots of a tool from a clause: with what it says, and where it says nothing from the context."""

from __future__ import annotations

from typing import Any, Final

from narratoria.narrator.english.phrases import Reading
from narratoria.narrator.english.words import STOPWORDS, split_name
from narratoria.narrator.local.choice_slots import fill_choice, fill_flag
from narratoria.narrator.local.filled_slots import GUESS, WORDS, Filling, Likeness, Recent
from narratoria.narrator.local.name_slots import fill_texts
from narratoria.narrator.local.number_slots import account_for_numbers, fill_numbers, fill_times
from narratoria.narrator.local.pronouns import (
    ANYTHING,
    left_out_of_a_gift,
    meant_by,
    meant_together,
    nobody_meant,
    stray_somebody,
)
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

_SAYS_THE_SAME: Final = 0.8


def fill(tool: ToolProfile, reading: Reading, recent: Recent, alike: Likeness) -> Filling:
    filling = Filling()
    for slot in tool.slots:
        if slot.kind == "choice":
            fill_choice(slot, reading, filling)
        elif slot.kind == "flag":
            fill_flag(slot, reading, filling)
    fill_times(tool.slots, reading, filling)
    fill_numbers(tool, reading, filling)
    fill_texts(tool, reading, recent, filling, alike)
    for slot in tool.slots:
        if slot.name not in filling.input and slot.required:
            _fill_from_context(slot, tool, reading, recent, filling, alike)
        if slot.name not in filling.input and slot.required:
            filling.missing.append(slot.name)
    account_for_numbers(reading, filling)
    if tool.slots and not filling.unfit and (whom := stray_somebody(reading, recent, filling.used)):
        filling.unfit.append(nobody_meant(whom))  # "give him the apple" is not to take it
    if tool.slots and not filling.unfit and (whom := left_out_of_a_gift(reading, tool, filling)):
        filling.unfit.append(f"I do not know how to do that for “{whom}”.")
    return filling


def _fill_from_context(
    slot: Slot, tool: ToolProfile, reading: Reading, recent: Recent, filling: Filling, alike: Likeness
) -> None:
    if "default" in slot.schema:
        filling.put(slot, slot.schema["default"], GUESS)
        return
    pronoun = any(phrase.pronoun for phrase in reading.phrases)
    if slot.kind in ("choice", "flag") and (shown := _shown(slot, tool, reading, alike)) is not None:
        filling.put(slot, shown, WORDS)
    elif slot.kind == "choice":
        them = next((p.pronoun for p in reading.phrases if p.pronoun), None) or ""
        listed = [v for v in meant_together(them, slot, recent, filling, reading) if v in slot.choices]
        if len(listed) > 1:
            filling.put(slot, listed[0], 0.9)
            filling.lists[slot.name] = list(listed)
            filling.refers = True
            return
        for value in reversed(recent.values):
            if pronoun and value in slot.choices:
                filling.put(slot, value, 0.9)
                filling.refers = True
                return
        if _has_stray_phrase(tool, reading, filling):
            return  # "start the lawnmower" names a thing, and it is none of the choices
        if pronoun and len(slot.choices) > 1 and not _says_more(reading):
            return  # "open it", and nobody knows what: "make it louder" says more
        if len(slot.choices) == 1:
            filling.put(slot, slot.choices[0], GUESS)
            return
        name = " ".join(split_name(tool.card.name))
        likes = sorted(
            ((alike(f"{name} {value}", reading.text), str(value), value) for value in slot.choices),
            key=lambda x: x[:2],
        )
        if len(likes) > 1 and likes[-1][0] - likes[-2][0] > 0.04:
            filling.put(slot, likes[-1][2], GUESS)
    elif slot.kind == "flag":
        # Where the words for true and false are not used, doing what the tool is named for is true.
        filling.put(slot, True, GUESS)
    elif slot.kind == "text" and (owner := next((p.pronoun for p in reading.phrases if p.owner), None)):
        together = meant_together(owner, slot, recent, filling, reading)
        meant = together[0] if together else meant_by(owner, slot, recent, filling, reading)
        if meant is not None:  # "text his owner": whose is said before
            filling.put(slot, meant, 0.9)
            filling.refers = True
        if together:
            filling.lists[slot.name] = list(together)
    elif slot.kind == "text" and not reading.phrases and recent.things and len(reading.tokens) <= 2:
        filling.put(slot, recent.things[-1], GUESS)
        filling.refers = True
    elif slot.kind == "text" and not slot.quoted and (several := recent.of_kind(slot.words - ANYTHING)):
        # "don't invite Ines to the concert, invite Farid": to what was said before
        taken = set(map(str, filling.input.values()))
        said = [thing for thing in recent.said if thing in several and thing not in taken]
        if said and not filling.unfit:
            filling.put(slot, said[-1], GUESS)
            filling.refers = True


def _shown(slot: Slot, tool: ToolProfile, reading: Reading, alike: Likeness) -> Any:
    """What an example that says the same fills this slot with: "furl the sails" says how much sail."""
    likes = [
        (alike(text, reading.text), values[slot.name])
        for text, values in tool.examples
        if slot.name in values
    ]
    best = max(likes, key=lambda like: like[0], default=(0.0, None))
    return best[1] if best[0] > _SAYS_THE_SAME else None


def _says_more(reading: Reading) -> bool:
    """Whether a clause has any word of its own beside the verb and its particle."""
    said = {token.low for token in reading.tokens} - STOPWORDS - {reading.verb, reading.particle}
    return any(word[0].isalnum() for word in said)


def _has_stray_phrase(tool: ToolProfile, reading: Reading, filling: Filling) -> bool:
    """A phrase with a word that neither fills a slot nor belongs to the tool: "purple" in "purple alert"."""
    return any(
        index not in filling.used
        and reading.stems[index] not in tool.words
        and reading.tokens[index].low not in STOPWORDS
        for phrase in reading.phrases
        if not phrase.pronoun
        for index in range(phrase.start, phrase.end)
    )
