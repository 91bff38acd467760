"""`--openapi`: operations of OpenAPI documents on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

INPUT = ("--input", '{"petId": 7}')


@pytest.fixture
def document(narratoria: Any, pet_shop: str) -> Path:
    """The document as a file, whose own address says no host."""
    path: Path = narratoria.folder / "pets.json"
    path.write_bytes(httpx2.get(f"{pet_shop}/pets.json").content)
    return path


def test_the_operations_of_a_document_are_listed(narratoria: Any, document: Path, pet_shop: str) -> None:
    ended = narratoria("tools", "--openapi", document, "--api-url", pet_shop, "--json")
    assert ended.code == 0, ended.err
    found = {one["name"]: one for one in ended.json["tools"]}
    assert found["pets.getpet"]["kind"] == "openapi"
    assert found["pets.getpet"]["from"] == f"Pets: GET {pet_shop}/pets/{{petId}}"
    assert any("its secret is not given" in line for line in ended.json["notes"])


def test_an_operation_is_called_with_its_secret_by_reference(
    narratoria: Any, document: Path, pet_shop: str
) -> None:
    options = ("--openapi", f"shop={document}", "--api-url", pet_shop, "--api-secret", "key=PETS_KEY")
    ended = narratoria("call", "shop.getpet", *INPUT, *options, "--json", PETS_KEY="sesame")
    assert ended.code == 0, ended.err
    assert ended.json["output"] == {"path": "/pets/7", "key": "given"}
    unset = narratoria("call", "shop.getpet", *INPUT, *options, "--json")
    assert "PETS_KEY is not set" in unset.json["error"]


def test_a_document_is_fetched_and_its_own_address_is_relative_to_it(narratoria: Any, pet_shop: str) -> None:
    options = ("--openapi", f"{pet_shop}/pets.json", "--api-secret", "pets.key=PETS_KEY")
    ended = narratoria("call", "pets.getpet", *INPUT, *options, "--json", PETS_KEY="sesame")
    assert ended.code == 0, ended.err
    assert ended.json["output"] == {"path": "/v1/pets/7", "key": "given"}
    missing = narratoria("call", "missing.getpet", "--openapi", f"{pet_shop}/missing.json", "--json")
    assert missing.code == 1
    assert "missing.json: cannot be fetched: 404" in missing.json["error"]


def test_a_plan_runs_operations(narratoria: Any, document: Path, pet_shop: str) -> None:
    plan = narratoria.folder / "plan.json"
    call = {"toolId": "one", "toolPath": "pets.getpet", "input": {"petId": 1}, "dependencies": []}
    plan.write_text(json.dumps({"requestId": "p", "tools": [call]}))
    options = ("--openapi", document, "--api-url", f"pets={pet_shop}", "--api-secret", "key=PETS_KEY")
    ended = narratoria("run", plan, *options, "--json", PETS_KEY="sesame")
    assert ended.code == 0, ended.err
    assert ended.json["toolResults"][0]["output"]["path"] == "/pets/1"
    linted = narratoria("lint", plan, *options, "--json")
    assert linted.code == 0, linted.out


@pytest.mark.parametrize(
    "options, said",
    [
        (["--openapi", "absent.json"], "absent.json: there is no such file"),
        (["--api-url", "http://127.0.0.1"], "name it with --openapi"),
        (["--openapi", "pets.json", "--openapi", "./pets.json"], "two documents are named 'pets'"),
        (["--openapi", "pets.json", "--api-url", "cats=http://127.0.0.1"], "which document it is for: pets"),
        (["--openapi", "pets.json", "--api-secret", "hunter2"], "the name of a variable, not a secret"),
    ],
    ids=str,
)
def test_options_that_cannot_be_meant_are_usage_errors(
    narratoria: Any, document: Path, options: list[str], said: str
) -> None:
    ended = narratoria("tools", *options)
    assert ended.code == 2
    assert said in " ".join(ended.err.split())
    assert "hunter2" not in ended.err
