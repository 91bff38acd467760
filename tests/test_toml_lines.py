"""Lines of keys in TOML: every key that `tomllib` reads has one, and it is the line it stands in."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from narratoria.errors import StoryInvalid
from narratoria.toml_lines import key_lines, key_path, line_of, read_toml

ROOT = Path(__file__).parents[1]
TEXT = '''# a comment with [brackets] = 1
title = "a = [b]"
"quoted key".x = 1
when = 2026-11-16 05:00:00

[opening]
narrative = """
choices = [not this] ""
[[rule]]
"""
choices = ["A", # "B"
  "C", 'D']

[[rule]]
id = "one"
calls = [
  { tool = "walk", input = { to.place = "x" } },
  # between

  { tool = "run", input = {} },
]
  [[rule.cases]]
  when = { bell.rung = { at_lest = 3 } }
  [[rule.cases]]
  narrative = \'\'\'it's\'\'\'
  [rule.cases.set]
  a = true
[[rule]]
id = "two"
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("title", 2),
        ("when", 4),
        ("opening", 6),
        ("opening.choices", 11),
        ("opening.choices[1]", 12),
        ("opening.choices[2]", 12),
        ("rule[0]", 14),
        ("rule[0].calls[0].tool", 17),
        ("rule[0].calls[0].input.to.place", 17),
        ("rule[0].calls[1].input", 20),
        ("rule[0].cases[0].when.bell.rung.at_lest", 23),
        ("rule[0].cases[1].narrative", 25),
        ("rule[0].cases[1].set.a", 27),
        ("rule[1].id", 29),
    ],
)
def test_a_key_has_the_line_it_stands_in(key: str, line: int) -> None:
    assert key_lines(TEXT)[key_path(key)] == line


def paths(value: Any, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    found = {path} if path else set()
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        found |= paths(one, (*path, key))
    return found


@pytest.mark.parametrize(
    "text", [TEXT, *(path.read_text(encoding="utf-8") for path in ROOT.glob("*/**/*.toml"))]
)
def test_every_key_that_is_read_has_a_line(text: str) -> None:
    data, lines = tomllib.loads(text), key_lines(text)
    arrays = {("rule",), ("finally",), ("rule", "cases")}
    missing = {path for path in paths(data) - lines.keys() if _without_numbers(path) not in arrays}
    assert not {path for path in missing if not any(one[: len(path)] == path for one in lines)}
    assert lines.keys() <= paths(data)
    assert list(lines.values()) == sorted(lines.values())


def _without_numbers(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    return tuple(part for part in path if not isinstance(part, int))


def test_a_key_that_is_missing_is_looked_for_in_the_table_around_it(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(TEXT, encoding="utf-8")
    assert line_of(file, "rule[1].narrative") == 28
    assert line_of(file, "nothing") == 1  # the file itself is a table
    assert line_of(tmp_path / "none.toml", "title") is None


ONE_OF_SEVERAL = """[[rule]]
id = "a"
[[rule.cases]]
x = 1
[[rule.cases]]
y = 1
[[rule]]
id = "b"
"""


@pytest.mark.parametrize(
    ("at", "header", "line", "says"),
    [
        (1, "[rule]", 7, "line 1 says [rule]: write [[rule]] there too"),
        (3, "[rule.cases]", 5, "line 3 says [rule.cases]: write [[rule.cases]] there too"),
        (5, "[rule.cases]", 5, "[rule.cases] after [[rule.cases]] in line 3: write [[rule.cases]] here too"),
        (7, "[rule]", 7, "[rule] after [[rule]] in line 1: write [[rule]] here too"),
    ],
)
def test_a_header_with_single_brackets_is_named(
    at: int, header: str, line: int, says: str, tmp_path: Path
) -> None:
    lines = ONE_OF_SEVERAL.split("\n")
    lines[at - 1] = header
    file = tmp_path / "a.toml"
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(StoryInvalid) as caught:
        read_toml(file)
    assert caught.value.problems[0].line == line
    assert says in caught.value.problems[0].message


def test_no_damage_to_a_file_keeps_the_reading_from_its_end(tmp_path: Path) -> None:
    """Each character is dropped, and each line doubled or cut: the reading ends, in a file or in a problem."""
    small = '[a]\nb.c = [1, { d = "x" }]\n[[e]]\nf = \'y\'\n[[e.g]]\nh = """z"""\n'
    cut = [small[:at] + small[at + 1 :] for at in range(len(small))] + [
        small[:at] for at in range(len(small))
    ]
    lines = small.split("\n")
    again = ["\n".join([*lines, lines[at]]) for at in range(len(lines))]
    file = tmp_path / "a.toml"
    for text in [*cut, *again, *(text.replace("[[", "[", 1).replace("]]", "]", 1) for text in again)]:
        file.write_text(text, encoding="utf-8")
        try:
            read_toml(file)
        except StoryInvalid as error:
            assert error.problems[0].line
