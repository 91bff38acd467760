"""Mutants: the code with one small mistake in it, drawn by lot. The tests must notice; survivors are listed.

    python scripts/mutants.py --count 24 --seed 1            # draw 24, and try each
    python scripts/mutants.py --seed 1 --first 7 --count 1   # the eighth of them again
    python scripts/mutants.py --only run/executor.py         # of one module

Each is tried in a copy of the package: first by the tests that import the module, then by the quick ones of its room.
A survivor is answered by a test, or by taking out code that changes nothing.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = ROOT / "src" / "narratoria"
# The tests of a room that are quick for what they cover; `make test` has the rest.
_SESSION: Final = (
    "memory",
    "assets",
    "resources",
    "filesystem",
    "journal",
    "history",
    "stateful",
    "variants",
)
_STORE: Final = (
    "journal",
    "history",
    "integrity",
    "versions",
    "portable",
    "stateful",
    "bad_storage",
    "variants",
)
_PROCESS: Final = ("process", "supervisor", "launch", "hostile", "guardian", "environment", "crash_lines")
ROOMS: Final = {
    "run": ("tests/run", "tests/chaos", "tests/kinds/test_compose.py"),
    "session": ("tests/run/test_executor.py", *(f"tests/session/test_{one}.py" for one in _SESSION)),
    "store": ("tests/store", *(f"tests/session/test_{one}.py" for one in _STORE)),
    "kinds/process": tuple(f"tests/kinds/test_{one}.py" for one in _PROCESS),
}
ELSEWHERE: Final = ("postgres.py", "postgres_keeper.py")  # its tests need a server
NOTHING_COLLECTED: Final = 5  # the exit status of pytest where every test was deselected
NOT: Final = "not slow and not postgres and not browser and not model"
COSTLY: Final = ("test_hostile_import.py", "test_server_kill.py", "test_kill.py")
SWAPS: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One mistake: the text of the module with it, and where it is."""

    module: Path
    line: int
    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.module.relative_to(SOURCE)}:{self.line}: {self.what}"


class Places(ast.NodeVisitor):
    """The nodes of a module that can be changed, without annotations, docstrings and what only a type checker reads."""

    def __init__(self) -> None:
        self.found: list[tuple[ast.AST, str]] = []
        self.inside = 0  # functions

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.inside += 1
        for statement in node.body:
            self.visit(statement)
        self.inside -= 1

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """The words of an error are not looked into; that it is raised is tried where its condition is."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Words for people."""

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        if self.inside:
            if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
                self.found.append((node, "compare"))
            elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in SWAPS:
                self.found.append((node, "operator"))
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
                self.found.append((node, "not"))
            elif isinstance(node, ast.Constant) and type(node.value) in (bool, int):
                self.found.append((node, "constant"))
            elif isinstance(node, ast.Return) and node.value is not None:
                self.found.append((node, "return"))
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
                self.found.append((node, "statement"))
            elif isinstance(node, ast.Assign | ast.AugAssign):
                self.found.append((node, "assignment"))
        super().generic_visit(node)


def mutate(node: ast.AST, kind: str) -> str:
    """Change a node in place; return what was done."""
    before = ast.unparse(node)
    if kind == "compare" and isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[assignment]
    elif kind == "operator" and isinstance(node, ast.BoolOp | ast.BinOp):
        node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
    elif kind == "not" and isinstance(node, ast.UnaryOp):
        node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
    elif kind == "constant" and isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else int(str(node.value)) + 1
    elif (kind == "return" and isinstance(node, ast.Return)) or (
        kind == "statement" and isinstance(node, ast.Expr)
    ):
        node.value = ast.Constant(None)
    elif isinstance(node, ast.Assign | ast.AugAssign):
        if isinstance(node, ast.AugAssign):
            node.value = ast.parse(f"type({ast.unparse(node.target)})()", mode="eval").body
        else:
            node.value = ast.Constant(None)
    return f"{before.splitlines()[0][:70]} -> {ast.unparse(node).splitlines()[0][:70]}"


