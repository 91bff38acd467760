"""The page while a model writes: its words as they come, and what becomes of them when it falls silent."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.scripted_models import model

from narratoria.testing import Hangs, Says

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
STORY = Path(__file__).resolve().parents[2] / "stories" / "torch"


@contextlib.contextmanager
def game(url: str, home: Path) -> Iterator[str]:
    """`narratoria play` with that model; the address of its page."""
    settings = {"NARRATORIA_LLM_URL": url, "NARRATORIA_LLM_MODEL": "m", "NARRATORIA_LLM_TIMEOUT": "6"}
    process = subprocess.Popen(
        [sys.executable, "-m", "narratoria", "play", str(STORY), "--no-browser", "--port", "0", "--narrator", "llm"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **settings, "NARRATORIA_HOME": str(home)},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(rb"http://\S+", line):
                yield found[0].decode()
                break
        else:
            raise AssertionError("the server ended before it said its address")
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_words_come_as_they_are_written_and_go_when_the_model_falls_silent(
    tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    with (
        model(Hangs('{"narrative": "The tide hums back at')) as server,
        game(server.url, tmp_path) as address,
    ):
        page = open_page(address)
        box = page.get_by_role("textbox", name="What do you do?")
        box.fill("sing to the sea")
        box.press("Enter")
        story = page.get_by_role("log", name="Story")
        expect(story).to_contain_text("The tide hums back at", timeout=15_000)
        expect(story).not_to_contain_text("The tide hums", timeout=15_000)
        expect(page.get_by_role("status")).to_have_text("Your turn", timeout=15_000)
        expect(story).not_to_contain_text("The tide hums")


def test_of_an_answer_that_is_refused_and_mended_only_the_mended_one_stays(
    tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    wrong = {"narrative": "You fly.", "calls": [{"tool": "fly", "input": {}}], "order": "together"}
    good = {"narrative": "The tide hums back.", "calls": [], "order": "together"}
    with (
        model(Says(json.dumps(wrong)), Says(json.dumps(good))) as server,
        game(server.url, tmp_path) as address,
    ):
        page = open_page(address)
        box = page.get_by_role("textbox", name="What do you do?")
        box.fill("sing to the sea")
        box.press("Enter")
        story = page.get_by_role("log", name="Story")
        expect(story).to_contain_text("The tide hums back.", timeout=15_000)
        expect(story).not_to_contain_text("You fly.")
