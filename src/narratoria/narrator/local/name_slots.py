"""Fills the slots of names and words with the phrases of a clause, each where it fits best."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from narratoria.narrator.english.lexicon import words
from narratoria.narrator.english.named_things import is_being
from narratoria.narrator.english.noun_phrases import EVERYTHING, Phrase
from narratoria.narrator.english.phrases import GIVES, Reading
from narratoria.narrator.english.words import STOPWORDS, stem, stems_of
from narratoria.narrator.local.filled_slots import GUESS, KNOWN, WORDS, Filling, Likeness, Recent
from narratoria.narrator.local.slot_roles import Roles
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

ANYTHING: Final = stems_of("tools.anything")  # kinds of no kind
_SOMEBODY: Final = words("classes.somebody")
_LEAST: Final = 0.95  # what a phrase must score to fill a slot that is optional


def fill_texts(
    tool: ToolProfile, reading: Reading, recent: Recent, filling: Filling, alike: Likeness
) -> None:
    """Fills every slot of names or words that a phrase of the clause fits."""
    if any(slot.kind in ("text", "texts") for slot in tool.slots):
        _TextFiller(tool, reading, recent, filling, alike).fill()


class _Offer(NamedTuple):
    """A phrase that may stand in a slot."""

    score: float
    place: int  # the earlier phrase first
    slot: Slot
    phrase: Phrase


class _TextFiller:
    """The phrases of one clause on their way into the slots of one tool."""

    def __init__(
        self, tool: ToolProfile, reading: Reading, recent: Recent, filling: Filling, alike: Likeness
    ) -> None:
        self.tool, self.recent, self.filling = tool, recent, filling
        self.reading = reading
        self.slots = [slot for slot in tool.slots if slot.kind in ("text", "texts")]
        self.lead = next((slot for slot in self.slots if slot.required), self.slots[0])
        self.phrases = [phrase for phrase in reading.phrases if not _spoken_for(phrase, reading, filling)]
        self.roles = Roles(tool, reading, self.slots, self.lead, alike)
        self.taken: list[Phrase] = []
        self.chosen: dict[str, Phrase] = {}
        self.unknown: list[tuple[Slot, Phrase]] = []  # phrases that fit a slot but name nothing it may hold

    def fill(self) -> None:
        offers = [
            _Offer(self.roles.score(slot, phrase), -index, slot, phrase)
            for slot in self.slots
            for index, phrase in enumerate(self.phrases)
            if not phrase.owner
        ]
        for offer in sorted(offers, key=lambda offer: offer[:2], reverse=True):
            if self._is_open(offer):
                self._place(offer.slot, offer.phrase)
        for slot in self.slots:
            if slot.kind == "text" and slot.name in self.chosen:
                self._follow_list(slot, self.chosen[slot.name])
        self._fill_the_other()
        self._restore_order({(offer.slot.name, id(offer.phrase)): offer.score for offer in offers})
        for slot, phrase in self.unknown:
            if slot.name not in self.filling.input and not self._is_taken(phrase):
                self.filling.unfit.append(f"I know of no {phrase.text} here.")

    def _is_taken(self, phrase: Phrase) -> bool:
        return any(phrase is other for other in self.taken)

    def _is_open(self, offer: _Offer) -> bool:
        """Tell if a slot may still take a phrase, and the phrase fits well enough."""
        score, _, slot, phrase = offer
        if slot.name in self.filling.input or self._is_taken(phrase):
            return False
        if score < (0.0 if slot.required else _LEAST) or (phrase.joined and not slot.required):
            return False
        # "radio Ada and Ben": who is listed with her is no message to her
        return not (slot.quoted and phrase.joined and not phrase.quoted)

    def _place(self, slot: Slot, phrase: Phrase) -> None:
        """Puts a phrase into a slot, unless it names nothing that the slot may hold."""
        value, strength = self._value(phrase, slot)
        if value is None:
            return
        stranger = slot.person and not slot.called and bool(self.recent.people) and not _is_known(phrase)
        if not phrase.pronoun and (stranger or not is_of_its_kind(slot, value, self.recent)):
            self.unknown.append((slot, phrase))
            return
        if any(value == other for other in self.filling.input.values()):
            return
        self.taken.append(phrase)
        if slot.quoted and strength == WORDS and not (slot.clausal and phrase.clausal):
            strength = GUESS  # words to be said belong in quotation marks
        held = [value] if slot.kind == "texts" else value
        self.filling.put(slot, held, strength, _spoken(phrase, self.reading))
        self.filling.refers |= phrase.pronoun is not None
        self.chosen[slot.name] = phrase
        if slot.kind == "texts":
            self._follow_list(slot, phrase)

    def _fill_the_other(self) -> None:
        """ "feed Rex some fish": the one object left over is the one thing more that may be said."""
        slots = [slot for slot in self.slots if slot.name not in self.filling.input and slot.kind == "text"]
        left = [
            phrase
            for phrase in self.phrases
            if not (phrase.owner or phrase.clausal or self._is_taken(phrase))
        ]
        if len(slots) != 1 or len(left) != 1 or not self.taken or slots[0].quoted or slots[0].required:
            return
        slot, phrase = slots[0], left[0]
        if phrase.joined or phrase.prep not in slot.preps | slot.hinted | {""}:
            return
        value, strength = self._value(phrase, slot)
        known = value is not None and is_of_its_kind(slot, value, self.recent)
        if known and value not in self.filling.input.values():
            self.filling.put(slot, value, strength, _spoken(phrase, self.reading))
            self.taken.append(phrase)

    def _restore_order(self, scores: dict[tuple[str, int], float]) -> None:
        """Gives the first of two slots that would take either what is said first: "compare A with B"."""
        filled = [slot for slot in self.slots if slot.required and slot.name in self.chosen]
        for first, second in pairwise(filled):
            one, other = self.chosen[first.name], self.chosen[second.name]
            if one.start < other.start or one.quoted or other.quoted:
                continue
            now = scores[first.name, id(one)] + scores[second.name, id(other)]
            swapped = scores[first.name, id(other)] + scores[second.name, id(one)]
            if now - swapped < 0.4:
                for values in (self.filling.input, self.filling.strength):
                    values[first.name], values[second.name] = values[second.name], values[first.name]

    # --- lists ----------------------------------------------------------------------------------------------

    def _follow_list(self, slot: Slot, phrase: Phrase) -> None:
        """Adds the other members of the list that `phrase` is in: "the cup, the rope and the bread"."""
        members = self._members(phrase)
        between = self.reading.tokens[members[0].end : members[-1].start] if members else ()
        undecided = any(token.low == "or" for token in between)
        if undecided and self.reading.body:  # a question is answered for both
            named = " or ".join(member.text for member in members)
            self.filling.unfit.append(f"Which of them do you mean: {named}?")
            return
        several = self._all_of(phrase, slot) if phrase.every else ()
        if not several and phrase.pronoun:
            several = meant_together(phrase.pronoun, slot, self.recent, self.filling, self.reading)
        if several:
            self._list(slot, list(several), list(several))
            return
        values: list[Any] = []
        for other in members:
            value = self.filling.input[slot.name] if other is phrase else self._value(other, slot)[0]
            if value is None or (slot.kind == "text" and not is_of_its_kind(slot, value, self.recent)):
                continue
            values.append([value] if slot.kind == "texts" and other is not phrase else value)
            self.filling.used.update(_spoken(other, self.reading))
            self.taken.append(other)
        if len(values) > 1:
            self._list(slot, values, [item for part in values for item in part])

    def _list(self, slot: Slot, values: list[Any], flat: list[Any]) -> None:
        self.filling.lists[slot.name] = values
        if slot.kind == "texts":
            self.filling.input[slot.name] = flat

    def _members(self, phrase: Phrase) -> list[Phrase]:
        """The list around a phrase, without what another slot took and whoever is only spoken to."""
        members = _list_around(phrase, self.reading)
        joints = {token.low for token in self.reading.tokens[members[0].end : members[-1].start]}
        # "take us to the port, helmsman": a word apart at the end that no "and" makes part of a list
        apart = len(members) > 1 and not joints & {"and", "&", "plus", "or"} and members[-1].mention is None
        members = members[:-1] if apart else members
        return [one for one in members if one is phrase or not self._is_taken(one)]

    def _all_of(self, phrase: Phrase, slot: Slot) -> tuple[str, ...]:
        """ "both pans", "every door": all the things of that kind; none where it is not plain which."""
        last = self.reading.stems[phrase.end - 1]
        several = self.recent.of_kind(slot.words if phrase.text == EVERYTHING else [last])
        return several if len(several) == 2 or (len(several) > 2 and phrase.every != "both") else ()

    def _value(self, phrase: Phrase, slot: Slot) -> tuple[str | None, float]:
        """The value of a phrase in a slot and how sure it is; None where it has none there."""
        reading = self.reading
        if phrase.pronoun:
            several = meant_together(phrase.pronoun, slot, self.recent, self.filling, reading)
            one = meant_by(phrase.pronoun, slot, self.recent, self.filling, reading)
            return several[0] if several else one, 0.9
        if phrase.quoted:
            return phrase.text, KNOWN
        if phrase.every and (several := self._all_of(phrase, slot)):
            return several[0], KNOWN
        if phrase.every == "both" and len(_list_around(phrase, reading)) == 1:
            return None, 0.0  # there are not two of them
        if phrase.mention:
            return phrase.mention.entity.value, KNOWN
        if phrase.text.casefold() in words("classes.indefinite"):
            return None, 0.0
        said = zip(range(phrase.start, phrase.end), phrase.text.split(" "), strict=False)
        return " ".join(word for at, word in said if at not in self.filling.used) or None, WORDS


def _list_around(phrase: Phrase, reading: Reading) -> list[Phrase]:
    first = last = reading.phrases.index(phrase)
    while first and reading.phrases[first].joined:
        first -= 1
    while last + 1 < len(reading.phrases) and reading.phrases[last + 1].joined:
        last += 1
    return reading.phrases[first : last + 1]


def _is_known(phrase: Phrase) -> bool:
    """Tell if the state has it, or it is called by a name that others may know."""
    return bool(phrase.mention or phrase.quoted or phrase.every) or phrase.text[:1].isupper()


def _spoken(phrase: Phrase, reading: Reading) -> list[int]:
    """The tokens a value accounts for: of "the chest 40 times" all but the number, of "Rex aspirin" Rex."""
    numbers = {at for quantity in reading.quantities for at in range(quantity.start, quantity.end)}
    whole = phrase.mention or phrase
    named = range(whole.start, whole.end)
    end = named.stop if phrase.mention and phrase.mention.strength >= 1.0 else phrase.end
    return [at for at in range(phrase.start, end) if at in named or at not in numbers]


def _spoken_for(phrase: Phrase, reading: Reading, filling: Filling) -> bool:
    """Tell if every word of it that carries meaning already filled a slot."""
    if phrase.quoted or phrase.pronoun or phrase.clausal or phrase.text == EVERYTHING:
        return False
    said = range(phrase.start, phrase.end)
    return all(at in filling.used or reading.tokens[at].low in STOPWORDS for at in said)


# --- kinds and pronouns ----------------------------------------------------------------------------------


def is_of_its_kind(slot: Slot, value: str, recent: Recent) -> bool:
    """Tell if a slot may hold a value: one that is named for a kind of thing in the state takes only such a thing."""
    kind = recent.of_kind(slot.words - ANYTHING)
    return not kind or slot.quoted or value in kind


def meant_together(
    pronoun: str, slot: Slot, recent: Recent, filling: Filling, reading: Reading
) -> tuple[str, ...]:
    """The last list that "them" can stand for in this slot; none where it stands for one or for nothing."""
    kind = recent.of_kind(slot.words - ANYTHING)
    elsewhere = _elsewhere(slot, filling, reading)
    for group in reversed(recent.groups if pronoun in words("classes.together") else ()):
        fits = tuple(one for one in group if one not in elsewhere and (not kind or one in kind))
        if len(fits) > 1:
            return fits
    return ()


def left_out_of_a_gift(reading: Reading, tool: ToolProfile, filling: Filling) -> str:
    """Somebody who is given something that a tool has no place for, or takes for a thing.

    "Give the candle to Mira" lights no candle, and "give the key to the guard" unlocks no guard.
    """
    if reading.verb not in GIVES or stem(reading.verb) in tool.verbs:
        return ""
    asked = [
        slot for slot in tool.slots if str(slot.schema.get("description")).casefold().startswith("what ")
    ]
    things = {at for slot in asked for at in filling.spans.get(slot.name, ())}
    first = reading.objects[0] if len(reading.objects) == 2 else None
    for phrase in reading.phrases:
        at, whom = phrase.end - 1, phrase.prep == "to" or phrase is first
        aside = at not in filling.used and reading.stems[at] not in tool.words
        if whom and phrase.mention and (aside or (at in things and is_being(phrase.mention.entity))):
            return phrase.text
    return ""


def _elsewhere(slot: Slot, filling: Filling, reading: Reading) -> set[str]:
    taken = {str(value) for name, value in filling.input.items() if name != slot.name}
    return taken | {phrase.mention.entity.value for phrase in reading.phrases if phrase.mention}


def meant_by(pronoun: str, slot: Slot, recent: Recent, filling: Filling, reading: Reading) -> str | None:
    """The latest thing a pronoun can stand for in this slot: somebody for "him", for "it" rather something."""
    elsewhere = _elsewhere(slot, filling, reading)
    known = {value for values in recent.kinds.values() for value in values}
    made = set(recent.values) - known  # "schedule a party, then invite Ada to it"

    def fitting(spoken_of: Sequence[str]) -> list[str]:
        free = (thing for thing in reversed(spoken_of) if thing not in elsewhere)
        return [thing for thing in free if thing in made or is_of_its_kind(slot, thing, recent)]

    kind = {*recent.of_kind(slot.words - ANYTHING), *made}
    things = fitting(recent.things)
    things = [thing for thing in things if thing in kind] or things or fitting(recent.values)
    if pronoun in _SOMEBODY or slot.person:
        things.sort(key=lambda thing: thing not in recent.people)
    elif pronoun == "it":
        things.sort(key=lambda thing: thing in recent.people)
    return things[0] if things else None
