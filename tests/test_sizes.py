"""A file tells one story, and a function fits a screen: their sizes have limits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import narratoria

PACKAGE = Path(narratoria.__file__).parent
TEXTS = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
BRANCHES = (ast.If, ast.IfExp, ast.ExceptHandler, ast.Assert, *LOOPS)


def complexities(node: ast.AST, own: list[ast.AST]) -> Iterator[tuple[ast.AST, int]]:
    """Yield each function with the ways through it, as radon counts them; `own` are nodes that a function has."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            within: list[ast.AST] = []
            yield from complexities(child, within)
            yield child, 1 + sum(map(ways, within))
        else:
            own.append(child)
            yield from complexities(child, own)


def ways(node: ast.AST) -> int:
    found = int(isinstance(node, BRANCHES))
    if isinstance(node, ast.BoolOp):
        found += len(node.values) - 1
    elif isinstance(node, ast.comprehension):
        found += 1 + len(node.ifs)
    elif isinstance(node, ast.Match):
        found += len(node.cases)
    elif isinstance(node, (ast.Try, *LOOPS)):
        found += bool(node.orelse)
    return found


LONGER = {"kinds/process/fork_server.py": 480}
"""One file by need: it runs under the interpreter of a tool, which has no package of ours."""


def test_no_file_is_longer_than_four_hundred_lines():
    lines = {name: text.count("\n") for name, text in TEXTS.items()}
    assert {name: count for name, count in lines.items() if count > LONGER.get(name, 400)} == {}


def test_no_function_is_longer_than_sixty_lines_or_has_more_than_twenty_ways_through_it():
    found = [
        f"{name}:{function.lineno} {function.name}: {function.end_lineno - function.lineno + 1} lines, {count} ways"
        for name, text in TEXTS.items()
        for function, count in complexities(ast.parse(text), [])
        if function.end_lineno - function.lineno >= 60 or count > 20
    ]
    assert found == []


def test_the_ways_through_a_function_are_counted():
    source = "def f(a, b):\n  for x in a:\n    if x and b: return [y for y in x if y]\n  return 1 if b else 2"
    assert [count for _, count in complexities(ast.parse(source), [])] == [7]
