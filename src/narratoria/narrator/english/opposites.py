"""Actions that take back what a tool does, or are its opposite.

`actions` are those of a tool's profile: the stems of the verbs and particles that name what it does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from narratoria.narrator.english import words as en
from narratoria.narrator.english.lexicon import phrases, words
from narratoria.narrator.english.mood import without_opening

_NONE: Final[frozenset[str]] = frozenset()
_CANCELS: Final = en.stems_of("undoing.cancels")
_TURNS: Final = en.stems_of("undoing.turns")
_QUENCHES: Final = words("undoing.quenches")
_OFF: Final = words("undoing.off")
_BEFORE_VERB: Final = (
    en.SUBJECTS | en.FILLERS | (en.AUXILIARIES - {"do", "have"}) | words("undoing.before_verb")
)


def undoes(clause: Sequence[str], actions: Collection[str]) -> bool:
    """Tell if a clause takes back what `actions` name, or is its opposite.

    "put the lamp out" undoes {"light"}; it does not undo an action that is itself named for stopping: {"turn", "off"}.
    """
    said = without_opening(clause)
    known = {en.stem(action) for action in actions} | set(actions)  # stems are not their own stems
    at, particle = _head(said)
    if at is None:
        return False
    said = said[at:]
    verb = en.stem(said[0])
    if _is_reverse(verb, known):
        return True
    turned = _turns(said, verb, particle, known)
    if turned is not None or verb in known:
        return bool(turned)
    against = en.OPPOSITES.get(verb, _NONE)
    # What opens and shuts a hatch also unseals it.
    both = any(against & en.OPPOSITES.get(word, _NONE) for word in known)
    return not both and not against.isdisjoint(known)


def _head(said: Sequence[str]) -> tuple[int | None, str]:
    """The place of the verb that opens a clause, and its particle, beside it or behind its object."""
    at = 0
    while at < len(said) - 1 and said[at] in _BEFORE_VERB:
        at += 1
    if at >= len(said) or said[at] in en.DETERMINERS or said[at] in en.QUESTION_WORDS:
        return None, ""
    rest = said[at + 1 :]
    beside = [word for word in (*rest[:1], *rest[-1:]) if word in words("undoing.particles")]
    inside = [word for word in rest[1:] if word in _OFF | {"on"}]  # "turn the lamp off at once"
    return at, next(iter([*beside, *inside]), "")


def _turns(said: Sequence[str], verb: str, particle: str, known: Collection[str]) -> bool | None:
    """ "cancel it", "turn it off", "blow it out", "stop ringing"; None where the verb is of another kind."""
    if verb in _CANCELS or (verb, particle) in phrases("undoing.calls_back"):
        return _CANCELS.isdisjoint(known)
    if particle in _OFF and (verb in _TURNS or said[0] in _QUENCHES):
        return _takes_off(said[0], verb, particle, known)
    if particle == "on" and verb in _TURNS:
        return "off" in known and "on" not in known
    if verb in ("stop", "quit", "ceas") and len(said) > 1 and said[1].endswith("ing"):
        return en.stem(said[1]) in known and verb not in known
    return None


def _takes_off(written: str, verb: str, particle: str, known: Collection[str]) -> bool:
    """Tell if off or out is against an action: of one that ends things it is not."""
    if not en.stems_of("undoing.ends").isdisjoint(known):
        return False
    if verb in ("turn", "switch", "shut", "power", "toggle", "kill", "cut"):
        return True
    if written in _QUENCHES and particle == "out":
        return not en.stems_of("undoing.kindles").isdisjoint(known) or verb not in known
    return not {"on", "in", "wear", "don"}.isdisjoint(known)


def _is_reverse(verb: str, known: Collection[str]) -> bool:
    """ "unload" of {"load"}, "defuel" of {"refuel"}."""
    plain = {*known, *(one.removeprefix("re") for one in known if len(one) > 5)}
    rests = [verb.removeprefix(prefix).removeprefix("-") for prefix in ("un", "de", "dis")]
    reverse = any(rest != verb and len(rest) > 2 and rest in plain for rest in rests)
    return reverse and verb not in en.VERB_STEMS