def modules(only: str | None) -> list[Path]:
    found = [path for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py"))]
    return [
        path for path in found if path.name != "__init__.py" and (only or "") in str(path.relative_to(SOURCE))
    ]


def draw(count: int, seed: int, only: str | None = None) -> Iterator[Mutant]:
    """Draw mutants: every place is as likely as any other."""
    places = []
    for module in modules(only):
        visitor = Places()
        visitor.visit(ast.parse(module.read_text()))
        places += [(module, number) for number in range(len(visitor.found))]
    for module, number in random.Random(seed).sample(places, min(count, len(places))):  # noqa: S311
        tree = ast.parse(module.read_text())
        visitor = Places()
        visitor.visit(tree)
        node, kind = visitor.found[number]
        line = getattr(node, "lineno", 0)
        what = mutate(node, kind)
        yield Mutant(module, line, what, ast.unparse(ast.fix_missing_locations(tree)))


def tests_for(module: Path) -> list[list[str]]:
    """The tests to try one after the other: those that import the module, then the others of its room."""
    name = ".".join(("narratoria", *module.relative_to(SOURCE).with_suffix("").parts))
    room = next(room for room in ROOMS if module.is_relative_to(SOURCE / room))
    files: list[Path] = []
    for place in ROOMS[room]:
        path = ROOT / place
        files += sorted(path.rglob("test_*.py")) if path.is_dir() else [path]
    near = [one for one in files if re.search(rf"{re.escape(name)}\b", one.read_text())]
    rest = [
        one for one in files if one not in near and "/mcp/" not in str(one) and "/openapi/" not in str(one)
    ]
    return [[str(one.relative_to(ROOT)) for one in part] for part in (near, rest) if part]


def noticed_by(mutant: Mutant, copy: Path, patience: float) -> str | None:
    """Try a mutant; return the test that noticed it, or None for a survivor."""
    target = copy / mutant.module.relative_to(ROOT)
    whole = target.read_text()
    target.write_text(mutant.text)
    try:
        for files in tests_for(mutant.module):
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-x",
                "-q",
                "-p",
                "no:cacheprovider",
                "-m",
                NOT,
                *files,
            ]
            with (
                tempfile.TemporaryFile("w+") as told,
                subprocess.Popen(
                    command,
                    cwd=ROOT,
                    env={**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
                    stdout=told,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                ) as tests,
            ):
                try:
                    status = tests.wait(patience)
                except subprocess.TimeoutExpired:
                    os.killpg(tests.pid, signal.SIGKILL)
                    return "the time, which ran out"
                if status not in (0, NOTHING_COLLECTED):
                    told.seek(0)
                    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", told.read(), re.MULTILINE)
                    return failed[1] if failed else f"pytest, which ended with status {status}"
    finally:
        target.write_text(whole)
    return None


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--count", type=int, default=24)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", help="part of the path of a module")
    options.add_argument(
        "--patience", type=float, default=900.0, help="seconds of tests, after which it hangs"
    )
    options.add_argument("--list", action="store_true", help="draw only")
    chosen = options.parse_args()
    drawn = list(draw(chosen.first + chosen.count, chosen.seed, chosen.only))[chosen.first :]
    survivors: list[Mutant] = []
    with tempfile.TemporaryDirectory(prefix="narratoria-mutants-") as folder:
        copy = Path(folder)
        for beside in ROOT.iterdir():  # stories and examples are found from the package
            if beside.name != "src":
                (copy / beside.name).symlink_to(beside)
        shutil.copytree(SOURCE, copy / "src" / "narratoria", ignore=shutil.ignore_patterns("__pycache__"))
        for number, mutant in enumerate(drawn, chosen.first):
            started = time.monotonic()
            if chosen.list:
                print(f"{number}: {mutant}")
                continue
            test = noticed_by(mutant, copy, chosen.patience)
            survivors += [mutant] if test is None else []
            verdict = "SURVIVES" if test is None else f"killed by {test}"
            print(f"{number}: {mutant}: {verdict} ({time.monotonic() - started:.0f} s)", flush=True)
    tried = len(drawn)
    if not chosen.list:
        print(f"{tried - len(survivors)} of {tried} mutants were killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
