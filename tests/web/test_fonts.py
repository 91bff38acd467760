"""The page's typefaces: cut from packages, served small, and never waited for."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import RunningServer, _start_in
from narratoria.web import fonts
from narratoria.web.fonts import FACES, SCRIPTS, cut_fonts, font_styles, fonts_folder, read_fonts

font_tools = pytest.importorskip("fontTools.ttLib", reason="the tests of the typefaces need the extra web")
Open = Callable[..., Any]
MOST_BYTES = 120_000


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of Latin and Cyrillic letters."""
    folder = tmp_path_factory.mktemp("fonts")
    command = [sys.executable, "-m", "narratoria.web.font_cutting", str(folder), "latin", "cyrillic"]
    subprocess.run(command, check=True)
    return folder


@pytest.mark.slow
def test_a_cut_font_has_the_letters_of_its_script_and_names_its_license(cut: Path) -> None:
    serif = font_tools.TTFont(cut / "serif-400-latin.woff2")
    assert {ord("a"), ord("é"), ord("“")} <= serif.getBestCmap().keys()
    assert ord("ж") not in serif.getBestCmap()
    assert "Open Font License" in serif["name"].getDebugName(13)
    assert "Source" not in serif["name"].getDebugName(1), "the name is reserved for the whole font"
    assert ord("ж") in font_tools.TTFont(cut / "serif-400-cyrillic.woff2").getBestCmap()
    assert "Apache" in font_tools.TTFont(cut / "sans-400-latin.woff2")["name"].getDebugName(13)


def test_a_page_gets_at_most_120_kb_of_fonts(cut: Path) -> None:
    files = read_fonts(cut)
    assert sum(len(data) for name, data in files.items() if "latin" in name) < MOST_BYTES
    assert sum(len(data) for data in files.values()) < MOST_BYTES + 20_000, "with Cyrillic prose"
    styles = font_styles(files)
    assert styles.count("@font-face") == len(files)
    assert styles.count("font-display: swap") == len(files)
    assert font_styles({}) == ""
    assert {face.file_name(script) for face in FACES for script in SCRIPTS} >= files.keys()


def test_without_its_packages_the_page_has_the_fonts_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fonts_folder(tmp_path) is not None
    monkeypatch.setattr(fonts, "_ROBOTO", "font-that-is-not-there")
    assert fonts_folder(tmp_path) is None
    assert read_fonts(tmp_path) == {}


async def test_fonts_are_cut_only_once(tmp_path: Path) -> None:
    (tmp_path / "done").touch()
    assert await cut_fonts(tmp_path) is False


@pytest.mark.browser
def test_a_browser_shows_a_story_in_them_and_keeps_them(cut: Path, tmp_path: Path, open_page: Open) -> None:
    home = tmp_path / "home"
    folder = fonts_folder(home)
    assert folder is not None
    shutil.copytree(cut, folder)
    server: RunningServer = _start_in(home)
    try:
        page = open_page(server.at(f"/play/{server.new_session('lighthouse')}"))
        page.evaluate("document.fonts.ready.then(() => true)")
        loaded = page.evaluate(
            "[...document.fonts].filter(one => one.status === 'loaded').map(one => one.family)"
        )
        assert {"Narratoria Sans", "Narratoria Serif"} <= {name.strip('"') for name in loaded}
        sizes = page.evaluate(
            "performance.getEntriesByType('resource').filter(one => one.name.includes('/fonts/'))"
            ".map(one => [one.transferSize, one.name])"
        )
        assert 0 < sum(size for size, _ in sizes) < MOST_BYTES
        assert not [name for _, name in sizes if "cyrillic" in name], "only what the page has letters of"
        whole = page.evaluate(
            "performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))"
            ".reduce((sum, one) => sum + one.transferSize, 0)"
        )
        assert whole < 220_000
        with server.client() as client:
            answer = client.get(sizes[0][1])
            assert answer.headers["content-type"] == "font/woff2"
            assert "immutable" in answer.headers["cache-control"]
            assert client.get("/static/fonts/none.woff2").status_code == 404
    finally:
        server.stop()


def test_cutting_ends_with_the_server_that_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "narratoria.web.font_cutting", str(tmp_path / "fonts")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.close()  # as a kill of the server does
        assert process.wait(60) == -signal.SIGTERM
    assert not (tmp_path / "fonts" / "done").exists()
