"""A file tells one story, and a function fits a screen: their sizes have limits."""

from __future__ import annotations

from pathlib import Path

import narratoria

PACKAGE = Path(narratoria.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES_OF_A_FILE = 400


def test_no_file_is_longer_than_four_hundred_lines():
    lines = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8").count("\n") for path in MODULES}
    assert {name: count for name, count in lines.items() if count > MOST_LINES_OF_A_FILE} == {}
