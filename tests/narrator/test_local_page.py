"""What docs/narrators.md shows is what happens."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

pytest.importorskip("tokenizers")

from narratoria.evals.scoring import load_set
from narratoria.lore.lore_files import read_lore

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "narrators.md").read_text(encoding="utf-8")


def test_the_program_on_the_page_prints_what_the_page_says() -> None:
    [program] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    expected = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "docs/narrators.md", "exec"), {})  # noqa: S102 - our own page
    assert printed.getvalue() == expected


def test_the_lore_file_on_the_page_fires_as_described() -> None:
    [text] = re.findall(r"```markdown\n(.*?)```", PAGE, re.DOTALL)
    _, [entry] = read_lore("page", text, lambda part: len(part.split()))
    assert entry.fires("climb to the lamp room", {})
    assert not entry.fires("climb to the lamp room", {"lamp": {"lit": True}})


def test_the_numbers_of_prompts_in_the_table_of_figures_are_those_of_the_files() -> None:
    table = (ROOT / "evals" / "README.md").read_text(encoding="utf-8")
    for name in ("development", "development-2", "development-3", "held-out", "held-out-2"):
        assert f"| {name} | {len(load_set(ROOT / 'evals' / f'{name}.jsonl'))} |" in table
