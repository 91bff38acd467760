"""The documentation site: every public name is documented, every page is built, and the tutorials' files work."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(os.environ.get("NARRATORIA_SOURCE", Path(__file__).parents[1]))


@pytest.fixture(scope="module")
def site() -> Any:
    spec = importlib.util.spec_from_file_location("make_site", ROOT / "scripts" / "make_site.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_and_member_has_a_docstring(site: Any) -> None:
    names = site.public_names()
    assert sum(map(len, names.values())) > 250
    silent = []
    for module, listed in names.items():
        for name in listed:
            value = getattr(importlib.import_module(module), name)
            if not (site.documentation(value) or site.written_below(module, name)):
                silent.append(f"{module}.{name}")
            if inspect.isclass(value):
                silent += [
                    f"{module}.{name}.{line}" for line in site.members(value) if line and "`: " not in line
                ]
    assert silent == []


def test_the_reference_has_every_name_that_a_module_lists(site: Any) -> None:
    parts = re.split(r"^## `([\w.]+)`$", site.python_page(), flags=re.MULTILINE)
    shown = {
        module: set(re.findall(r"^### (\w+)$", text, re.MULTILINE))
        for module, text in zip(parts[1::2], parts[2::2], strict=True)
    }
    listing = set()
    for path in (ROOT / "src" / "narratoria").rglob("*.py"):
        if "\n__all__" in path.read_text(encoding="utf-8"):
            place = path.relative_to(ROOT / "src").with_suffix("")
            listing.add(".".join(place.parts).removesuffix(".__init__"))
    assert len(listing) > 15
    assert str(ROOT) not in "".join(parts)  # no value tells where the page was written
    top, own = shown["narratoria"], importlib.import_module("narratoria")
    for module in sorted({*shown, *listing}):
        loaded = importlib.import_module(module)
        lacking = {
            name
            for name in getattr(loaded, "__all__", ())
            if name not in shown.get(module, ()) and not inspect.ismodule(getattr(loaded, name))
        }
        elsewhere = {name for name in lacking & top if getattr(own, name) is getattr(loaded, name)}
        assert lacking == elsewhere, module
    for module, name in (
        ("narratoria.telemetry", "capture_content"),
        ("narratoria.mcp_server.stdio_server", "serve_stdio"),
        ("narratoria.mcp_server.http_server", "serve_http"),
    ):
        assert name in shown[module], name


def test_every_command_is_on_the_page_of_commands(site: Any) -> None:
    from narratoria.cli import COMMANDS

    page = site.commands_page()
    assert [name for name in COMMANDS if f"## `narratoria {name}`" not in page] == []
    assert "narratoria sessions undo" in page


def test_every_page_is_in_the_navigation(site: Any, tmp_path: Path) -> None:
    listed = set(re.findall(r'"([\w/-]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8")))
    site.write(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")} == listed


@pytest.mark.parametrize("page, contract", [("story", "story-toml"), ("narrator", "narrator-toml")])
def test_every_key_of_a_storys_files_is_in_the_reference(
    site: Any, tmp_path: Path, page: str, contract: str
) -> None:
    site.write(tmp_path)
    text = (tmp_path / "reference" / f"{page}.md").read_text(encoding="utf-8")
    schema = json.loads((ROOT / "contracts" / f"{contract}.schema.json").read_text(encoding="utf-8"))
    tables = {"": schema, **schema["$defs"]}
    for name, table in tables.items():
        part = text.partition(f"## {name}\n")[2].partition("\n## ")[0] if name else text
        for key, value in table["properties"].items():
            row = f"| `{key}` | "
            assert row in part, f"{name}.{key}"
            assert value["description"] in part, f"{name}.{key}"


def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(
    site: Any, tmp_path: Path
) -> None:
    for name in ("zensical.toml", "docs", "README.md"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    site.write(tmp_path / "build" / "site-src")
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    pages = sorted((tmp_path / "build" / "site").rglob("*.html"))
    assert len(pages) >= 35
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="(https?://[^"]+)"', text)
        assert [one for one in loaded if "github.com" not in one] == [], page.name


def test_the_first_story_can_be_played_as_the_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "first-story.md").read_text(encoding="utf-8")
    written = 0
    for kind, body in re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        named = re.search(r"^# (bell/\S+)$", body, re.MULTILINE)
        place = tmp_path / (named[1] if named else "bell/tools/ring.tool.json")
        if named or kind == "json":
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(body, encoding="utf-8")
            written += 1
    assert written == 4
    (tmp_path / "bell" / "tools" / "ring").chmod(0o755)
    command = [sys.executable, "-m", "narratoria", "play", "bell", "--terminal", "--json"]
    environment = os.environ | {"NARRATORIA_HOME": str(tmp_path / "home")}
    said = "pull on the rope\ntoll the bell\nlook up\nring the bell\nring the bell\n"
    played = subprocess.run(
        command, cwd=tmp_path, env=environment, input=said, capture_output=True, text=True, timeout=120
    )
    assert played.returncode == 0, played.stderr
    turns = [json.loads(line) for line in played.stdout.splitlines()]
    told = [turn["narrative"] for turn in turns]
    assert "Dong!" in told[1] and "Dong! Dong!" in told[2]
    assert "rung 2 times" in told[3]
    assert "enough" in told[5] and turns[-1]["state"]["bell"] == {"rung": 3}


@pytest.mark.slow
def test_the_tool_in_a_language_without_a_kit_conforms_is_published_and_is_called(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "first-tool.md").read_text(encoding="utf-8")
    part = page.partition("## In a language without a kit")[2]
    (program,) = re.findall(r"^```perl\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    (manifest,) = re.findall(r"^```json\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    (tmp_path / "tide-teller").write_text(program, encoding="utf-8")
    (tmp_path / "tide-teller").chmod(0o755)
    (tmp_path / "tide-teller.tool.json").write_text(manifest, encoding="utf-8")
    servers = {
        "moon": {"command": sys.executable, "args": ["-m", "narratoria", "mcp", "--tools", str(tmp_path)]}
    }
    (tmp_path / "host.json").write_text(json.dumps({"mcpServers": servers}))
    environment = os.environ | {"NARRATORIA_HOME": str(tmp_path / "home"), "LC_ALL": "C"}

    def narratoria(*arguments: str) -> str:
        command = [sys.executable, "-m", "narratoria", *arguments]
        ended = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    assert "0 failed" in narratoria("check", "./tide-teller")
    asked = ("--input", '{"harbour": "Ærøskøbing"}', "--json")
    called = json.loads(narratoria("call", "./tide-teller", *asked))
    assert called["output"] == {"tides": {"Ærøskøbing": {"height": 2}}}
    through = json.loads(narratoria("call", "moon.tide-teller", "--mcp", "host.json", *asked))
    assert through["output"] == called["output"]
