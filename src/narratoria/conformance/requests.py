"""The requests sent to a tool under check: one good one, then those a careless or future runtime might send."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from narratoria.events import JsonObject
from narratoria.kinds.manifest import Manifest

MIB: Final = 1024 * 1024
_STRANGE: Final = " Kyōto 京都 🐉 \u202eשלום"


@dataclass(frozen=True)
class Request:
    label: str
    stdin: bytes
    request_id: str
    rule: str | None
    """The rule that judges the tool's reaction; None for the good request."""


def requests_for(
    tool: str,
    given: JsonObject,
    manifest: Manifest | None,
    *,
    state: JsonObject | None = None,
    operation: str | None = None,
    dependencies: JsonObject | None = None,
) -> Iterator[Request]:
    """Yield the requests, the good one first. The state is sent only to a tool whose manifest wants it."""
    whole: JsonObject = {
        "requestId": "check-0",
        "tool": tool,
        "operation": operation or (manifest.operation if manifest else "run"),
        "input": given,
        "dependencies": dependencies or {},
    }
    if manifest and manifest.wants_state:
        whole["state"] = state or {}

    def variant(label: str, rule: str | None, **changes: Any) -> Request:
        return Request(label, msgspec.json.encode({**whole, **changes}), whole["requestId"], rule)

    yield variant("with the given input", None)
    yield Request("with nothing on stdin", b"", "", "bears-no-input")
    yield variant(
        "with fields of a later version",
        "bears-unknown-fields",
        deadline="2099-01-01T00:00:00Z",
        x_future={"nested": [1, {"deep": None}]},
    )
    yield variant("with non-ASCII input", "bears-non-ascii", input=_strange(given))
    yield variant("with 1 MiB of input", "bears-large-input", input=_large(given))
    yield variant("with values of the wrong type", "bears-wrong-types", input=_wrong(given))
    yield variant("with an input that is no object", "bears-wrong-types", input=["not", "an", "object"])
    yield Request("with text that is not JSON", b"this is not JSON\n", "", "bears-garbage")


def _strange(given: JsonObject) -> JsonObject:
    made = {key: value + _STRANGE if isinstance(value, str) else value for key, value in given.items()}
    return made if made != given else {**given, "text": _STRANGE}


def _large(given: JsonObject) -> JsonObject:
    key = next((key for key, value in given.items() if isinstance(value, str)), "text")
    return {**given, key: "x" * MIB}


def _wrong(given: JsonObject) -> JsonObject:
    made: JsonObject = {key: _of_other_type(value) for key, value in given.items()}
    return made or {"text": [None]}


def _of_other_type(value: Any) -> Any:
    if isinstance(value, str):
        return [5]
    return 7 if isinstance(value, list | dict) else "neither number nor flag"
