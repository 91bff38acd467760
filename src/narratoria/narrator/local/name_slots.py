"""Which phrase of a clause belongs into which slot of names or words, and what it stands for there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from narratoria.narrator.english.beings import names_somebody
from narratoria.narrator.english.dictation import is_telling
from narratoria.narrator.english.numerals import SECONDS
from narratoria.narrator.english.phrases import EVERYTHING, Phrase, Reading
from narratoria.narrator.english.verbs import families
from narratoria.narrator.english.words import AUXILIARIES, STOPWORDS, stem, word_set
from narratoria.narrator.local.filled_slots import GUESS, KNOWN, WORDS, Filling, Likeness, Recent
from narratoria.narrator.local.pronouns import doubt_about, is_of_its_kind, meant_by, meant_together
from narratoria.narrator.local.slot_roles import role_score
from narratoria.narrator.local.tool_profiles import Slot, ToolProfile

_INDEFINITE: Final = word_set(
    "something anything nothing somebody someone anybody anyone nobody whatever whoever somewhere anywhere nowhere"
)


def fill_texts(
    tool: ToolProfile, reading: Reading, recent: Recent, filling: Filling, alike: Likeness
) -> None:
    slots = [slot for slot in tool.slots if slot.kind in ("text", "texts")]
    if not slots:
        return
    reading = replace(
        reading, phrases=[_without_the_rest(phrase, reading, filling) for phrase in reading.phrases]
    )
    counts = any(slot.kind == "number" for slot in tool.slots)
    phrases = [
        phrase
        for phrase in reading.phrases
        if not _spoken_for(phrase, reading, filling) and not (counts and _is_number(phrase, tool, reading))
    ]
    lead = next((slot for slot in slots if slot.required), slots[0])
    offers = [
        (role_score(slot, phrase, tool, lead, reading, slots, alike), -index, slot, phrase)
        for slot in slots
        for index, phrase in enumerate(phrases)
        if not phrase.owner
    ]
    taken: list[Phrase] = []
    chosen: dict[str, Phrase] = {}
    unknown: list[tuple[Slot, Phrase]] = []
    for score, _, slot, phrase in sorted(offers, key=lambda offer: offer[:2], reverse=True):
        if _names_nothing(phrase, slot, tool, recent, reading):
            continue
        if slot.name in filling.input or any(phrase is other for other in taken):
            continue
        if score < (0.0 if slot.required else 0.95) or (phrase.joined and not slot.required):
            continue
        if slot.quoted and phrase.joined and not phrase.quoted:
            continue  # "radio Ada and Ben": who is listed with her is no message to her
        if phrase.pronoun and (doubt := doubt_about(phrase.pronoun, slot, recent, filling, reading)):
            filling.unfit.append(doubt)
            continue
        value, strength = _value(phrase, slot, recent, filling, reading)
        stranger = slot.person and not slot.called and bool(recent.people) and not _is_known(phrase)
        if value is not None and not phrase.pronoun and (stranger or not is_of_its_kind(slot, value, recent)):
            unknown.append((slot, phrase))
            continue
        if value is None or any(value == other for other in filling.input.values()):
            continue
        taken.append(phrase)
        if slot.quoted and strength == WORDS and not (slot.clausal and phrase.clausal):
            strength = GUESS  # words to be said belong in quotation marks
        if phrase.mention:
            filling.used.update(_tokens_of(value, reading))
        filling.put(slot, [value] if slot.kind == "texts" else value, strength, _spoken(phrase, reading))
        filling.refers |= phrase.pronoun is not None
        chosen[slot.name] = phrase
        if slot.kind == "texts":
            _follow_list(slot, phrase, reading, recent, filling, taken)
    for slot in slots:
        if slot.kind == "text" and slot.name in chosen:
            _follow_list(slot, chosen[slot.name], reading, recent, filling, taken)
    meant = [phrase for phrase in phrases if not _names_nothing(phrase, lead, tool, recent, reading)]
    _fill_the_other(slots, meant, taken, recent, filling, reading)
    scores = {(slot.name, id(phrase)): score for score, _, slot, phrase in offers}
    _restore_order([slot for slot in slots if slot.required], chosen, scores, filling)
    for slot, phrase in unknown:
        if slot.name not in filling.input and not any(phrase is other for other in taken):
            filling.unfit.append(f"I know of no {phrase.text} here.")


def _names_nothing(phrase: Phrase, slot: Slot, tool: ToolProfile, recent: Recent, reading: Reading) -> bool:
    """Whether a phrase has no name or words for a slot in it: "something", "was going", "to feed the cat"."""
    if phrase.mention and slot.quoted and not reading.verb and names_somebody(phrase.mention.entity.stems):
        return True  # "who is the guard?" has no words to be read or said in it
    if phrase.quoted or phrase.pronoun or phrase.mention:
        return False
    if phrase.clausal:
        again = stem(phrase.text.split(" ")[0]) in tool.verbs
        return phrase.prep == "to" and not slot.clausal and (slot.person or (again and not slot.quoted))
    if phrase.text == EVERYTHING and recent.kinds and not slot.quoted:
        own = stem(reading.verb) in tool.verbs or families(reading.verb, reading.particle) & tool.families
        return not own or not _all_of(phrase, slot, reading, recent)
    if phrase.text.casefold() in _INDEFINITE:
        return True
    one = phrase.end - phrase.start == 1 and phrase.start > 0
    return one and phrase.text.endswith("ing") and reading.tokens[phrase.start - 1].low in AUXILIARIES


def _is_known(phrase: Phrase) -> bool:
    """Whether the state has it, or it is called by a name that others may know."""
    return bool(phrase.mention or phrase.quoted or phrase.every) or phrase.text[:1].isupper()


def _without_the_rest(phrase: Phrase, reading: Reading, filling: Filling) -> Phrase:
    """ "feed the cubs milk": where the milk fills a slot, what is left are the cubs."""
    lead = phrase.lead
    end = (
        lead.end
        if lead
        else next((at for at in range(phrase.start, phrase.end) if at in filling.used), phrase.end)
    )
    apart = phrase.lead or not (phrase.mention or phrase.quoted or phrase.pronoun or phrase.clausal)
    rest = range(end, phrase.end)
    if (
        not apart
        or end == phrase.start
        or not rest
        or not all(_is_taken(at, reading, filling) for at in rest)
    ):
        return phrase
    words = " ".join(phrase.text.split(" ")[: end - phrase.start])
    return replace(phrase, end=end, text=words, mention=lead, lead=None)


def _is_taken(at: int, reading: Reading, filling: Filling) -> bool:
    return at in filling.used or reading.tokens[at].low in STOPWORDS


def _fill_the_other(
    slots: Sequence[Slot],
    phrases: Sequence[Phrase],
    taken: list[Phrase],
    recent: Recent,
    filling: Filling,
    reading: Reading,
) -> None:
    """ "feed Rex some fish": the one object left over is the one thing more that may be said."""
    open_slots = [slot for slot in slots if slot.name not in filling.input and slot.kind == "text"]
    left = [
        phrase
        for phrase in phrases
        if not phrase.owner and not phrase.clausal and not any(phrase is one for one in taken)
    ]
    if len(open_slots) != 1 or len(left) != 1 or not taken or open_slots[0].quoted:
        return
    slot, phrase = open_slots[0], left[0]
    if slot.required or phrase.joined or phrase.prep not in slot.preps | slot.hinted | {""}:
        return
    value, strength = _value(phrase, slot, recent, filling, reading)
    if value is not None and is_of_its_kind(slot, value, recent) and value not in filling.input.values():
        filling.put(slot, value, strength, _spoken(phrase, reading))
        taken.append(phrase)


def _spoken(phrase: Phrase, reading: Reading) -> list[int]:
    """The tokens a value accounts for: of "the chest 40 times" all but the number, of "Rex aspirin" Rex."""
    numbers = {at for quantity in reading.quantities for at in range(quantity.start, quantity.end)}
    named = (
        range(phrase.mention.start, phrase.mention.end) if phrase.mention else range(phrase.start, phrase.end)
    )
    end = named.stop if phrase.mention and phrase.mention.strength >= 1.0 else phrase.end
    return [at for at in range(phrase.start, end) if at in named or at not in numbers]


def _tokens_of(value: str, reading: Reading) -> set[int]:
    """Every token that speaks of `value`: "the carving on the wall" names the wall carving twice."""
    return {
        index
        for phrase in reading.phrases
        if phrase.mention and phrase.mention.entity.value == value
        for index in _spoken(phrase, reading)
    }


def _restore_order(
    slots: Sequence[Slot],
    chosen: Mapping[str, Phrase],
    scores: Mapping[tuple[str, int], float],
    filling: Filling,
) -> None:
    """Where two slots would take either, the first takes what is said first: "compare A with B"."""
    for first, second in pairwise(slot for slot in slots if slot.name in chosen):
        one, other = chosen[first.name], chosen[second.name]
        if one.start < other.start or one.quoted or other.quoted:
            continue
        now = scores[first.name, id(one)] + scores[second.name, id(other)]
        swapped = scores[first.name, id(other)] + scores[second.name, id(one)]
        if now - swapped < 0.4:
            for values in (filling.input, filling.strength):
                values[first.name], values[second.name] = values[second.name], values[first.name]


def _follow_list(
    slot: Slot, phrase: Phrase, reading: Reading, recent: Recent, filling: Filling, taken: list[Phrase]
) -> None:
    """The other members of the list that `phrase` is in: "the cup, the rope and the bread"."""
    if phrase.every and (several := _all_of(phrase, slot, reading, recent)):
        filling.lists[slot.name] = list(several)
        if slot.kind == "texts":
            filling.input[slot.name] = list(several)
        return
    if phrase.pronoun and (several := meant_together(phrase.pronoun, slot, recent, filling, reading)):
        filling.lists[slot.name] = list(several)
        if slot.kind == "texts":
            filling.input[slot.name] = list(several)
        return
    values: list[Any] = []
    members = _list_around(phrase, reading)
    spoken_to = members[-1] if _is_spoken_to(members, reading) else None
    for other in members:
        if other is spoken_to:
            continue
        if other is not phrase and any(other is one for one in taken):
            continue
        value = (
            filling.input[slot.name] if other is phrase else _value(other, slot, recent, filling, reading)[0]
        )
        if value is None or (slot.kind == "text" and not is_of_its_kind(slot, value, recent)):
            continue
        values.append([value] if slot.kind == "texts" and other is not phrase else value)
        filling.used.update(_spoken(other, reading))
        taken.append(other)
    if len(values) > 1:
        filling.lists[slot.name] = values
        if slot.kind == "texts":
            filling.input[slot.name] = [item for part in values for item in part]


def _is_spoken_to(members: Sequence[Phrase], reading: Reading) -> bool:
    """ "take us to the port, helmsman": a word apart at the end that no "and" makes part of a list."""
    joints = {t.low for t in reading.tokens[members[0].end : members[-1].start]}
    return len(members) > 1 and not joints & {"and", "&", "plus", "or"} and members[-1].mention is None


def _list_around(phrase: Phrase, reading: Reading) -> list[Phrase]:
    first = last = reading.phrases.index(phrase)
    while first and reading.phrases[first].joined:
        first -= 1
    while last + 1 < len(reading.phrases) and reading.phrases[last + 1].joined:
        last += 1
    return reading.phrases[first : last + 1]


def _all_of(phrase: Phrase, slot: Slot, reading: Reading, recent: Recent) -> tuple[str, ...]:
    """ "both pans", "every door": all the things of that kind; none where it is not plain which."""
    last = reading.stems[phrase.end - 1]
    several = recent.of_kind(slot.words if phrase.text == EVERYTHING else [last])
    if phrase.every == "both" and len(several) != 2 and phrase.mention:
        value = phrase.mention.entity.value
        several = next((group for group in recent.kinds.values() if len(group) == 2 and value in group), ())
    return several if len(several) == 2 or (len(several) > 2 and phrase.every != "both") else ()


def _spoken_for(phrase: Phrase, reading: Reading, filling: Filling) -> bool:
    """Every word of it that carries meaning already filled a slot."""
    if phrase.quoted or phrase.pronoun or phrase.clausal or phrase.text == EVERYTHING:
        return False
    rest = [i for i in range(phrase.start, phrase.end) if i not in filling.used]
    return not any(reading.tokens[i].low not in STOPWORDS for i in rest)


def _is_number(phrase: Phrase, tool: ToolProfile, reading: Reading) -> bool:
    """Nothing but a number and its unit: where a tool counts something, that is no name."""
    units = {
        w for slot in tool.slots if slot.kind == "number" for w in slot.words | slot.told
    } | SECONDS.keys()
    numbers = {at for q in reading.quantities for at in range(q.start, q.end + (q.unit in units))}
    return not phrase.mention and not phrase.quoted and set(range(phrase.start, phrase.end)) <= numbers


def _value(
    phrase: Phrase, slot: Slot, recent: Recent, filling: Filling, reading: Reading
) -> tuple[str | None, float]:
    if phrase.pronoun:
        if several := meant_together(phrase.pronoun, slot, recent, filling, reading):
            return several[0], 0.9
        meant = meant_by(phrase.pronoun, slot, recent, filling, reading)
        return (meant, 0.9) if meant is not None else (None, 0.0)
    if phrase.quoted:
        return phrase.text, KNOWN
    if phrase.every and (several := _all_of(phrase, slot, reading, recent)):
        return several[0], KNOWN
    if phrase.every == "both" and not _has_more(phrase, reading):
        return None, 0.0  # there are not two of them
    if slot.quoted and phrase.mention and _is_spoken_of(phrase, reading):
        return None, 0.0  # "… that Otto is ill": his name is not all that is to be written
    if phrase.mention and not (slot.quoted and _says_more(phrase, reading)):
        return phrase.mention.entity.value, KNOWN
    words = [
        word
        for index, word in zip(range(phrase.start, phrase.end), phrase.text.split(" "), strict=False)
        if index not in filling.used
    ]
    return " ".join(words) or None, WORDS


def _has_more(phrase: Phrase, reading: Reading) -> bool:
    """ "both the cup and the rope"."""
    return len(_list_around(phrase, reading)) > 1


def _is_spoken_of(phrase: Phrase, reading: Reading) -> bool:
    return phrase.end < len(reading.tokens) and reading.tokens[phrase.end].low in AUXILIARIES


def _says_more(phrase: Phrase, reading: Reading) -> bool:
    """ "log Sheldon off his food": words to be written are not cut down to the thing they speak of."""
    named = range(phrase.mention.start, phrase.mention.end) if phrase.mention else range(0)
    rest = set(range(phrase.start, phrase.end)) - set(named)
    return is_telling(reading.verb) and any(reading.tokens[at].low not in STOPWORDS for at in rest)
