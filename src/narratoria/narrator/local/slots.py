"""Fills the slots of a tool from a clause: with what it says, and where it says nothing from the context."""

from __future__ import annotations

from typing import Any, Final

from narratoria.narrator.english.phrases import Reading
from narratoria.narrator.english.words import STOPWORDS, split_name
from narratoria.narrator.local.choice_slots import fill_choice, fill_flag
from narratoria.narrator.local.filled_slots import GUESS, Filling, Likeness, Recent
from narratoria.narrator.local.name_slots import ANYTHING, fill_texts, left_out_of_a_gift, meant_by
from narratoria.narrator.local.number_slots import account_for_numbers, fill_numbers, fill_times
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

_CLEARLY: Final = 0.04  # how much likelier one choice must be than the next


def fill(tool: ToolProfile, reading: Reading, recent: Recent, alike: Likeness) -> Filling:
    """The slots of a tool as a clause fills them."""
    filling = Filling()
    for slot in tool.slots:
        if slot.kind == "choice":
            fill_choice(slot, reading, filling)
        elif slot.kind == "flag":
            fill_flag(slot, reading, filling)
    fill_times(tool.slots, reading, filling)
    fill_numbers(tool, reading, filling)
    fill_texts(tool, reading, recent, filling, alike)
    context = _Context(tool, reading, recent, filling, alike)
    for slot in tool.slots:
        if slot.name not in filling.input and slot.required:
            context.fill(slot)
        if slot.name not in filling.input and slot.required:
            filling.missing.append(slot.name)
    account_for_numbers(reading, filling)
    if tool.slots and not filling.unfit and (whom := left_out_of_a_gift(reading, tool, filling)):
        filling.unfit.append(f"I do not know how to do that for “{whom}”.")
    return filling


class _Context:
    """Fills a slot that the clause says nothing for: from what was said before, or by likeness."""

    def __init__(
        self, tool: ToolProfile, reading: Reading, recent: Recent, filling: Filling, alike: Likeness
    ) -> None:
        self.tool, self.reading, self.recent = tool, reading, recent
        self.filling, self.alike = filling, alike

    def fill(self, slot: Slot) -> None:
        if "default" in slot.schema:
            self.filling.put(slot, slot.schema["default"], GUESS)
        elif slot.kind == "choice":
            self._choose(slot)
        elif slot.kind == "flag":
            # Where the words for true and false are not used, doing what the tool is named for is true.
            self.filling.put(slot, True, GUESS)
        elif slot.kind == "text":
            self._name(slot)

    def _refer(self, slot: Slot, value: Any, strength: float) -> None:
        """Puts in what was spoken of before."""
        self.filling.put(slot, value, strength)
        self.filling.refers = True

    def _choose(self, slot: Slot) -> None:
        pronoun = next((phrase.pronoun for phrase in self.reading.phrases if phrase.pronoun), None) or ""
        last = next((value for value in reversed(self.recent.values) if value in slot.choices), None)
        if pronoun and last is not None:
            self._refer(slot, last, 0.9)
            return
        if self._has_stray_phrase():
            return  # "start the lawnmower" names a thing, and it is none of the choices
        if pronoun and len(slot.choices) > 1:
            return  # "open it", and nobody knows what
        if len(slot.choices) == 1:
            self.filling.put(slot, slot.choices[0], GUESS)
            return
        name, text = " ".join(split_name(self.tool.card.name)), self.reading.text
        likes = [(self.alike(f"{name} {value}", text), str(value), value) for value in slot.choices]
        likes.sort(key=lambda like: like[:2])
        if likes[-1][0] - likes[-2][0] > _CLEARLY:
            self.filling.put(slot, likes[-1][2], GUESS)

    def _name(self, slot: Slot) -> None:
        reading, recent, filling = self.reading, self.recent, self.filling
        owner = next((phrase.pronoun for phrase in reading.phrases if phrase.owner), None)
        if owner:  # "text his owner": whose is said before
            meant = meant_by(owner, slot, recent, filling, reading)
            if meant is not None:
                self._refer(slot, meant, 0.9)
        elif not reading.phrases and recent.things and len(reading.tokens) <= 2:
            self._refer(slot, recent.things[-1], GUESS)
        elif not slot.quoted and not filling.unfit:
            # "don't invite Ines to the concert, invite Farid": to what was said before
            several, taken = recent.of_kind(slot.words - ANYTHING), set(map(str, filling.input.values()))
            said = [thing for thing in recent.said if thing in several and thing not in taken]
            if said:
                self._refer(slot, said[-1], GUESS)

    def _has_stray_phrase(self) -> bool:
        """Tell if a phrase has a word that fills no slot and is not the tool's: "purple" in "purple alert"."""
        return any(
            index not in self.filling.used
            and self.reading.stems[index] not in self.tool.words
            and self.reading.tokens[index].low not in STOPWORDS
            for phrase in self.reading.phrases
            if not phrase.pronoun
            for index in range(phrase.start, phrase.end)
        )
