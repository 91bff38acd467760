"""A document that somebody else wrote is read as JSON within bounds, or refused with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from narratoria.kinds.openapi.api_file import apis_from_data, read_api
from narratoria.kinds.openapi.document import DocumentInvalid, read_document

HEAD = "openapi: 3.0.0\n"


def read(yaml: str) -> dict[str, Any]:
    data = dict(read_document(HEAD + yaml).data)
    assert data.pop("openapi") == "3.0.0"
    return data


def test_merged_keys_that_double_at_each_line_are_read_at_once() -> None:
    lines = ["x0: &a0 {k: v}"] + [f"x{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 60)]
    assert read("\n".join(lines))["x59"] == {"k": "v"}


def test_the_first_of_merged_objects_counts_and_own_keys_before_it() -> None:
    assert read("d: &d {a: 1, b: 2, c: 3}\ny: {<<: [{a: 9}, *d], b: 8}")["y"] == {"a": 9, "b": 8, "c": 3}


@pytest.mark.parametrize(
    ("yaml", "why"),
    [
        (
            "\n".join(["x0: &a0 {}"] + [f"x{n}: &a{n} {{l: *a{n - 1}, r: *a{n - 1}}}" for n in range(1, 60)]),
            "aliases that copy more than",
        ),
        (
            "\n".join(
                ["x0: &a0 {}"] + [f"x{n}: &a{n} {{<<: *a{n - 1}, k{n}: *a{n - 1}}}" for n in range(1, 60)]
            ),
            "aliases that copy more than",
        ),
        (
            "\n".join(["x0: &a0 []"] + [f"x{n}: &a{n} [*a{n - 1}]" for n in range(1, 200)]),
            "nested deeper than 100",
        ),
        ("x: &a [*a]", r"line 2: \*a is inside of itself"),
        ("x: *a", r"line 2: \*a has no anchor"),
        ('r: {200: a,\n  "200": b}', "line 3: the key '200' is there twice"),
        ("x: {<<: 1}", "line 2: << takes an object"),
        ("x: !!binary aGk=", "line 2: the tag !!binary"),
        ("x: !!set {a, b}", "line 2: the tag !!set"),
        ("x: !!timestamp 2020-01-01", "line 2: the tag !!timestamp"),
        ("x: !local 1", "line 2: the tag !local"),
        ("x: .nan", "line 2: the number .nan"),
        ("x: -.inf", "line 2: the number -.inf"),
        ("? [a]\n: 1", "line 2: a key that is no text"),
        ("x: 1\n---\ny: 2", "line 3: a second document"),
    ],
)
def test_what_json_cannot_say_is_refused_with_its_line(yaml: str, why: str) -> None:
    with pytest.raises(DocumentInvalid, match=why):
        read(yaml)


def test_keys_and_dates_are_texts_and_the_rest_is_as_in_yaml() -> None:
    assert read('200: a\ntrue: b\nx: 2020-01-01\ny: "200"\nz: [1, 1.5, yes, ~, !!str 5]') == {
        "200": "a", "true": "b", "x": "2020-01-01", "y": "200", "z": [1, 1.5, True, None, "5"]
    }  # fmt: skip


@pytest.mark.parametrize("spec", ['{"openapi":"3.0.0","x":"\ud800"}', "a\0b", "a\ud800b"])
def test_half_a_character_or_a_zero_byte_is_an_invalid_document(spec: str) -> None:
    with pytest.raises(DocumentInvalid):
        read_document(spec)


async def test_a_fetched_document_that_is_not_utf_8_is_refused_as_a_file_is(api: Any, tmp_path: Path) -> None:
    content = b'{"openapi": "3.0.0", "info": {"title": "caf\xe9"}, "paths": {}}'
    api.answer("GET /api.json", (200, {}, content))
    (fetched,) = apis_from_data({"pets": {"spec": f"{api.url}/api.json"}}).apis
    with pytest.raises(DocumentInvalid, match="not UTF-8 at byte 43"):
        await read_api(fetched)
    file = tmp_path / "api.json"
    file.write_bytes(content)
    with pytest.raises(DocumentInvalid, match="not UTF-8"):
        read_document(file)
