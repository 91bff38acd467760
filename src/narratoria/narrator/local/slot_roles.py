"""The fit of a phrase and a slot: by its preposition, by what it names, by who gets what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from narratoria.narrator.english.dictation import is_telling
from narratoria.narrator.english.lexicon import words
from narratoria.narrator.english.named_things import Entity, has_a_name, is_being, is_person
from narratoria.narrator.english.noun_phrases import Phrase
from narratoria.narrator.english.phrases import GIVES, Reading
from narratoria.narrator.english.words import content_stems
from narratoria.narrator.local.filled_slots import Likeness
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

_WHITHER: Final = words("classes.whither")


@dataclass(frozen=True, slots=True)
class Roles:
    """Scores the phrases of a clause for the slots of a tool."""

    tool: ToolProfile
    reading: Reading
    slots: Sequence[Slot]  # of names or words
    lead: Slot  # the first that is required
    alike: Likeness

    def score(self, slot: Slot, phrase: Phrase) -> float:
        """The sum of all signs that a phrase belongs in a slot; below 0 it does not."""
        stems = content_stems(phrase.text)
        prep = phrase.prep
        score = self._by_preposition(slot, phrase, prep) + self._by_name(slot, phrase, stems)
        if slot is self.lead:
            score += 0.3 if not prep else 0.1
        elif len(self.slots) > 1 and slot.required:
            score += 0.1
        if slot.person and phrase.pronoun in ("it", "that", "this", "there"):
            score -= 1.0
        score += self._by_shape(slot, phrase, prep)
        plain = not (phrase.mention or phrase.quoted or phrase.clausal or phrase.every)
        if plain and stems and stems <= self.tool.words:
            score -= 0.9  # "set a timer": the tool's own noun is no value
        score += self._by_gift(slot, phrase) - 2.0 * self._is_the_tools_own(slot, phrase)
        return score + 0.8 * self.alike(slot.text, phrase.text)

    def _by_preposition(self, slot: Slot, phrase: Phrase, prep: str) -> float:
        if prep in slot.preps:
            return 1.0
        if prep in slot.hinted:
            return 0.8
        others = (other.preps | other.hinted for other in self.slots if other is not slot)
        return -0.6 if not phrase.quoted and any(prep in known for known in others) else 0.0

    def _by_name(self, slot: Slot, phrase: Phrase, stems: set[str]) -> float:
        mention = phrase.mention
        if mention is None:
            return 0.3 if slot.words & stems else 0.0
        score = 0.9 * mention.strength + _suits(slot, mention.entity, self.slots)
        named = set(mention.entity.stems)
        if slot.words & named:
            return score + 1.5
        if mention.entity.holders & slot.words:
            return score + 1.0
        # a key goes into the slot called key, not into the one before it
        return score - (0.8 if any(other.words & named for other in self.slots) else 0.0)

    def _by_shape(self, slot: Slot, phrase: Phrase, prep: str) -> float:
        """Whole clauses and quotations go where words are asked for, and names do not."""
        score = 0.0
        if phrase.quoted:
            score = 1.5 if slot.quoted else -0.6 if any(other.quoted for other in self.slots) else 0.2
        elif slot.quoted and not slot.clausal and not phrase.pronoun:
            whither = phrase.mention and prep in _WHITHER and prep not in slot.preps | slot.hinted
            plainly = is_telling(self.reading.verb) and not prep and not phrase.mention  # "say hello"
            score = -1.5 if whither else 0.0 if plainly else -0.5  # "send Ada to the pump": no message
        if phrase.clausal:
            score += 0.8 if slot.clausal else 0.0 if prep == "about" else -0.2
        return score

    def _by_gift(self, slot: Slot, phrase: Phrase) -> float:
        """ "give A B": A is who, B is what."""
        objects = self.reading.objects
        gives = self.reading.verb in GIVES and any(one.person for one in self.slots) and len(self.slots) > 1
        if not gives or len(objects) != 2 or objects[1].quoted or phrase not in objects:
            return 0.0
        if any(one.prep == "to" for one in self.reading.phrases):
            return 0.0
        return 0.6 if slot.person == (phrase is objects[0]) else -0.6

    def _is_the_tools_own(self, slot: Slot, phrase: Phrase) -> bool:
        """ "put the coin in the pot" where the tool puts something into the pot: the slot asks for the coin."""
        known = slot.preps | (slot.hinted if len(self.slots) > 1 else frozenset()) | {""}
        if not phrase.mention or phrase.prep in known or not self.reading.objects:
            return False
        return phrase.mention.entity.stems[-1] in self.tool.fixed - slot.words


def _suits(slot: Slot, entity: Entity, slots: Sequence[Slot]) -> float:
    """The fit of a thing and a slot that asks for somebody, or for something: a pump repairs nothing."""
    if slot.called:
        return 0.0 if has_a_name(entity) else -1.2
    if slot.person:
        being = is_being(entity)
        return 0.0 if being else -0.4 if being is None else -2.0
    return -0.6 if is_person(entity) and any(other.person and other.required for other in slots) else 0.0
