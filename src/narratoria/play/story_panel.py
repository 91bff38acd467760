"""The panel beside a story: `[[panel]]` of `story.toml`, read and checked against what the story writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from narratoria.errors import StoryProblem
from narratoria.narrator.rules.fillable import slots
from narratoria.play.story_keys import PanelTable
from narratoria.story_check import RuleBook
from narratoria.story_check.rule_book import did_you_mean
from narratoria.story_check.written_state import WrittenState
from narratoria.toml_lines import toml_problem
from narratoria.tools.schema.tables import read_as

NEEDS: Final = {"place": "path", "things": "path", "facts": "facts", "endings": "endings"}
"""The key that a kind of part cannot do without."""
TESTS: Final = ("exists", "missing")
"""Tests that `when` of a panel knows beside a value."""


def read_panel(data: Any, fail: Callable[[str, str], Exception]) -> tuple[PanelTable, ...]:
    """Return the parts of a panel in their order; raise `fail(key, problem)` for the first mistake."""
    if not isinstance(data, list):
        raise fail("panel", f"expected tables, written [[panel]], got {data!r}")
    return tuple(_part(one, at, fail) for at, one in enumerate(data))


def _part(data: Any, at: int, fail: Callable[[str, str], Exception]) -> PanelTable:
    part = read_as(PanelTable, data, lambda path, problem: fail(f"panel[{at}]{_below(path)}", problem))
    key = NEEDS.get(part.kind)
    if key is not None and not getattr(part, key):
        raise fail(f"panel[{at}]", f"a part of the kind {part.kind!r} needs {key!r}")
    for number, fact in enumerate(part.facts):
        for path, value in _leaves(fact.when):
            if isinstance(value, list):
                where = f"panel[{at}].facts[{number}].when"
                raise fail(where, f"{'.'.join(path)}: a list; a panel compares with one value, or asks "
                           f"for {' or '.join(TESTS)}")  # fmt: skip
    return part


def _below(path: str) -> str:
    return f".{path}" if path and not path.startswith("[") else path


def _leaves(when: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the paths that a condition names, each with its value."""
    for key, value in when.items():
        if key in TESTS and above:
            yield above, None
        elif isinstance(value, Mapping) and value:
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def panel_problems(panel: Sequence[PanelTable], book: RuleBook) -> Iterator[StoryProblem]:
    """Yield the paths that nothing ever writes, and endings that no rule comes to."""
    if not panel:
        return
    written = WrittenState(book)
    file: Path = book.root / "story.toml"
    for at, part in enumerate(panel):
        asked = [(f"panel[{at}].path", tuple(part.path.split(".")))] if part.path else []
        for number, fact in enumerate(part.facts):
            asked += [(f"panel[{at}].facts[{number}].when", path) for path, _ in _leaves(fact.when)]
        for key, path in asked:
            if not written.has(path):
                shown = ".".join(path)
                hint = did_you_mean(shown, written.paths(), "known are")
                yield toml_problem(
                    file, key, f"key {key!r}: no tool and no rule ever writes {shown}; {hint}", "warning"
                )
        endings = written.texts_at(("ending", "id"))
        for name in part.endings:
            if name not in endings and not written.mentions(name):
                key = f"panel[{at}].endings.{name}"
                own = {str(one) for one in written.values.get(("ending", "id"), ()) if not slots(one)}
                yield toml_problem(
                    file,
                    key,
                    f"key {key!r}: no rule comes to this ending; {did_you_mean(name, own)}",
                    "warning",
                )
