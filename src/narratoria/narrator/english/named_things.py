"""The things a story's state knows by name, and where a prompt mentions them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from narratoria.narrator.english import lexicon
from narratoria.narrator.english import words as en
from narratoria.narrator.english.tokens import Token

MAX_ENTITIES: Final = 2000  # a world larger than this is searched only in part
_NAME_KEYS: Final = ("name", "title", "label")
_KIND_KEYS: Final = ("kind", "type", "species", "breed", "role", "job")  # "the toad" is whoever is one
_LONGEST_NAME: Final = 40
_LONGEST_TITLE: Final = 12  # words
_FUNCTION: Final = en.DETERMINERS | en.PREPOSITIONS | {"and", "or"}
_THINGS: Final = en.stems_of("state.things")
_LIVING: Final = lexicon.words("state.living")
_LIFELESS: Final = lexicon.words("state.lifeless")
PEOPLE: Final = en.stems_of("beings.people")
ANIMALS: Final = en.stems_of("beings.animals")


def names_somebody(words: Sequence[str]) -> bool:
    """Tell if stems name a person: "old woman", "captain of the guard"; not "guard post", not "king's crown"."""
    return bool(words) and _head_noun(words) in PEOPLE


def names_animal(words: Sequence[str]) -> bool:
    """Tell if stems name an animal."""
    return bool(words) and _head_noun(words) in ANIMALS


def _head_noun(words: Sequence[str]) -> str:
    """The noun of a name: before "of", and without a number behind it."""
    named = list(words[: words.index("of")] if "of" in words[1:] else words)
    while len(named) > 1 and (named[-1].isdecimal() or len(named[-1]) == 1):
        named.pop()
    return named[-1]


@dataclass(frozen=True, slots=True)
class Entity:
    value: str  # what goes into a call's input: the key or text as the state spells it
    words: tuple[str, ...]
    holders: frozenset[str]  # stems of the keys above it: people, inventory, …
    firm: bool = True  # False for what may as well be an attribute or a heading
    holder: str = ""  # stem of the key right above it
    kind: bool = False  # it says what a thing is, "dog", and not how it is called
    traits: frozenset[str] = frozenset()  # keys of what the state keeps about it

    @property
    def stems(self) -> tuple[str, ...]:
        return tuple(en.stem(word) for word in self.words)

    @property
    def label(self) -> str:
        return " ".join(self.words)


def has_a_name(entity: Entity) -> bool:
    """Tell if it is kept among people, and is none of what they carry, or is spelled like a name."""
    named = entity.value[:1].isupper() and not any(letter.isdigit() for letter in entity.value)
    return named or (bool(entity.holders & en.stems_of("state.people")) and not entity.holders & _THINGS)


def is_person(entity: Entity) -> bool:
    """Somebody rather than something."""
    return has_a_name(entity) or names_somebody(entity.stems)


def is_being(entity: Entity) -> bool | None:
    """Tell if it can be spoken or given to: True of people and animals, False of a thing, None where nothing tells."""
    if is_person(entity) or names_animal(entity.stems) or entity.holders & ANIMALS or entity.traits & _LIVING:
        return True
    return False if entity.holders & _THINGS or entity.traits & _LIFELESS else None


def _noun(entity: Entity) -> str:
    """The kind of thing it is one of: study_pod_1 is a pod."""
    stems = entity.stems
    numbered = len(stems) > 1 and stems[-1].isdecimal() and len(stems[-2]) > 1
    return stems[-2] if numbered else stems[-1]


def _is_code(entity: Entity) -> bool:
    """ "R-7": letters and digits one by one, which only the whole name means."""
    return len(entity.words) > 1 and all(len(word) == 1 for word in entity.words)


def find_entities(state: Mapping[str, Any]) -> list[Entity]:
    """Every named thing in `state`, breadth first: what stands higher is more likely to be meant."""
    found: dict[tuple[str, tuple[str, ...]], Entity] = {}
    queue: list[tuple[Any, tuple[str, ...], bool]] = [(state, (), False)]
    for node, path, inside_thing in queue:
        for entity, key, child, is_thing in _children(node, path, inside_thing):
            if entity is not None and entity.words and len(found) < MAX_ENTITIES:
                found.setdefault((entity.value, entity.words), entity)
            if isinstance(child, Mapping | list) and len(queue) < 4 * MAX_ENTITIES:
                queue.append((child, (*path, key), is_thing))
    return list(found.values())


def _children(
    node: Any, path: tuple[str, ...], inside_thing: bool
) -> Iterator[tuple[Entity | None, str, Any, bool]]:
    """Per child: the entity it is, if any; its key; itself; and True where its own children are mere traits."""
    holders = frozenset(en.stem(word) for key in path for word in en.split_name(key))
    above = en.stem(en.split_name(path[-1])[-1]) if path and en.split_name(path[-1]) else ""
    if isinstance(node, Mapping):
        named = any(isinstance(node.get(key), str) for key in _NAME_KEYS)  # {"ship": {"name": …, "guns": 12}}
        for key, child in node.items():
            traits = inside_thing or (named and not isinstance(child, Mapping | list))
            for entity, below, leaf, is_thing in _member(str(key), child, path, holders, traits):
                yield entity and replace(entity, holder=above), below, leaf, is_thing
    elif isinstance(node, list):
        for child in node:
            yield from _item(child, holders, above)


def _item(child: Any, holders: frozenset[str], above: str) -> Iterator[tuple[Entity | None, str, Any, bool]]:
    """A member of a list: a name, or a thing with one."""
    if isinstance(child, str) and len(child) <= _LONGEST_NAME:
        yield Entity(child, tuple(en.split_name(child)), holders, holder=above), child, None, False
    elif isinstance(child, Mapping):
        name = next((child[key] for key in ("id", "name", "title") if isinstance(child.get(key), str)), None)
        if name:
            shown = str(child.get("name") or child.get("title") or name)
            yield Entity(name, tuple(en.split_name(shown)), holders, holder=above), name, child, True


def _member(
    key: str, child: Any, path: tuple[str, ...], holders: frozenset[str], inside_thing: bool
) -> Iterator[tuple[Entity | None, str, Any, bool]]:
    words = tuple(en.split_name(key))
    if not isinstance(child, Mapping):
        # {"inventory": {"gold": 5}} names a thing; {"day": 3} and the traits of a thing do not.
        named = len(path) == 1 and not inside_thing
        yield (Entity(key, words, holders) if named else None), key, child, False
        if isinstance(child, str) and not inside_thing and len(child) <= _LONGEST_NAME:
            above = holders | {en.stem(word) for word in words}
            yield Entity(child, tuple(en.split_name(child)), above, False), key, None, False
        return
    holds_things = any(isinstance(value, Mapping | list) for value in child.values())
    if holds_things or inside_thing:
        yield None, key, child, inside_thing
        return
    traits = frozenset(map(str, child))
    firm = bool(path) or bool(traits & _LIFELESS)
    yield Entity(key, words, holders, firm, traits=traits), key, child, firm
    for name_key in (*_NAME_KEYS, *_KIND_KEYS):
        if isinstance(child.get(name_key), str):
            named = name_key in _NAME_KEYS
            words = tuple(en.split_name(child[name_key]))
            yield Entity(key, words, holders, firm=named, kind=not named, traits=traits), key, None, False


@dataclass(frozen=True, slots=True)
class Mention:
    entity: Entity
    strength: float
    start: int  # token indices, end exclusive
    end: int


class EntityFinder:
    """Looks entities up by the stems of their words."""

    def __init__(self, entities: Sequence[Entity]) -> None:
        self.entities = entities
        self._by_stem: dict[str, list[Entity]] = {}
        self._titles: dict[str, list[tuple[str, ...]]] = {}  # by first word; the longest first
        for entity in sorted(entities, key=lambda entity: -len(entity.words)):
            if len(entity.words) > 1 and any(word in _FUNCTION for word in entity.words):
                self._titles.setdefault(entity.words[0], []).append(entity.words)
        for entity in entities:
            for word in set(entity.stems):
                if (word not in en.STOPWORDS and len(word) > 1) or _is_code(entity):
                    self._by_stem.setdefault(word, []).append(entity)

    def kinds(self) -> dict[str, tuple[str, ...]]:
        """The things of each kind; a kind is a noun they share or the key of the state that holds them."""
        found: dict[str, dict[str, None]] = {}
        for entity in self.entities:
            if entity.firm or entity.kind:
                animal = names_animal(entity.stems)
                for kind in (_noun(entity), entity.holder if entity.firm else "", "animal" if animal else ""):
                    if kind:
                        found.setdefault(kind, {})[entity.value] = None
        return {kind: tuple(values) for kind, values in found.items()}

    def people(self) -> frozenset[str]:
        """The names of somebody."""
        return frozenset(entity.value for entity in self.entities if entity.firm and is_person(entity))

    def vocabulary(self) -> set[str]:
        """The words of all names."""
        return {word for entity in self.entities for word in entity.words}

    def join_titles(self, tokens: Sequence[Token]) -> list[Token]:
        """Names with small words in them as one token each: "A History of Bridges" is no history of anything."""
        joined: list[Token] = []
        at = 0
        while at < len(tokens):
            low = [token.low for token in tokens[at : at + _LONGEST_TITLE]]
            width = next((len(t) for t in self._titles.get(low[0], ()) if tuple(low[: len(t)]) == t), 1)
            whole = tokens[at : at + width]
            text, lower = " ".join(t.text for t in whole), " ".join(t.low for t in whole)
            joined.append(Token(text, lower) if width > 1 and not whole[0].quoted else tokens[at])
            at += width if not whole[0].quoted else 1
        return joined

    def find(self, tokens: Sequence[Token], start: int, end: int) -> Mention | None:
        """The best mention among `tokens[start:end]`, a noun phrase."""
        parts = [(part, at) for at in range(start, end) for part in en.split_name(tokens[at].low)]
        stems = [en.stem(part) for part, _ in parts]  # "INV-204" is one token and two words of a name
        candidates = {id(e): e for word in stems for e in self._by_stem.get(word, ())}
        best: Mention | None = None
        for entity in candidates.values():
            mention = self._match(entity, stems)
            if mention and (best is None or mention.strength > best.strength):
                best = mention
        if best is None or (best.entity.kind and self._is_one_of_several(best.entity)):
            return None
        return replace(best, start=parts[best.start][1], end=parts[best.end - 1][1] + 1)

    def _is_one_of_several(self, entity: Entity) -> bool:
        """ "the dog" where there are two: which, cannot be told."""
        same = (other for other in self._by_stem[entity.stems[-1]] if other.stems == entity.stems)
        return len({other.value for other in same}) > 1

    def _match(self, entity: Entity, stems: list[str]) -> Mention | None:
        words = entity.stems
        faded = 0.0 if entity.firm else 0.15
        for at in range(len(stems) - len(words) + 1):
            if tuple(stems[at : at + len(words)]) == words:
                strength = 1.0 + 0.05 * (len(words) - 1) - faded
                return Mention(entity, strength, at, at + len(words))
        if not entity.firm or _is_code(entity):
            return None
        if words[-1] in stems:  # "the hound" for grey_hound; "the brass key" is not rusty_key
            at = stems.index(words[-1])
            others = [word for word in stems[:at] if word not in en.STOPWORDS and word not in words]
            if not others:
                return Mention(entity, 0.8 + 0.05 * sum(word in stems for word in words), at, at + 1)
            return None
        if stems and stems[0] in words and len(self._by_stem[stems[0]]) == 1:
            alone = len(stems) == 1  # "the blood" for blood_sample
            near = len(stems) == 2 and en.distance(stems[1], words[-1], 2) <= 2 and len(stems[1]) > 3
            if alone or near:
                return Mention(entity, 0.6, 0, len(stems))
        return None
