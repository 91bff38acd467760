"""The families of verbs: which may be said for one another, and which are different actions.

Sentence vectors do not tell: they put *sell* beside *buy*, and *drink* nearer to *pour* than *decant*. A verb in no
family speaks neither for nor against. The lexicon holds the families and says why the tools of a catalogue (`families`,
`says_enough`) and the rules of a story (`akin`, `tells`) read them differently.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

from narratoria.narrator.english.lexicon import entry, words
from narratoria.narrator.english.words import AUXILIARIES, QUESTION_WORDS, stem, stem_set

Families: TypeAlias = frozenset[int]

_NONE: Final[Families] = frozenset()


def _table(reader: str) -> dict[str, Families]:
    """The families of each stem, for `reader`: "tools" or "rules"."""
    shared = [f"{one.get('both', '')} {one.get(reader, '')}" for one in entry("families.shared")]
    table: dict[str, Families] = {}
    for number, family in enumerate([*shared, *entry(f"families.{reader}")]):
        table |= {verb: table.get(verb, _NONE) | {number} for verb in stem_set(family)}
    return table


# --- for the tools of a catalogue ---------------------------------------------------------------------------

_OF_TOOLS: Final = _table("tools")
_WITH_PARTICLE: Final[dict[str, str]] = entry("particle_verbs")  # "pick up" is "take"


def families(verb: str, particle: str = "") -> Families:
    """The families of a verb, with its particle if it has one; none where it is unknown."""
    whole = stem(_WITH_PARTICLE.get(f"{verb} {particle}") or verb)
    if whole not in _OF_TOOLS and whole.startswith("re"):
        whole = whole.removeprefix("re").removeprefix("-")  # to reopen is to open
    return _OF_TOOLS.get(whole, _NONE)


def families_of(verbs: Iterable[str]) -> Families:
    """The families of any of these verbs."""
    return _NONE.union(*(_OF_TOOLS.get(stem(verb), _NONE) for verb in verbs))


def says_enough(verb: str, particle: str = "") -> bool:
    """Tell if a verb says by itself what is done, as "make" and "get" do not."""
    return f"{verb} {particle}" in _WITH_PARTICLE or verb not in words("verbs.light")


# --- for the rules of a story -------------------------------------------------------------------------------

_OF_RULES: Final = _table("rules")
LIGHT_VERBS: Final = words("verbs.light_in_rules")  # the action stands beside them: "give it a push"
_FINDING_OUT: Final = _NONE.union(*(_OF_RULES[stem(verb)] for verb in ("examine", "listen", "smell")))
_ASKING: Final = QUESTION_WORDS | AUXILIARIES | words("verbs.asking")


def _rule_families(verb: str) -> Families:
    return _OF_RULES.get(verb) or _OF_RULES.get(stem(verb)) or _NONE


def is_known(verb: str) -> bool:
    """Tell if a verb is in a family that decides about rules."""
    return bool(_rule_families(verb))


def akin(verbs: Collection[str], others: Collection[str]) -> bool:
    """Tell if one of the stems is among the others, or of a family with one of them."""
    if set(verbs) & set(others):
        return True
    return bool(_NONE.union(*map(_rule_families, verbs)) & _NONE.union(*map(_rule_families, others)))


def tells(phrase: str) -> bool:
    """Tell if a question may be answered by a rule with this phrase: it asks, or finds out by looking or listening.

    "Is the torch warm?" is no wish to hit it, though the answer would change nothing.
    """
    head = phrase.split()[0].casefold()
    return head in _ASKING or bool(_rule_families(head) & _FINDING_OUT)
