"""State that rules set and nothing reads, beside a path that is read: perhaps that one is meant."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from narratoria.errors import StoryProblem
from narratoria.narrator.rules.fillable import slots
from narratoria.state import split_path
from narratoria.story_check.read_state import tests_of
from narratoria.story_check.rule_book import RuleBook
from narratoria.story_check.written_state import StatePath, state_paths

_NEAR: Final = 0.7
_SHORTEST: Final = 4  # letters of a name that can be told to be misspelt


def unread_problems(book: RuleBook) -> Iterator[StoryProblem]:
    """Yield the keys of `set` that no rule reads and no tool mentions, if a key beside them is read and much alike."""
    read, begun = _read_paths(book), state_paths(book.state)
    told: set[StatePath] = set()
    for place in book.places:
        for path in state_paths(place.case.patch):
            if path in told or path in begun or _is_read(path, read) or path[0] == "ending":
                continue
            near = _meant(path, read)
            if near and not book.sources.mention(str(path[-1])):
                told.add(path)
                shown = ".".join(map(str, path))
                message = f"{shown}: nothing reads it; did you mean {near!r}?"
                yield book.problem(place.key("set"), message, "warning", f".{shown}")


def _read_paths(book: RuleBook) -> set[StatePath]:
    """Return the paths that conditions and texts of the rules read."""
    found: set[StatePath] = set()
    for place in book.places:
        case = place.case
        found.update(test.path for test in tests_of(case.when))
        texts = [case.narrative, case.then, case.instead, case.unavailable, case.patch, case.choices]
        for slot in slots([*texts, *(call.input for call in case.calls)]):
            if slot.startswith("state."):
                found.add(tuple(split_path(slot.removesuffix(".*"))[1:]))
    return found


def _is_read(path: StatePath, read: set[StatePath]) -> bool:
    return any(path[: len(one)] == one or one[: len(path)] == path for one in read)


def _meant(path: StatePath, read: set[StatePath]) -> str:
    """Return a path that is read and differs in the last name only: letters swapped, or one missing or too many."""
    name = str(path[-1])
    beside = {
        str(one[len(path) - 1]) for one in read if len(one) >= len(path) and one[: len(path) - 1] == path[:-1]
    }
    for near in get_close_matches(name, beside, 3, _NEAR) if len(name) >= _SHORTEST else ():
        if sorted(near) == sorted(name) or _is_one_more(near, name) or _is_one_more(name, near):
            return ".".join([*map(str, path[:-1]), near])
    return ""


def _is_one_more(longer: str, shorter: str) -> bool:
    """Tell if a word is another with a letter more; one that ends in another letter may be a plural, or a number."""
    return longer[:-1] != shorter and any(
        longer[:at] + longer[at + 1 :] == shorter for at in range(len(longer) - 1)
    )
