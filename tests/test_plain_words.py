"""Plain words: docstrings name the thing, and references to the specifications stay in comments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import narratoria
from narratoria.conformance.protocol_rules import RULES

ROOT = Path(__file__).parents[1]
SOURCE = Path(narratoria.__file__).parent  # the package that is tested, wherever it is installed
QUESTIONS = frozenset(
    ["What", "Whether", "Where", "Who", "Whom", "Whose", "How", "Which", "Why", "When", "Whatever", "Whoever"]
)
# Docstrings that still begin so, by room: an upper bound that may only shrink.
LEFT = {"narrator": 2}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings of modules, classes and functions, and the strings that document an attribute."""
    for node in ast.walk(ast.parse(path.read_text())):
        body = getattr(node, "body", ())
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = statement.value.value
                if isinstance(text, str):
                    yield statement.lineno, text


def rooms() -> list[str]:
    return sorted({path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")})


@pytest.mark.parametrize("room", rooms())
def test_a_docstring_says_what_the_thing_is_or_does(room: str) -> None:
    place = SOURCE / room
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text.split(chr(10))[0]}"
        for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])
        for line, text in docstrings(path)
        if text.split() and text.split()[0].strip(",:;.?") in QUESTIONS
    ]
    most = LEFT.get(room, 0)
    assert len(found) <= most, "\n".join(found)


def test_no_text_that_a_user_reads_names_a_section_of_a_specification() -> None:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        documentation = {line for line, _ in docstrings(path)}
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Constant) or node.lineno in documentation:
                continue
            if isinstance(node.value, str) and "§" in node.value:
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno}: {node.value[:80]}")
    assert not found, "name the rule in words, or link docs/protocol.md:\n" + "\n".join(found)


CLAUSE = re.compile(r"§|(?<![\d,.])00[0-5]\b")  # a number of a specification, or of one of its sections


def test_no_docstring_names_a_section_of_a_specification() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text[:80]}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, text in docstrings(path)
        if CLAUSE.search(text)
    ]
    assert not found, "say it in words, and keep the number in a comment:\n" + "\n".join(found)


def test_the_rules_for_tools_have_names_and_no_numbers() -> None:
    for rule in RULES:
        assert re.fullmatch(r"[a-z][a-z0-9-]*", rule.name), rule.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_names_a_section_of_a_specification(page: Path) -> None:
    if page.name == "decisions.md":  # it is about the specifications
        return
    assert "§" not in page.read_text(), "name the rule in words"
