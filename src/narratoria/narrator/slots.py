"""Fills the slots of a tool from a clause: choices, flags, names, words, and by `amounts` numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from narratoria.narrator.amounts import account_for_numbers, fill_numbers
from narratoria.narrator.entities import is_person
from narratoria.narrator.families import families, families_of
from narratoria.narrator.filling import GUESS, KNOWN, WORDS, Filling, Likeness, Recent
from narratoria.narrator.numerals import SECONDS
from narratoria.narrator.phrases import EVERYTHING, Phrase, Reading
from narratoria.narrator.profiles import WAYS, Slot, ToolProfile
from narratoria.narrator.tokens import tokenize
from narratoria.narrator.words import (
    DETERMINERS,
    OPPOSITES,
    PREPOSITIONS,
    STOPWORDS,
    content_stems,
    split_name,
    stem,
    word_set,
)


def fill(tool: ToolProfile, reading: Reading, recent: Recent, alike: Likeness) -> Filling:
    filling = Filling()
    for slot in tool.slots:
        if slot.kind == "choice":
            _fill_choice(slot, reading, filling)
        elif slot.kind == "flag":
            _fill_flag(slot, reading, filling)
    _fill_times(tool, reading, filling)
    fill_numbers([slot for slot in tool.slots if slot.kind == "number"], reading, filling)
    _fill_texts(tool, reading, recent, filling, alike)
    for slot in tool.slots:
        if slot.name not in filling.input and slot.required:
            _fill_from_context(slot, tool, reading, recent, filling, alike)
        if slot.name not in filling.input and slot.required:
            filling.missing.append(slot.name)
    account_for_numbers(reading, filling)
    return filling


# --- choices and flags ---------------------------------------------------------------------------------


def _fill_choice(slot: Slot, reading: Reading, filling: Filling) -> None:
    found: list[tuple[float, int, Any, range]] = []
    shared = _shared_stems(slot.choices)
    for value in slot.choices:
        words = [stem(word) for word in split_name(str(value))]
        strength, span = _find_choice(words, reading, filling.used, shared)
        if strength < KNOWN and any(letter.isdecimal() for letter in str(value)):
            # "4k" is written as a number is, and is found before numbers are read
            spelled = [stem(token.low) for token in tokenize(str(value))]
            strength, span = max(
                (strength, span), _find_choice(spelled, reading, filling.used, shared), key=_first
            )
        if reading.verb and span and reading.tokens[span[0]].low == reading.verb:
            strength *= 0.6  # "shut the blinds halfway" says half
        if strength and span[0] and reading.tokens[span[0] - 1].low in slot.preps | slot.hinted | {slot.name}:
            strength += 0.05  # "from savings to checking"
        if strength and not _comes_from(slot, reading, span.start):
            found.append((strength, len(words), value, span))
    best = max(found, key=lambda one: one[:2], default=None)
    best = best or _choice_behind_a_name(slot, reading) or _choice_by_deed(slot, reading)
    if best is not None:
        filling.put(slot, best[2], min(best[0], KNOWN), best[3])
        listed = _listed([one for one in found if one[0] >= KNOWN], reading)
        if len(listed) > 1:
            filling.lists[slot.name] = [one[2] for one in listed]
            filling.used.update(at for one in listed for at in one[3])


def _comes_from(slot: Slot, reading: Reading, start: int) -> bool:
    """ "from the pond" where the slot says whither: that is where it is now."""
    at = start - 1
    while at > 0 and reading.tokens[at].low in DETERMINERS:
        at -= 1
    known = slot.preps | slot.hinted
    return (
        at >= 0 and reading.tokens[at].low == "from" and bool(known & {"to", "into"}) and "from" not in known
    )


def _first(found: tuple[float, range]) -> float:
    return found[0]


def _listed(
    found: list[tuple[float, int, Any, range]], reading: Reading
) -> list[tuple[float, int, Any, range]]:
    """The choices that stand in one list: "thyme and mint", "for March and for April"."""
    ordered = sorted(found, key=lambda one: one[3].start)
    for one, other in pairwise(ordered):
        between = [token.low for token in reading.tokens[one[3].stop : other[3].start]]
        if not {"and", ",", "&", "plus"} & set(between) or any(word not in _LIST_WORDS for word in between):
            return []
    return ordered


def _find_choice(words: list[str], reading: Reading, used: set[int], shared: set[str]) -> tuple[float, range]:
    stems = reading.stems
    for at in range(len(stems) - len(words) + 1):
        span = range(at, at + len(words))
        free = not used & set(span) and not any(reading.tokens[index].quoted for index in span)
        if words and stems[at : at + len(words)] == words and free:
            return KNOWN, span
    for word in words:  # a part that no other choice has: "vacuum" for "robot vacuum"
        if len(words) > 1 and word not in shared and word in stems and len(word) > 2:
            return 0.8, range(stems.index(word), stems.index(word) + 1)
    for word in words:  # one grown from the other: "halfway" for "half", "dish" for "dishwasher"
        for at, other in enumerate(stems):
            short, long = sorted((word, other), key=len)
            if len(short) >= 4 and long.startswith(short) and short not in STOPWORDS:
                return 0.7, range(at, at + 1)
            if len(root := _root(word)) >= 4 and root == _root(other):
                return 0.7, range(at, at + 1)  # "brighten it" for "brightness"
    return 0.0, range(0)


def _root(word: str) -> str:
    return next(
        (word.removesuffix(end) for end in ("nes", "ness", "en", "er", "est") if word.endswith(end)), word
    )


def _shared_stems(choices: Sequence[Any]) -> set[str]:
    seen: set[str] = set()
    shared: set[str] = set()
    for value in choices:
        words = {stem(word) for word in split_name(str(value))}
        shared |= seen & words
        seen |= words
    return shared


def _choice_behind_a_name(slot: Slot, reading: Reading) -> tuple[float, int, Any, range] | None:
    """State may say `exits.east = bone_gallery`: then the gallery's name means east."""
    for phrase in reading.phrases:
        for value in slot.choices if phrase.mention else ():
            if phrase.mention and stem(str(value)) in phrase.mention.entity.holders:
                return 0.8, 1, value, range(phrase.start, phrase.end)
    return None


