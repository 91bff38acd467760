"""The families of verbs: which may be said for one another, and which are different actions.

Sentence vectors do not tell: they put *sell* beside *buy*, and *drink* nearer to *pour* than *decant*. A verb in no
family speaks neither for nor against.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

from narratoria.narrator.english.lexicon import entry, words
from narratoria.narrator.english.words import AUXILIARIES, QUESTION_WORDS, stem, stem_set

Families: TypeAlias = frozenset[int]

_NONE: Final[Families] = frozenset()


def _table() -> dict[str, Families]:
    """The families of each stem."""
    table: dict[str, Families] = {}
    for number, family in enumerate(entry("families.verbs")):
        table |= {verb: table.get(verb, _NONE) | {number} for verb in stem_set(family)}
    return table


_FAMILIES: Final = _table()
_WITH_PARTICLE: Final[dict[str, str]] = entry("particle_verbs")  # "pick up" is "take"
_LIGHT: Final = words("verbs.light")
LIGHT_VERBS: Final = words("verbs.light_in_rules")  # the action stands beside them: "give it a push"


def families(verb: str, particle: str = "") -> Families:
    """The families of a verb, with its particle if it has one; none where it is unknown."""
    whole = stem(_WITH_PARTICLE.get(f"{verb} {particle}") or verb)
    if whole not in _FAMILIES and whole.startswith("re"):
        whole = whole.removeprefix("re").removeprefix("-")  # to reopen is to open
    return _FAMILIES.get(whole, _NONE)


def families_of(verbs: Iterable[str]) -> Families:
    """The families of any of these verbs, or stems of verbs."""
    return _NONE.union(*(_FAMILIES.get(verb) or _FAMILIES.get(stem(verb), _NONE) for verb in verbs))


def says_enough(verb: str, particle: str = "") -> bool:
    """Tells if a verb says by itself what is done, as "make" and "get" do not."""
    return f"{verb} {particle}" in _WITH_PARTICLE or verb not in _LIGHT


def is_known(verb: str) -> bool:
    """Tells if a verb is in a family, and so plainly another action than those of other families."""
    return bool(families_of([verb]))


def kin_of(verb: str, others: Collection[str]) -> list[str]:
    """Those of the other verbs that may stand in its place."""
    own = families_of([verb])
    return [other for other in others if other != verb and own & families_of([other])]


def akin(verbs: Collection[str], others: Collection[str]) -> bool:
    """Tells if one of the stems is among the others, or of a family with one of them."""
    return bool(set(verbs) & set(others) or families_of(verbs) & families_of(others))


_FINDING_OUT: Final = families_of(("examine", "listen", "smell"))
_ASKING: Final = QUESTION_WORDS | AUXILIARIES | words("verbs.asking")


def tells(phrase: str) -> bool:
    """Tells if a question may be answered by a rule with this phrase: it asks, or finds out by looking or listening.

    "Is the torch warm?" is no wish to hit it, though the answer would change nothing.
    """
    head = phrase.split()[0].casefold()
    return head in _ASKING or bool(families_of([head]) & _FINDING_OUT)
