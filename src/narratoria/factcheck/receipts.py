"""Receipts: what a narration claims about the world, held against the state, and the patch that made it true.

Deterministic, and modest. What `claims` reads in a narration is held against keys and values of the state. A claim
that is true before or after the turn's calls holds. A claim about something the state does not know is left alone,
except that the player carries or picks it up where the state keeps an inventory. Where the player is said to be is
judged where the state tells it, and only if that is another of the places it lists. English only. What is not read is
not judged: silence here is no proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from narratoria.events import JsonObject, StatePatch
from narratoria.factcheck.claims import Claim as Claim
from narratoria.factcheck.claims import claims as claims
from narratoria.factcheck.patch_ledger import Ledger, Path, Source
from narratoria.narrator.english.lexicon import entry, words
from narratoria.narrator.english.words import STOPWORDS, split_name, stem
from narratoria.run.plan import ExecutionResult
from narratoria.state import plain

Verdict: TypeAlias = Literal["held", "contradicted", "unknown"]


MAX_NODES: Final = 20_000  # of state that are looked at

# --- words ---------------------------------------------------------------------------------------------

_SAME: Final[dict[str, list[frozenset[str]]]] = {}
_OPPOSED: Final[dict[str, list[frozenset[str]]]] = {}
for _one, _other in entry("facts.opposites"):
    for _words, _against in ((_one, _other), (_other, _one)):
        for _word in _words.split():
            _SAME.setdefault(_word, []).append(frozenset(_words.split()))
            _OPPOSED.setdefault(_word, []).append(frozenset(_against.split()))

_HOLDERS: Final = words("facts.holders")
_WHERE: Final = words("facts.where")
_PLAYER: Final = words("facts.player")
_PLACE: Final = words("facts.place")
_PLACES: Final = words("facts.places")
_SHUT_BY: Final = words("facts.shut_by")


# --- the state, by name --------------------------------------------------------------------------------


class Facts:
    """The named things of a state: where each is, and what can be said of it."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self.nodes: dict[str, list[tuple[tuple[str, ...], Path, Any]]] = {}  # by the stem of the last word
        self.keeps_inventory = False
        self.state = state
        self._walk(state)

    def _walk(self, state: Mapping[str, Any]) -> None:
        queue: list[tuple[Any, Path]] = [(state, ())]
        for node, path in queue:
            if len(queue) > MAX_NODES:
                break
            listed = not isinstance(node, Mapping)
            for key, value in enumerate(node) if listed else node.items():
                here = (*path, str(key))
                words = tuple(split_name(_name_of(value) if listed else str(key)))
                if words and words[-1] in _HOLDERS:
                    self.keeps_inventory = self.keeps_inventory or not isinstance(value, str | int | float)
                self._note(words, here, value)
                if isinstance(value, Mapping):
                    named = tuple(split_name(_name_of(value)))
                    if named and named != words:
                        self._note(named, here, value)
                if isinstance(value, Mapping | Sequence) and not isinstance(value, str | bytes):
                    queue.append((value, here))

    def _note(self, words: tuple[str, ...], path: Path, value: Any) -> None:
        if words:
            self.nodes.setdefault(stem(words[-1]), []).append((words, path, value))

    def find(self, words: Sequence[str]) -> list[tuple[tuple[str, ...], Path, Any]]:
        """The things these words may mean: those whose longer name is said, or else all with that last word."""
        if not words:
            return []
        said = {stem(word) for word in words}
        near = self.nodes.get(stem(words[-1]), [])
        whole = [one for one in near if all(stem(word) in said for word in one[0])]
        longest = max((len(one[0]) for one in whole), default=0)
        return [one for one in whole if len(one[0]) == longest] if longest > 1 else near

    def compounds(self, words: Sequence[str], trait: str) -> Iterator[tuple[Path, bool]]:
        """`door_open: false` says of the door that it is not open."""
        for name, path, value in self.nodes.get(stem(trait), []) if words else ():
            if isinstance(value, bool) and len(name) > 1 and stem(name[-2]) == stem(words[-1]):
                yield path, value


def _name_of(value: Any) -> str:
    if isinstance(value, str):
        return value if len(value) <= 60 else ""
    if isinstance(value, Mapping):
        for key in ("name", "title", "id"):
            if isinstance(value.get(key), str):
                return str(value[key])
    return ""


