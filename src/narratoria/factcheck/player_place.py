"""The player's place, by the conventions of states, and places that are certainly others.

The player's place is a text, or a thing with `id`, `name` or `title`, under `place`, `location`, `room` or the like, at
the top of the state or in `player`. Other places are known where the state lists them (`rooms`, `visited`, `exits`), or
by a few words no two of which can be one place: nobody stands in the kitchen and in the cellar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from narratoria.narrator.english.words import STOPWORDS, split_name, stem, word_set

Path: TypeAlias = tuple[str, ...]

_PLACE: Final = word_set("place location room where area")
_PLAYER: Final = word_set("player you me hero self protagonist")
_LISTS: Final = word_set("rooms places locations areas map visited exits")
_NAMES: Final = ("id", "name", "title", "label")
_MAX_PLACES: Final = 2_000
_DEPTH: Final = 6

# Rooms, those that may be parts of each other in one line.
_ROOMS: Final = (
    "kitchen pantry larder scullery galley",
    "store storeroom cellar basement",
    "bedroom nursery",
    "bathroom laundry",
    "library study",
    "parlour parlor lounge",
    "attic loft",
    "crypt dungeon",
    "stable barn",
    "workshop",
    "armoury armory",
    "ballroom",
    "classroom",
)
_BELOW: Final = "cellar basement crypt dungeon"
_ABOVE: Final = "tower turret belfry attic loft roof rooftop"
_OUTSIDE: Final = (
    "garden yard courtyard street beach shore forest woods meadow field orchard harbour harbor quay jetty pier marsh "
    "moor desert graveyard"
)


def _apart() -> dict[str, frozenset[str]]:
    """By a word for a place: the stems of those that are another place for certain."""
    rooms = [room.split() for room in _ROOMS]
    indoors = [word for room in rooms for word in room]
    pairs = [(room, [word for other in rooms if other is not room for word in other]) for room in rooms]
    pairs += [(_BELOW.split(), _ABOVE.split()), (indoors, _OUTSIDE.split())]
    found: dict[str, set[str]] = {}
    for some, others in [*pairs, *((b, a) for a, b in pairs)]:
        for word in some:
            found.setdefault(stem(word), set()).update(map(stem, others))
    return {word: frozenset(others) for word, others in found.items()}


_APART: Final = _apart()


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The player's place: the path of what says so, that value, and the stems of all its names."""

    path: Path
    value: Any
    stems: frozenset[str]


def whereabouts(state: Mapping[str, Any]) -> Whereabouts | None:
    """The player's place in the state; None where it has none. Several answers are taken together."""
    found = [*_said(state, ()), *_said_of_player(state)]
    if not found:
        return None
    path, value = found[0]
    return Whereabouts(path, value, frozenset(word for _, text in found for word in _stems(text)))


def _said(node: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    for key, value in node.items():
        if str(key).casefold() not in _PLACE:
            continue
        if isinstance(value, str) and value.strip():
            yield (*path, str(key)), value
        elif isinstance(value, Mapping):
            for name in _NAMES:
                if isinstance(value.get(name), str) and value[name].strip():
                    yield (*path, str(key), name), value[name]


def _said_of_player(state: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    for key, value in state.items():
        if str(key).casefold() in _PLAYER and isinstance(value, Mapping):
            yield from _said(value, (str(key),))


def _stems(text: str) -> list[str]:
    return [stem(word) for word in split_name(text) if word not in STOPWORDS]


# --- other places ----------------------------------------------------------------------------------------


def is_elsewhere(words: Sequence[str], here: Whereabouts, state: Mapping[str, Any]) -> bool | None:
    """Tells if the words name another place than the player's; None where nobody can tell."""
    said = [stem(word) for word in words]
    if len(said) > 1 and said[-1] == "room":
        said.pop()  # the lantern room is not any room
    if not said:
        return None
    if said[-1] in here.stems:
        return False
    kinds = here.stems & _APART.keys()
    if kinds and kinds <= _APART.get(said[-1], frozenset()):
        return True
    listed = list(_listed(state))
    there = [path for path, names in listed if said[-1] in names]
    at = [path for path, names in listed if names & here.stems]
    # The kitchen may lie in the house, and the house hold the kitchen.
    apart = bool(there) and not any(_encloses(a, b) or _encloses(b, a) for a in there for b in at)
    return True if apart else None


def _listed(state: Mapping[str, Any]) -> Iterator[tuple[Path, frozenset[str]]]:
    """The places a state lists, each with its path and the stems of its names."""
    queue: list[tuple[Any, Path]] = [(state, ())]
    for node, path in queue:
        if len(queue) > _MAX_PLACES or len(path) > _DEPTH:
            break
        kind = path[-1].casefold() if path else ""
        keyed = isinstance(node, Mapping) and kind != "exits"  # whose keys are directions
        for key, value in _members(node):
            here = (*path, key)
            if kind in _LISTS and (names := _names(key if keyed else "", value)):
                yield here, names
            if isinstance(value, Mapping | list):
                queue.append((value, here))


def _members(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, Mapping):
        yield from ((str(key), value) for key, value in node.items())
    else:
        yield from ((str(index), value) for index, value in enumerate(node))


def _names(key: str, value: Any) -> frozenset[str]:
    """`rooms.cellar = {…}`, `visited.cellar = true`, `exits.down = "cellar"`, `rooms = ["cellar"]` name the cellar."""
    texts = [value] if isinstance(value, str) else [key]
    if isinstance(value, Mapping):
        texts += [value[name] for name in (*_NAMES, "to") if isinstance(value.get(name), str)]
    return frozenset(word for text in texts for word in _stems(text))


def _encloses(outer: Path, inner: Path) -> bool:
    return inner[: len(outer)] == outer
