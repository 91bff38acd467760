"""Deeds that go the other way than a tool's: what is taken out where it fills, what is harmed where it helps.

Deeds come as a tool's profile has them: the stems of the verbs and particles that name what it does. Nothing here is
about any story.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Final

from narratoria.narrator.english.verbs import families_of
from narratoria.narrator.english.words import OPPOSITES, VERB_STEMS, stem, stem_set, word_set


def without_again(verb: str) -> str:
    """ "reopen" is to open once more; the stem as it is where that says something else ("remove", "report")."""
    rest = verb.removeprefix("re").removeprefix("-")
    again = verb.startswith("re") and verb not in VERB_STEMS and (rest in OPPOSITES or rest in VERB_STEMS)
    return rest if again and verb not in _NOT_AGAIN else verb


_NOT_AGAIN: Final = stem_set("resign represent resent restrain remark recount redress reform relay reflect")


def is_reverse(verb: str, known: Collection[str]) -> bool:
    """ "unload" of {"load"}, "defuel" of {"refuel"}; `verb` and `known` are stems."""
    plain = {without_again(deed) for deed in known} | {
        deed.removeprefix("re") for deed in known if len(deed) > 5
    }
    for prefix in ("un", "de", "dis"):
        rest = verb.removeprefix(prefix).removeprefix("-")
        if rest != verb and len(rest) > 2 and (rest in known or rest in plain) and verb not in VERB_STEMS:
            return True
    return False


def ends_it(words: Sequence[str], known: Collection[str]) -> bool:
    """ "lift the closure of the bridge" of {"close"}: the deed is named by a noun, and is to be over."""
    if words[0] not in ("lift", "end", "remove") or stem(words[0]) in known:
        return False
    nouns = [word for word in words[1:4] if word.endswith(_OF_A_DEED)]
    return any(word.startswith(deed) for word in nouns for deed in known if len(deed) > 3)


_OF_A_DEED: Final = ("ure", "ing", "ion", "ment", "ance", "age")


# --- out of, and into ---------------------------------------------------------------------------------------

_OUT: Final = word_set(
    "take remove siphon drain suck bleed extract pull pump draw let get tap empty scoop bail pour tip strip"
)
_FROM: Final = word_set("take remove siphon drain suck bleed extract strip")
_IN: Final = word_set("pour put add tip pump let run throw dump drop insert")
_PUTS: Final = stem_set(
    "fill refill refuel fuel load insert put place add pour give feed attach install deposit stock charge mount pump"
)
_TAKES: Final = stem_set(
    "take remove drain empty unload extract pull draw get fetch collect withdraw out siphon delete erase clear strip"
)


def moves_the_other_way(words: Sequence[str], known: Collection[str]) -> bool:
    """ "take the oil out of the lamp" where a tool fills it, "pour oil into the lamp" where it empties it."""
    pairs = set(pairwise(words))
    out = words[0] in _OUT and ("out", "of") in pairs
    out = out or (words[0] in _FROM and "from" in words)
    puts, takes = not _PUTS.isdisjoint(known), not _TAKES.isdisjoint(known)
    into = words[0] in _IN and ("into" in words or "onto" in words) and not out
    return (out and puts and not takes) or (into and takes and not puts)


# --- neglect ------------------------------------------------------------------------------------------------

_PERISHES: Final = stem_set(
    "starve die perish rot wither wilt suffer drown burn bleed freeze suffocate choke spoil decay drop fall"
)


def lets_perish(words: Sequence[str], known: Collection[str]) -> bool:
    """ "let the cat starve", "let the fire go out": nothing is to be done about it, and that is no deed."""
    head, tail = tuple(words[:2]), tuple(words[-2:])
    if head in _GOES_BAD and "by" in words:  # "go hungry by the raven", as clauses put it
        return stem(head[0]) not in known and (head != ("go", "out") or not _KINDLES.isdisjoint(known))
    if words[0] != "let" or len(words) < 3 or words[1] in ("me", "us", "go"):
        return False
    return tail in _GOES_BAD or (stem(words[-1]) in _PERISHES and stem(words[-1]) not in known)


_KINDLES: Final = stem_set("light kindle ignite burn")
_GOES_BAD: Final = frozenset(
    {
        ("go", "hungry"), ("go", "thirsty"), ("go", "out"), ("go", "bad"), ("go", "cold"), ("burn", "out"),
        ("die", "out"), ("burn", "down"), ("boil", "over"), ("run", "dry"), ("fall", "apart"), ("dry", "out"),
    }
)  # fmt: skip


# --- harm ---------------------------------------------------------------------------------------------------

_VIOLENT: Final = stem_set("kill shoot bomb gun blast")
_VIOLENTLY: Final = frozenset(
    {
        ("blow", "up"), ("shoot", "down"), ("gun", "down"), ("burn", "down"), ("mow", "down"), ("beat", "up"),
        ("knock", "down"), ("tear", "down"), ("tear", "apart"), ("rip", "apart"), ("smash", "up"), ("run", "over"),
        ("wipe", "out"), ("strike", "down"), ("finish", "off"),
    }
)  # fmt: skip
# Who does such things may be asked for them; so may, in other senses of the words, what sends, films or inflates.
_ATTACKS: Final = families_of(("attack", "destroy", "incinerate"))
_ENDS: Final = families_of(("stop", "extinguish", "cancel"))  # "kill the lights"
_OTHERWISE: Final = stem_set(
    "inflate pump fill blow enlarge magnify zoom off send email message mail text photograph film snap throw score"
)


def harms(words: Sequence[str], particle: str, known: Collection[str]) -> bool:
    """ "blow up the bridge", "shoot the pilot" where a tool does nothing of the kind."""
    violent = stem(words[0]) in _VIOLENT or (words[0], particle) in _VIOLENTLY
    violent = violent or any((words[0], word) in _VIOLENTLY for word in (*words[1:2], *words[-1:]))
    if not violent or not _OTHERWISE.isdisjoint(known) or stem(words[0]) in known:
        return False
    may = _ATTACKS | _ENDS if words[0] == "kill" else _ATTACKS
    return not families_of(known) & may
