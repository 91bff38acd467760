"""Types that many threads read at once, for the first time."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "narratoria"
THREADS = """
import dataclasses, sys, threading, msgspec
from narratoria.typed_values import convert, converter, decoder

sys.setswitchinterval(1e-6)
MAKE = {"struct": msgspec.defstruct, "dataclass": dataclasses.make_dataclass}
READ = {
    "convert": lambda kind: convert(DATA, kind),
    "converter": lambda kind: converter(kind)(DATA),
    "decoder": lambda kind: decoder(kind).decode(msgspec.json.encode(DATA)),
}
DATA = {f"field{number}": [{"leaf1": 1}] for number in range(20)}
make, read = MAKE[sys.argv[1]], READ[sys.argv[2]]
for _ in range(100):
    leaf = make("Leaf", [(f"leaf{number}", int | None, None) for number in range(20)])
    kind = make("Kind", [(f"field{number}", list[leaf] | None, None) for number in range(20)])
    together, values = threading.Barrier(4), []

    def go():
        together.wait()
        values.append(read(kind))

    threads = [threading.Thread(target=go) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert [value.field3[0].leaf1 for value in values] == [1] * 4
"""


@pytest.mark.parametrize("made", ["struct", "dataclass"])
@pytest.mark.parametrize(
    "read", ["convert", *[pytest.param(read, marks=pytest.mark.slow) for read in ("converter", "decoder")]]
)
def test_threads_may_read_a_new_type_at_once(made: str, read: str) -> None:
    # msgspec alone ends the process with a segmentation fault here
    ended = subprocess.run([sys.executable, "-c", THREADS, made, read], timeout=60)
    assert ended.returncode == 0


def test_nobody_else_asks_msgspec_for_a_type() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        if path.name == "typed_values.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "msgspec.convert":
                found.append(f"{path}:{node.lineno}")
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
                ("msgspec.json.decode", "msgspec.json.Decoder")
            ):
                typed = any(keyword.arg == "type" for keyword in node.keywords)
                if typed or (ast.unparse(node.func).endswith("Decoder") and node.args):
                    found.append(f"{path}:{node.lineno}")
    assert not found, "use narratoria.typed_values"