def _choice_by_deed(slot: Slot, reading: Reading) -> tuple[float, int, Any, range] | None:
    """ "boost it" where a slot has "increase" and "decrease", "kill the lights" where it has "on" and "off"."""
    if {"on", "off"} <= {str(value).casefold() for value in slot.choices} and _cuts(reading):
        return 0.8, 1, next(v for v in slot.choices if str(v).casefold() == "off"), range(0)
    done = families(reading.verb, reading.particle) if reading.verb else frozenset()
    akin = [value for value in slot.choices if done & families_of(split_name(str(value)))]
    return (0.8, 1, akin[0], range(0)) if len(akin) == 1 else None


def _cuts(reading: Reading) -> bool:
    return reading.verb in _CUTS or bool(families(reading.verb) & _ENDINGS)


def _fill_flag(slot: Slot, reading: Reading, filling: Filling) -> None:
    way = _way(reading)
    if slot.yes & _IN_FORCE and not way & {"on", "off"} and _cuts(reading):
        filling.put(slot, False, KNOWN)  # "kill the power"
        return
    stems = way if len(way & (slot.yes | slot.no)) == 1 else set(reading.stems) - WAYS.keys()
    yes, no = bool(stems & slot.yes), bool(stems & slot.no)
    if yes != no:
        filling.put(slot, yes, KNOWN, [i for i, s in enumerate(reading.stems) if s in slot.yes | slot.no])
        return
    against = OPPOSITES.get(stem(reading.verb), frozenset()) if reading.verb and not yes else frozenset()
    if bool(against & slot.yes) != bool(against & slot.no):
        filling.put(slot, bool(against & slot.no), KNOWN)  # to unseal is not to shut


def _way(reading: Reading) -> set[str]:
    """ "on" or "off" where it says how something is to be: with the verb, or last."""
    last = [token.low for token in reading.tokens[-1:]]
    inside = [t.low for t in reading.tokens[reading.body :] if t.low == "off"]
    return {word for word in [reading.particle, *last, *inside][:] if word in WAYS}