# --- judging -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim, the verdict, and the fact it rests on."""

    claim: Claim
    verdict: Verdict
    keys: Path = ()
    value: Any = None
    source: Source | None = None  # None: so from the beginning, or nobody kept count

    @property
    def path(self) -> str:
        return ".".join(self.keys)

    def to_data(self) -> JsonObject:
        """The claim, the fact for or against it, and the turn, call and record that made the fact."""
        made = self.source
        return {
            "claim": self.claim.text,
            "verdict": self.verdict,
            "path": self.path,
            "value": plain(self.value),
            "by": None if made is None else {"turn": made.turn, "call": made.call, "seq": made.seq},
        }

    @property
    def objection(self) -> str:
        """The contradiction in a sentence, for a person and for the model that is to tell it again."""
        if self.path:
            return f"“{self.claim.text}”: but in the state {self.path} is {self.value!r}"
        return f"“{self.claim.text}”: but there is no {' '.join(self.claim.thing)} in the player's inventory"


def judge(claim: Claim, facts: Facts) -> CheckedClaim:
    """Hold one claim against one state."""
    evidence = [*_EVIDENCE[claim.kind](claim, facts)]
    for path, truth, value in evidence:
        if truth is claim.expected:
            return CheckedClaim(claim, "held", path, value)
    if evidence:
        path, _, value = evidence[0]
        return CheckedClaim(claim, "contradicted", path, value)
    if claim.kind != "has" or not claim.firm or not facts.keeps_inventory:
        return CheckedClaim(claim, "unknown")
    return CheckedClaim(claim, "contradicted" if claim.expected else "held")


_Evidence: TypeAlias = Iterator[tuple[Path, bool, Any]]  # a path of the state, what it says, its value


def _having(claim: Claim, facts: Facts) -> _Evidence:
    said = [claim.thing[:length] for length in range(len(claim.thing), 0, -1)]  # "the rope coiled about you"
    for _, path, value in next((found for named in said if (found := facts.find(named))), ()):
        yield from (one for one in _held(path, value, facts) if one[1] or not claim.part)


def _held(path: Path, value: Any, facts: Facts) -> _Evidence:
    """Evidence that the player has a thing: it lies in a holder, or says itself who has it."""
    if any(word in _HOLDERS for key in path[:-1] for word in split_name(key)):
        if _elsewhere(path) and facts.keeps_inventory:
            yield path, False, value  # it lies in a room, or somebody else has it
            return
        if not _elsewhere(path) and not _is_register(path, value):
            yield path, value not in (None, False, 0), value
            return
    for key, trait in value.items() if isinstance(value, Mapping) else ():
        word = (split_name(str(key)) or [""])[-1]
        if word in words("facts.held") and isinstance(trait, bool):
            yield (*path, str(key)), trait, trait
        elif word in _WHERE and isinstance(trait, str):
            yield (*path, str(key)), trait.casefold() in _PLAYER, trait


def _is_register(path: Path, value: Any) -> bool:
    """`items.key: {location: "cellar"}` lists what there is in the world, and says of each where."""
    return path[0] == "items" and isinstance(value, Mapping) and not _WHERE.isdisjoint(map(str, value))


def _elsewhere(path: Path) -> bool:
    """`rooms.cellar.items.lantern` lies in the cellar: only the player's own holder counts."""
    last = len(path) - 1  # `gold: 12` at the top is the player's
    first = next((index for index, key in enumerate(path) if set(split_name(key)) & _HOLDERS), last)
    return any(not set(split_name(key)) & (_PLAYER | _HOLDERS) for key in path[:first])


def _being(claim: Claim, facts: Facts) -> _Evidence:
    same = frozenset({claim.trait}.union(*_SAME.get(claim.trait, ())))
    opposed = frozenset().union(*_OPPOSED.get(claim.trait, ())) - same
    shut = opposed | _SHUT_BY if "open" in same else opposed
    for _, path, value in facts.find(claim.thing):
        if isinstance(value, str) and (truth := _word_truth(value, same, shut)) is not None:
            yield path, truth, value
        if not isinstance(value, Mapping):
            continue
        for key, trait in value.items():
            name = split_name(str(key))
            word = name[-1] if name else ""
            if isinstance(trait, bool):
                if word in same or word in opposed:
                    yield (*path, str(key)), trait is (word in same), trait
                elif trait and word in _SHUT_BY and "open" in same:
                    yield (*path, str(key)), False, trait
            elif isinstance(trait, str) and (truth := _word_truth(trait, same, shut)) is not None:
                yield (*path, str(key)), truth, trait
    for word in sorted(same | opposed):
        for path, value in facts.compounds(claim.thing, word):
            yield path, value is (word in same), value


