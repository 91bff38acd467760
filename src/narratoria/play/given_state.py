"""A state that somebody gives a story to begin with, compared with the state the story knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from narratoria.play.story import Story, rule_book
from narratoria.play.story_skills import story_skills
from narratoria.story_check.read_state import tests_of
from narratoria.story_check.written_state import StatePath, WrittenState


def unknown_keys(story: Story, state: Mapping[str, Any]) -> list[str]:
    """Return a line for each key of `state` that the story neither reads nor writes; none for a story without rules."""
    if story.rules is None:
        return []
    library = story_skills(story) if story.skills or (story.root / "skills").is_dir() else None
    book = rule_book(story, story.rules, library)
    written = WrittenState(book)
    known = {*written.values}
    for place in book.places:
        for test in tests_of(place.case.when):
            known.update(test.path[: at + 1] for at in range(len(test.path)))
    return [_line(path, known) for path in _unknown(state, (), known, written)]


def _unknown(
    tree: Any, above: StatePath, known: set[StatePath], written: WrittenState
) -> Iterator[StatePath]:
    """Yield the highest paths that nothing knows."""
    if not isinstance(tree, Mapping):
        return
    for key, value in tree.items():
        path = (*above, key)
        if path in known or written.has(path):
            yield from _unknown(value, path, known, written)
        else:
            yield path


def _line(path: StatePath, known: set[StatePath]) -> str:
    beside = [str(one[-1]) for one in known if one[:-1] == path[:-1]]
    near = difflib.get_close_matches(str(path[-1]), beside, 1, 0.6)
    if near:
        hint = f"did you mean {'.'.join(map(str, (*path[:-1], near[0])))!r}?"
    else:
        hint = f"there are: {', '.join(sorted(beside))}" if beside else "check its spelling"
    return f"{'.'.join(map(str, path))}: no rule reads it, and no rule or tool writes it; {hint}"
