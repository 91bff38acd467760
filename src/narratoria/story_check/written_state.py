"""The state that a story can have: what it begins with, what its rules set, and what its tools may write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from narratoria.narrator.rules.fillable import slots
from narratoria.narrator.rules.patterns import Choice, Group, Parts
from narratoria.narrator.rules.rule_file import Case, Rule
from narratoria.story_check.rule_book import RuleBook
from narratoria.story_check.tool_sources import ToolSources

StatePath: TypeAlias = tuple[str | int, ...]

_SLOT: Final = re.compile(r"\{[^{}|]*\|?([^{}]*)\}")


class WrittenState:
    """The paths that something writes. A path is known from the story's own files, or mentioned in a tool's source."""

    def __init__(self, book: RuleBook, cases: Iterable[tuple[Rule, Case]] | None = None) -> None:
        self._sources: ToolSources = book.sources
        self.values: dict[StatePath, list[Any]] = {}
        self._passed: set[str] = set()  # words that reach tools through their input
        for path, value in state_paths(book.state).items():
            self.values[path] = [value]
        chosen = list(cases) if cases is not None else [(one.rule, one.case) for one in book.places]
        for rule, case in chosen:
            for change in (case.patch, case.expect):
                for path, value in state_paths(change).items():
                    self.values.setdefault(path, []).append(value)
            given = [call.input for call in case.calls]
            self._passed.update(_words(given))
            if any(not name.startswith("state.") for name in slots([*given, case.patch])):
                for pattern in rule.patterns:
                    self._passed.update(_pattern_words(pattern.parts))
        for call in book.rules.closing:
            self._passed.update(_words(call.input))
        self._begun = set(_words(book.state))  # a tool may take names from the state

    def has(self, path: StatePath) -> bool:
        """Tell if the path is known, or a tool may write it."""
        return path in self.values or all(
            isinstance(part, int) or path[: at + 1] in self.values or self.mentions(part)
            for at, part in enumerate(path)
        )

    def mentions(self, word: str | int) -> bool:
        """Tell if a tool may write this word, as a key or as a value."""
        return isinstance(word, int) or word in self._begun or self._writes(word)

    def _writes(self, word: str) -> bool:
        return word in self._passed or self._sources.mention(word)

    def by_tools(self, path: StatePath) -> bool:
        """Tell if a tool may write what is at the path, or the whole that it is in."""
        last = path[-1] if path else ""
        return isinstance(last, int) or self._writes(last)

    def writes_key(self, word: str) -> bool:
        """Tell if something surely has a key of this name."""
        return any(word in path for path in self.values) or self._sources.write_key(word)

    def texts_at(self, path: StatePath) -> set[str]:
        """Return the texts that may be at a path: those of the story's files, and those in the tools' sources."""
        own = {value for value in self.values.get(path, ()) if isinstance(value, str) and not slots(value)}
        return own | (set(self._sources.quoted) | self._passed if self.by_tools(path) else set())

    def paths(self) -> set[str]:
        return {".".join(map(str, path)) for path in self.values}


def state_paths(tree: Any, path: StatePath = ()) -> dict[StatePath, Any]:
    """Return the value at each path of a tree, at every depth."""
    found: dict[StatePath, Any] = {path: tree} if path else {}
    inner = tree.items() if isinstance(tree, Mapping) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        found |= state_paths(value, (*path, key))
    return found


def _words(value: Any) -> Iterator[str]:
    """Yield the keys and texts of a value, and the parts of those that are paths."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _words(key)
            yield from _words(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _words(inner)
    elif isinstance(value, str):
        if slots(value):  # the names of slots are read, not passed on; a default is
            yield from re.split(r"[\s.]+", _SLOT.sub(r" \1 ", value).strip())
        else:
            yield value
            if " " not in value:
                yield from value.split(".")


def _pattern_words(parts: Parts) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Choice | Group):
            for way in part.ways:
                yield from _pattern_words(way)
                yield " ".join(one for one in way if isinstance(one, str))
