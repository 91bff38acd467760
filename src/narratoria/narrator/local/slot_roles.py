"""How well a phrase of a clause would stand in a slot: by its preposition, by what it names, by who gets what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from narratoria.narrator.english.dictation import is_telling
from narratoria.narrator.english.named_things import Entity, has_a_name, is_being, is_person
from narratoria.narrator.english.phrases import GIVES, Phrase, Reading
from narratoria.narrator.english.words import content_stems, word_set
from narratoria.narrator.local.filled_slots import Likeness
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

_WHITHER: Final = word_set("to into onto from in at on through towards toward")


def role_score(
    slot: Slot,
    phrase: Phrase,
    tool: ToolProfile,
    lead: Slot,
    reading: Reading,
    slots: Sequence[Slot],
    alike: Likeness,
) -> float:
    """How well `phrase` would stand in `slot`."""
    stems = content_stems(phrase.text)
    prep = _role(phrase, reading)
    score = 0.0
    if prep in slot.preps:
        score += 1.0
    elif prep in slot.hinted:
        score += 0.8
    elif not phrase.quoted and any(
        prep in other.preps | other.hinted for other in slots if other is not slot
    ):
        score -= 0.6
    if prep == "from" and prep not in slot.preps | slot.hinted and _says_whither(reading):
        score -= 1.0  # "from the pond to the shed": that is where it is now
    if slot is lead:
        score += 0.3 if not prep else 0.1
    elif len(slots) > 1 and slot.required:
        score += 0.1
    mention = phrase.mention
    if mention:
        score += 0.9 * mention.strength
        score += _suits(slot, mention.entity, slots)
        named = set(mention.entity.stems)
        if slot.words & named:
            score += 1.5
        elif mention.entity.holders & slot.words:
            score += 1.0
        elif any(other.words & named for other in slots):
            score -= 0.8  # a key goes into the slot called key, not into the one before it
    elif slot.words & stems:
        score += 0.3
    if slot.person and phrase.pronoun in ("it", "that", "this", "there"):
        score -= 1.0
    if phrase.quoted:
        score += 1.5 if slot.quoted else -0.6 if any(other.quoted for other in slots) else 0.2
    elif slot.quoted and not slot.clausal and not phrase.pronoun:
        whither = mention and prep in _WHITHER and prep not in slot.preps | slot.hinted
        plainly = is_telling(reading.verb) and not prep and not mention  # "say hello"
        score -= 1.5 if whither else 0.0 if plainly else 0.5  # "send Ada to the pump": the pump is no message
    if phrase.clausal:
        score += 0.8 if slot.clausal else 0.0 if prep == "about" else -0.2
    plain = not (mention or phrase.quoted or phrase.clausal or phrase.every)
    if plain and stems and stems <= tool.words:
        score -= 0.9  # "set a timer": the tool's own noun is no value
    score += _given_to(slot, phrase, reading, slots)
    if _is_the_tools_own(phrase, prep, slot, tool, reading, slots):
        score -= 2.0
    return score + 0.8 * alike(slot.text, phrase.text)


def _suits(slot: Slot, entity: Entity, slots: Sequence[Slot]) -> float:
    """Whether somebody is asked for, or something: a pump repairs nothing, and a guard is not given to an apple."""
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


def _says_whither(reading: Reading) -> bool:
    return any(phrase.prep in ("to", "into") and not phrase.clausal for phrase in reading.phrases)


def _role(phrase: Phrase, reading: Reading) -> str:
    """The preposition that counts: in "the lid of the chest" the chest stands where the lid does."""
    at = reading.phrases.index(phrase)
    if phrase.prep == "of" and at and not reading.phrases[at - 1].mention:
        return reading.phrases[at - 1].prep
    return phrase.prep
