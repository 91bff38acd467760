"""The fit of a phrase and a slot: by its preposition, by what it names, by who gets what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from narratoria.narrator.english.dictation import is_telling
from narratoria.narrator.english.named_things import Entity, has_a_name, is_being, is_person
from narratoria.narrator.english.noun_phrases import Phrase
from narratoria.narrator.english.phrases import GIVES, Reading
from narratoria.narrator.english.words import content_stems, word_set
from narratoria.narrator.local.filled_slots import Likeness
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

_WHITHER: Final = word_set("to into onto from in at on through towards toward")


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
        prep = _role(phrase, self.reading)
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
        score += _given_to(slot, phrase, self.reading, self.slots)
        if _is_the_tools_own(phrase, prep, slot, self.tool, self.reading, self.slots):
            score -= 2.0
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


def _suits(slot: Slot, entity: Entity, slots: Sequence[Slot]) -> float:
    """The fit of a thing and a slot that asks for somebody, or for something: a pump repairs nothing."""
    if slot.called:
        return 0.0 if has_a_name(entity) else -1.2
    if slot.person:
        being = is_being(entity)
        return 0.0 if being else -0.4 if being is None else -2.0
    return -0.6 if is_person(entity) and any(other.person and other.required for other in slots) else 0.0


def _given_to(slot: Slot, phrase: Phrase, reading: Reading, slots: Sequence[Slot]) -> float:
    """ "give A B": A is who, B is what."""
    if reading.verb not in GIVES or not any(other.person for other in slots) or len(slots) < 2:
        return 0.0
    objects = [one for one in reading.phrases if not (one.prep or one.owner or one.joined or one.clausal)]
    if len(objects) != 2 or objects[1].quoted or any(one.prep == "to" for one in reading.phrases):
        return 0.0
    first = phrase is objects[0]
    return 0.0 if not first and phrase is not objects[1] else 0.6 if slot.person == first else -0.6


def _is_the_tools_own(
    phrase: Phrase, prep: str, slot: Slot, tool: ToolProfile, reading: Reading, slots: Sequence[Slot]
) -> bool:
    """ "put the coin in the pot" where the tool puts something into the pot: the slot asks for the coin."""
    known = slot.preps | (slot.hinted if len(slots) > 1 else frozenset()) | {""}
    if not phrase.mention or prep in known or phrase.mention.entity.stems[-1] not in tool.fixed - slot.words:
        return False
    return any(not one.prep and not one.owner and not one.clausal for one in reading.phrases)


def _role(phrase: Phrase, reading: Reading) -> str:
    """The preposition that counts: in "the lid of the chest" the chest stands where the lid does."""
    at = reading.phrases.index(phrase)
    if phrase.prep == "of" and at and not reading.phrases[at - 1].mention:
        return reading.phrases[at - 1].prep
    return phrase.prep