_IN_FORCE = frozenset({"on", *map(stem, word_set("enabled active subscribed running"))})
_CUTS = word_set("kill cut douse")
_ENDINGS = families("stop") | families("extinguish")
_LIST_WORDS = word_set("and , & plus both the a an some in for to of one") | PREPOSITIONS


def _fill_times(tool: ToolProfile, reading: Reading, filling: Filling) -> None:
    """A time of day, "4pm", "10:30", goes as it is written into a slot of words that asks for one."""
    slot = next((slot for slot in tool.slots if slot.kind == "text" and slot.words & _TIMES), None)
    if slot is None:
        return
    for at, token in enumerate(reading.tokens):
        width = _clock(reading, at)
        if width and not token.quoted:
            said = "".join(t.text for t in reading.tokens[at : at + width])
            filling.put(slot, said, KNOWN, range(at, at + width))
            return


def _clock(reading: Reading, at: int) -> int:
    """How many tokens a time of day takes up that begins at `at`."""
    words = [token.low for token in reading.tokens[at : at + 4]]
    if words[0] in ("noon", "midnight"):
        return 1
    if not words[0].isdecimal() or len(words[0]) > 2:
        return 0
    colon = words[1:2] == [":"] and words[2:3] and words[2].isdecimal()
    width = 3 if colon else 1
    half = words[width : width + 1] in (["am"], ["pm"])
    return width + half if colon or half else 0


_TIMES = frozenset(map(stem, word_set("time hour clock when start")))


# --- names and words -----------------------------------------------------------------------------------


def _fill_texts(
    tool: ToolProfile, reading: Reading, recent: Recent, filling: Filling, alike: Likeness
) -> None:
    slots = [slot for slot in tool.slots if slot.kind in ("text", "texts")]
    if not slots:
        return
    counts = any(slot.kind == "number" for slot in tool.slots)
    phrases = [
        phrase
        for phrase in reading.phrases
        if not _spoken_for(phrase, reading, filling) and not (counts and _is_number(phrase, tool, reading))
    ]
    lead = next((slot for slot in slots if slot.required), slots[0])
    offers = [
        (_role_score(slot, phrase, tool, lead, reading, slots, alike), -index, slot, phrase)
        for slot in slots
        for index, phrase in enumerate(phrases)
        if not phrase.owner
    ]
    taken: list[Phrase] = []
    chosen: dict[str, Phrase] = {}
    unknown: list[tuple[Slot, Phrase]] = []
    for score, _, slot, phrase in sorted(offers, key=lambda offer: offer[:2], reverse=True):
        if slot.name in filling.input or any(phrase is other for other in taken):
            continue
        if score < (0.0 if slot.required else 0.95) or (phrase.joined and not slot.required):
            continue
        value, strength = _value(phrase, slot, recent, filling, reading)
        if value is not None and not _is_of_its_kind(slot, value, recent):
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
    _fill_the_other(slots, phrases, taken, recent, filling, reading)
    scores = {(slot.name, id(phrase)): score for score, _, slot, phrase in offers}
    _restore_order([slot for slot in slots if slot.required], chosen, scores, filling)
    for slot, phrase in unknown:
        if slot.name not in filling.input and not any(phrase is other for other in taken):
            filling.unfit.append(f"I know of no {phrase.text} here.")


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
    if value is not None and _is_of_its_kind(slot, value, recent) and value not in filling.input.values():
        filling.put(slot, value, strength, _spoken(phrase, reading))
        taken.append(phrase)


def _spoken(phrase: Phrase, reading: Reading) -> list[int]:
    """The tokens a value accounts for: of "the chest 40 times" all but the number."""
    numbers = {at for quantity in reading.quantities for at in range(quantity.start, quantity.end)}
    named = (
        range(phrase.mention.start, phrase.mention.end) if phrase.mention else range(phrase.start, phrase.end)
    )
    return [at for at in range(phrase.start, phrase.end) if at in named or at not in numbers]


