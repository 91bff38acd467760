"""What README and the pages show is true: their code runs, and prints what they say."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    return FENCE.findall(page.read_text(encoding="utf-8"))


def run(command, cwd, **more):
    environment = {**os.environ, "NARRATORIA_HOME": str(cwd / "home"), "NO_COLOR": "1", "COLUMNS": "100"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment, cwd=cwd, **more
    )


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(kind == "python" for kind, _ in blocks(page))],
    ids=lambda page: page.name,
)
def test_the_code_of_a_page_prints_what_the_page_says(page, tmp_path):
    """All Python of a page is one program, run from top to bottom; its `text` blocks are its output."""
    script = tmp_path / "page.py"
    script.write_text("\n\n".join(body for kind, body in blocks(page) if kind == "python"), encoding="utf-8")
    ran = run([sys.executable, str(script)], tmp_path)
    assert ran.returncode == 0, ran.stderr
    shown = "".join(body for kind, body in blocks(page) if kind == "text")
    if shown:
        assert ran.stdout == shown


def commands(page):
    """`$ narratoria …` lines of console blocks that show their output, with that output."""
    for kind, body in blocks(page):
        if kind != "console":
            continue
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            if line.startswith("narratoria ") and output.strip():
                yield line, output


@pytest.mark.parametrize(
    ("line", "output"), [pair for page in PAGES[:1] for pair in commands(page)], ids=lambda text: text[:50]
)
def test_the_commands_of_the_readme_print_what_it_says(line, output, tmp_path):
    ran = run([sys.executable, "-m", *shlex.split(line)], ROOT)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == output


def test_every_link_between_pages_leads_somewhere():
    for page in PAGES:
        prose = FENCE.sub("", page.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
            assert (page.parent / target).exists() or (ROOT / target).exists(), (
                f"{page.name} links to {target}"
            )
