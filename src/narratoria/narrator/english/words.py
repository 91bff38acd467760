"""The small words of English, its common verbs, and a little morphology.

The words are those of the lexicon; nothing here is about any story. Words of a story come from its tools and its state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Final

from narratoria.narrator.english.lexicon import entry, phrases, rows, words

DETERMINERS: Final = words("classes.determiners")
SUBJECTS: Final = words("classes.subjects")
PRONOUNS: Final = words("classes.pronouns")
PLACE_PRONOUNS: Final = words("classes.place_pronouns")
QUESTION_WORDS: Final = words("classes.question_words")
AUXILIARIES: Final = words("classes.auxiliaries")
PREPOSITIONS: Final = words("classes.prepositions")
PARTICLES: Final = words("classes.particles")
FILLERS: Final = words("classes.fillers")
_SMALL: Final = (DETERMINERS, SUBJECTS, PRONOUNS, QUESTION_WORDS, AUXILIARIES, PREPOSITIONS, FILLERS)
STOPWORDS: Final = words("classes.stopwords").union(*_SMALL)
LEAD_INS: Final = tuple(sorted(phrases("lead_ins.plain"), key=len, reverse=True))  # the longest first
VERBS: Final = words("verbs.plain") | words("verbs.nouns_too")
NOUNISH: Final = words("verbs.nouns_too") | words("verbs.rather_nouns")  # as often nouns as verbs

NUMBERS: Final[Mapping[str, int]] = (
    {word: value for value, word in enumerate(entry("numbers.below_twenty").split())}
    | {word: value * 10 for value, word in enumerate(entry("numbers.tens").split(), 2)}
    | entry("numbers.others")
)

_VERB_FORMS: Final = {form: base for base, *forms in rows("irregular.verbs") for form in forms}
_BASES: Final = _VERB_FORMS | {
    form: base
    for name in ("nouns", "others", "forms_of_be_and_have")
    for base, *forms in rows(f"irregular.{name}")
    for form in forms
}
_SUFFIXES: Final[Mapping[str, int]] = entry("irregular.suffixes")
_PAST: Final = (_VERB_FORMS.keys() | words("irregular.past_only")) - words("irregular.not_past")


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A rough stem: enough that inflected forms of one word meet ("eastern"/"east", "closing"/"closed")."""
    word = word.casefold()
    regular = word not in _BASES
    word = _BASES.get(word, word)
    for suffix, least in _SUFFIXES.items():
        sounds = suffix not in ("ing", "ed") or any(letter in "aeiouy" for letter in word[: -len(suffix)])
        long_enough = len(word) - len(suffix) >= least and sounds  # "shred" is no participle
        if regular and word.endswith(suffix) and long_enough and not word.endswith("ss"):
            word = word[: -len(suffix)] + ("y" if suffix == "ies" else "")
            doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls"
            if doubled and suffix in ("ings", "ing", "ed"):
                word = word[:-1]
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def stem_set(text: str) -> frozenset[str]:
    """The stems of the words in `text`."""
    return frozenset(map(stem, text.split()))


@cache
def stems_of(name: str) -> frozenset[str]:
    """The stems of an entry of the lexicon."""
    return frozenset(map(stem, words(name)))


def is_past(word: str) -> bool:
    """Tell if a word has the form of a verb in the past: "mowed", "rang"."""
    return word in _PAST or (word.endswith("ed") and len(word) > 4 and word not in words("irregular.no_verb"))


def _opposites() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for left, right in entry("verbs.opposites"):
        one, other = stem_set(left), stem_set(right)
        found |= {word: found.get(word, frozenset()) | other for word in one}
        found |= {word: found.get(word, frozenset()) | one for word in other}
    return found


def split_name(name: str) -> list[str]:
    """The words of an identifier: `iron_door`, `ironDoor`, `iron-door` → iron, door."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word.casefold() for word in re.split(r"[^\w]+|_+", spaced) if word]


def content_stems(text: str) -> set[str]:
    """The stems of the words that carry meaning."""
    return {stem(word) for word in split_name(text) if word not in STOPWORDS and len(word) > 1}


def distance(first: str, second: str, limit: int) -> int:
    """Damerau-Levenshtein distance (swapped neighbours cost one), or `limit + 1` where it is more."""
    if abs(len(first) - len(second)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        older, before, row = before, row, [i] + [0] * len(second)
        for j, b in enumerate(second, 1):
            row[j] = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == second[j - 2] and first[i - 2] == b:
                row[j] = min(row[j], older[j - 2] + 1)
    return min(row[-1], limit + 1)


def nearest(word: str, vocabulary: Iterable[str], limit: int | None = None) -> str | None:
    """The word of `vocabulary` that `word` is most likely a typo of, or None."""
    limit = limit or (1 if len(word) < 7 else 2)
    best: tuple[int, bool, int, str] | None = None
    for candidate in vocabulary:
        if len(candidate) < 3 or abs(len(candidate) - len(word)) > limit:
            continue
        gap = distance(word, candidate, max(limit, 2))
        if gap == 2 and sorted(word) == sorted(candidate) and len(word) > 4:
            gap = 1  # "slvier": the letters are right, only their order is not
        rank = (gap, candidate[0] != word[0], abs(len(candidate) - len(word)), candidate)
        if gap <= limit and (best is None or rank < best):
            best = rank
    return best[3] if best else None


OPPOSITES: Final[Mapping[str, frozenset[str]]] = _opposites()
HARMFUL: Final = stems_of("verbs.harmful")  # never another name for what a tool does
VERB_STEMS: Final = frozenset(stem(verb) for verb in VERBS | NOUNISH)
