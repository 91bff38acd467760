"""The pages about memory, resources, prompts and planning show code that runs and output that is real."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("page", ["memory", "resources", "prompts", "planning"])
def test_the_code_of_a_page_prints_what_the_page_says(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", (DOCS / f"{page}.md").read_text(), re.M | re.S)
    script = tmp_path / f"{page}.py"
    script.write_text("\n\n".join(body for kind, body in blocks if kind == "python"))
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stderr == ""
    assert ran.stdout == "".join(body for kind, body in blocks if kind == "text")
