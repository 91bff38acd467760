"""What a release promises: one version everywhere, a dated changelog, archives that name what exists."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from narratoria import __version__

ROOT = Path(__file__).parents[1]
PROJECT: Any = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_changelog_begins_with_this_version_and_its_date() -> None:
    first = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert first is not None
    assert re.fullmatch(rf"Unreleased|{re.escape(__version__)} - \d{{4}}-\d\d-\d\d", first[1])


def test_links_of_the_readme_lead_to_the_repository_where_it_stands_alone() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for one in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(one["pattern"], one["replacement"], text)
    targets = re.findall(r"\]\(([^)]+)\)", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    assert len(targets) > 20
    assert [one for one in targets if not one.startswith("https://")] == []


@pytest.mark.parametrize("name", PROJECT["project"]["optional-dependencies"])
def test_every_extra_is_named_in_the_readme(name: str) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"`{name}`" in text or name == "default"


def test_the_bill_of_materials_names_the_wheel_and_what_it_needs(tmp_path: Path) -> None:
    wheel = tmp_path / "narratoria-9.9.9-py3-none-any.whl"
    about = "Name: narratoria\nVersion: 9.9.9\nLicense-Expression: MIT\n"
    about += "Requires-Dist: click>=8\nRequires-Dist: pytest; extra == 'web'\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("narratoria-9.9.9.dist-info/METADATA", about)
    subprocess.run(
        [sys.executable, ROOT / "scripts" / "make_sbom.py", wheel], check=True, capture_output=True
    )
    bill = json.loads(wheel.with_suffix(".cdx.json").read_text(encoding="utf-8"))
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", "9.9.9")
    assert (
        bill["metadata"]["component"]["hashes"][0]["content"]
        == hashlib.sha256(wheel.read_bytes()).hexdigest()
    )
    refs = [one["bom-ref"] for one in bill["components"]]
    assert len(refs) == len(set(refs)) > 10
    own, *others = bill["dependencies"]
    assert own == {"ref": "pkg:pypi/narratoria@9.9.9", "dependsOn": [one for one in refs if "/click@" in one]}
    assert {one for other in others for one in other["dependsOn"]} <= set(refs)
