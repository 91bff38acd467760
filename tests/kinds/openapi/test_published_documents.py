"""Documents that others published, each operation a tool; and our own. `scripts/npm_needs.sh` installs the others."""

import os
from pathlib import Path

import pytest

from narratoria import openapi_tools

ROOT = Path(os.environ.get("NARRATORIA_SOURCE", Path(__file__).parents[3]))
FOLDER = ROOT / "build" / "npm" / "node_modules" / "@readme" / "oas-examples"
OURS = sorted((ROOT / "contracts").glob("*openapi*"))
OTHERS = sorted(FOLDER.glob("3.*/*/*.*"))


def test_published_documents_are_here():
    if not OTHERS:
        pytest.skip("published documents are NOT tried here: npm could not install @readme/oas-examples")


@pytest.mark.parametrize("path", [*OURS, *OTHERS], ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_operation_of_a_document_is_a_tool(path):
    tools = openapi_tools(path, "http://127.0.0.1:1")
    assert not [note for note in tools.notes if "left out" in note]
    names = [tool.name for tool in tools]
    assert len(set(names)) == len(names)