def _is_of_its_kind(slot: Slot, value: str, recent: Recent) -> bool:
    """Where the state has things of the kind a slot is named for, it takes one of those and nothing else."""
    kind = recent.of_kind(slot.words - _ANYTHING)
    return not kind or slot.quoted or value in kind


_ANYTHING = frozenset(map(stem, word_set("object thing item target subject name")))  # kinds of no kind


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
        if value is None or (slot.kind == "text" and not _is_of_its_kind(slot, value, recent)):
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


def _role_score(
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
    if slot is lead:
        score += 0.3 if not prep else 0.1
    elif len(slots) > 1 and slot.required:
        score += 0.1
    mention = phrase.mention
    if mention:
        score += 0.9 * mention.strength
        if slot.person and not is_person(mention.entity):
            score -= 1.2  # a pump repairs nothing
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
        score -= 0.5
    if phrase.clausal:
        score += 0.8 if slot.clausal else 0.0 if prep == "about" else -0.2
    if not mention and not phrase.quoted and not phrase.clausal and stems and stems <= tool.words:
        score -= 0.9  # "set a timer": the tool's own noun is no value
    return score + 0.8 * alike(slot.text, phrase.text)


def _role(phrase: Phrase, reading: Reading) -> str:
    """The preposition that counts: in "the lid of the chest" the chest stands where the lid does."""
    at = reading.phrases.index(phrase)
    if phrase.prep == "of" and at and not reading.phrases[at - 1].mention:
        return reading.phrases[at - 1].prep
    return phrase.prep


def _value(
    phrase: Phrase, slot: Slot, recent: Recent, filling: Filling, reading: Reading
) -> tuple[str | None, float]:
    if phrase.pronoun:
        meant = _meant_by(phrase.pronoun, slot, recent, filling, reading)
        return (meant, 0.9) if meant is not None else (None, 0.0)
    if phrase.quoted:
        return phrase.text, KNOWN
    if phrase.every and (several := _all_of(phrase, slot, reading, recent)):
        return several[0], KNOWN
    if phrase.mention:
        return phrase.mention.entity.value, KNOWN
    words = [
        word
        for index, word in zip(range(phrase.start, phrase.end), phrase.text.split(" "), strict=False)
        if index not in filling.used
    ]
    return " ".join(words) or None, WORDS


def _meant_by(pronoun: str, slot: Slot, recent: Recent, filling: Filling, reading: Reading) -> str | None:
    """The latest thing a pronoun can stand for in this slot: somebody for "him", for "it" rather something."""
    elsewhere = {str(value) for value in filling.input.values()}
    elsewhere |= {p.mention.entity.value for p in reading.phrases if p.mention}
    things = [
        thing
        for thing in reversed(recent.things)
        if thing not in elsewhere and _is_of_its_kind(slot, thing, recent)
    ]
    kind = recent.of_kind(slot.words - _ANYTHING)
    things = [thing for thing in things if thing in kind] or things
    if pronoun in _SOMEBODY or slot.person:
        things.sort(key=lambda thing: thing not in recent.people)
    elif pronoun == "it":
        things.sort(key=lambda thing: thing in recent.people)
    return things[0] if things else None


_SOMEBODY = word_set("he him his she her")


# --- what is not said ----------------------------------------------------------------------------------


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
        for value in reversed(recent.values):
            if pronoun and value in slot.choices:
                filling.put(slot, value, 0.9)
                filling.refers = True
                return
        if _has_stray_phrase(tool, reading, filling):
            return  # "start the lawnmower" names a thing, and it is none of the choices
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
        meant = _meant_by(owner, slot, recent, filling, reading)  # "text his owner": whose is said before
        if meant is not None:
            filling.put(slot, meant, 0.9)
            filling.refers = True
    elif slot.kind == "text" and not reading.phrases and recent.things and len(reading.tokens) <= 2:
        filling.put(slot, recent.things[-1], GUESS)
        filling.refers = True
    elif slot.kind == "text" and not slot.quoted and (several := recent.of_kind(slot.words - _ANYTHING)):
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


_SAYS_THE_SAME = 0.8


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