def _being_at(claim: Claim, facts: Facts) -> _Evidence:
    here = list(_whereabouts(facts.state))
    said = claim.thing[:-1] if len(claim.thing) > 1 and claim.thing[-1] == "room" else claim.thing
    if not here or not said:
        return
    path, value = here[0]
    names = {stem(word) for _, text in here for word in split_name(text) if word not in STOPWORDS}
    if stem(said[-1]) in names:
        yield path, True, value
        return
    there = [one for _, one, _ in facts.find(said) if len(one) > 1 and one[-2].casefold() in _PLACES]
    at = [one for name in names for _, one, _ in facts.nodes.get(name, ())]
    # The kitchen may lie in the house, and the house hold the kitchen.
    if there and not any(a[: len(b)] == b or b[: len(a)] == a for a in there for b in at):
        yield path, False, value


def _whereabouts(state: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """The names of the player's place: texts under `place` or the like, at the top of the state or in `player`."""
    holders = [((), state), *(((str(key),), value) for key, value in state.items() if key in _PLAYER)]
    for above, node in holders:
        for key, value in node.items() if isinstance(node, Mapping) else ():
            path = (*above, str(key))
            if key in _PLACE and isinstance(value, Mapping):
                named = (((*path, name), value.get(name)) for name in ("id", "name", "title"))
                yield from ((one, text) for one, text in named if isinstance(text, str) and text.strip())
            elif key in _PLACE and isinstance(value, str) and value.strip():
                yield path, value


_EVIDENCE: Final = {"has": _having, "is": _being, "at": _being_at}


def _word_truth(value: str, same: frozenset[str], opposed: frozenset[str]) -> bool | None:
    word = value.casefold().strip()
    return True if word in same else False if word in opposed else None


def judged(narration: str, state: Mapping[str, Any]) -> list[CheckedClaim]:
    """Every claim of a narration against one state; `audit` takes them as `before`."""
    made = claims(narration)
    if not made:
        return []
    facts = Facts(state)
    return [judge(claim, facts) for claim in made]


def audit(
    narration: str,
    after: Mapping[str, Any],
    *,
    before: Sequence[CheckedClaim] = (),
    trace: ExecutionResult | None = None,
    ledger: Ledger | None = None,
) -> list[CheckedClaim]:
    """A receipt for every claim that can be judged. `before` holds those from before the turn's calls."""
    earlier = {receipt.claim: receipt for receipt in before}
    receipts = []
    for receipt in judged(narration, after):
        was = earlier.get(receipt.claim)
        if receipt.verdict == "contradicted" and was is not None and was.verdict == "held":
            # "The door is locked. You turn the key." was true when it was said, by no patch of this turn.
            source = ledger.source(was.keys, before=ledger.began) if ledger is not None else None
            receipts.append(replace(was, source=source))
        elif receipt.verdict != "unknown":
            source = _source(receipt.keys, trace, ledger) if receipt.keys else None
            receipts.append(replace(receipt, source=source))
    return receipts


def audit_summaries(
    words: str,
    after: Mapping[str, Any],
    *,
    traces: Sequence[ExecutionResult] = (),
    ledger: Ledger | None = None,
) -> list[CheckedClaim]:
    """Receipts for what a turn's tools tell themselves. One call may undo what the one before it told of: what a patch
    of the turn made so holds."""
    receipts = audit(words, after, trace=traces[-1] if traces else None, ledger=ledger)
    if any(receipt.verdict == "contradicted" for receipt in receipts):
        made = [(call, Facts(patch)) for trace in traces for call, patch in _patches(trace)]
        for index, receipt in enumerate(receipts):
            for call, facts in made if receipt.verdict == "contradicted" else ():
                if (was := judge(receipt.claim, facts)).verdict == "held":
                    receipts[index] = replace(was, source=Source(call))
    return receipts


def contradictions(receipts: Iterable[CheckedClaim]) -> list[str]:
    # One sentence may hold a claim twice: "you pocket the key" is to take it and to have it.
    return list(dict.fromkeys(receipt.objection for receipt in receipts if receipt.verdict == "contradicted"))


# --- where a fact comes from ---------------------------------------------------------------------------


def _source(path: Path, trace: ExecutionResult | None, ledger: Ledger | None) -> Source | None:
    if ledger is not None and (known := ledger.source(path)) is not None:
        return known
    made = [call for call, patch in _patches(trace) if _sets(patch, path)] if trace is not None else []
    return Source(made[-1]) if made else None


def _patches(trace: ExecutionResult) -> Iterator[tuple[str, JsonObject]]:
    """The patches of the calls that completed, each with its call."""
    for result in trace.tool_results:
        for event in result.events if result.ok else ():
            if isinstance(event, StatePatch):
                yield result.tool_id, event.patch


def _sets(patch: Any, path: Path) -> bool:
    for key in path:
        if not isinstance(patch, Mapping):
            return True  # the patch replaced everything below
        if key not in patch:
            return False
        patch = patch[key]
    return True
