"""`narratoria schema` prints the contracts that are committed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

CONTRACTS = Path(__file__).parent.parent.parent / "contracts"
FILES = {
    "tool-protocol": "tool-protocol.openapi.yaml",
    "plan-json": "plan-json.schema.json",
    "execution-result": "execution-result.schema.json",
    "tool-manifest": "tool-manifest.schema.json",
    "story-toml": "story-toml.schema.json",
    "narrator-toml": "narrator-toml.schema.json",
}


@pytest.mark.parametrize("name", FILES)
def test_a_contract_is_printed_as_it_is_committed(narratoria: Any, name: str) -> None:
    ended = narratoria("schema", name)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (CONTRACTS / FILES[name]).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_json_is_printed_of_every_contract(narratoria: Any, name: str) -> None:
    assert narratoria("schema", name, "--json").json == yaml.safe_load((CONTRACTS / FILES[name]).read_text())


def test_without_a_name_they_are_listed(narratoria: Any) -> None:
    assert all(name in narratoria("schema").out for name in FILES)
    assert {one["name"]: one["file"] for one in narratoria("schema", "--json").json} == FILES


def test_an_unknown_name_is_a_usage_error_that_lists_the_known(narratoria: Any) -> None:
    ended = narratoria("schema", "plans")
    assert ended.code == 2
    assert "plan-json" in ended.err
