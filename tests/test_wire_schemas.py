"""The contracts are the types: generated, in step with the code, and of one mind with the parsers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
import yaml as pyyaml
from hypothesis import given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator

from narratoria.conformance import RULES
from narratoria.errors import PlanRejected, StoryInvalid, ToolValidationError
from narratoria.events import TOOL_EVENT_TYPES, decode_tool_event
from narratoria.kinds.manifest import parse_manifest
from narratoria.kinds.ndjson import Limits
from narratoria.kinds.process.process_tool import process_tool
from narratoria.narrator.rules.rule_file import Rules
from narratoria.play.story import Story
from narratoria.run.call_record import Call
from narratoria.run.plan import ExecutionResult, PlanDocument
from narratoria.run.records import call_result
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.wire_schemas import (
    CONTRACTS,
    _document,
    documents,
    execution_result,
    narrator_toml,
    plan_json,
    story_toml,
    tool_manifest,
    tool_protocol,
)
from narratoria.wire_schemas import yaml as our_yaml

ROOT = Path(__file__).parent.parent
SCHEMAS = [plan_json(), execution_result(), tool_manifest(), story_toml(), narrator_toml()]


def validator(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def component(name: str) -> jsonschema_rs.Draft202012Validator:
    protocol = tool_protocol()
    return validator({"$ref": f"#/components/schemas/{name}", "components": protocol["components"]})


PLAN, EVENT, REQUEST = validator(plan_json()), component("Event"), component("Request")
RESULT, MANIFEST = validator(execution_result()), validator(tool_manifest())
STORY, RULE_FILE = validator(story_toml()), validator(narrator_toml())


# --- the files -----------------------------------------------------------------------------------------


def test_the_committed_files_are_what_the_types_say() -> None:
    folder = ROOT / "contracts"
    stale = [
        name for name, text in documents().items() if (folder / name).read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run: python -m narratoria.wire_schemas"
    assert {path.name for path in folder.iterdir()} == set(documents())


def test_the_generator_writes_every_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "narratoria.wire_schemas", str(tmp_path / "made")]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    assert {
        path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "made").iterdir()
    } == documents()


def test_the_tool_protocol_is_valid_openapi() -> None:
    text = documents()["tool-protocol.openapi.yaml"]
    read = pyyaml.safe_load(text)
    assert read == tool_protocol()
    assert read["openapi"] == "3.1.0"
    OpenAPIV31SpecValidator(read).validate()


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema["title"])
def test_each_schema_is_valid_and_names_itself(schema: dict[str, Any]) -> None:
    jsonschema_rs.meta.validate(schema)
    assert schema["$schema"].endswith("2020-12/schema")
    assert schema["$id"] and schema["title"] and schema["description"]


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_field_is_described(name: str) -> None:
    document = CONTRACTS[name][1]()
    objects = [document, *document.get("$defs", {}).values()]
    objects += document.get("components", {}).get("schemas", {}).values()
    for schema in objects:
        for field, inner in schema.get("properties", {}).items():
            assert inner.get("description"), f"{schema['title']}.{field}"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_our_yaml_reads_back_as_it_was(value: Any) -> None:
    assert pyyaml.safe_load(our_yaml.dump(value)) == value


# --- events ----------------------------------------------------------------------------------------------

fields = st.sampled_from(
    [
        "version",
        "type",
        "level",
        "message",
        "fields",
        "patch",
        "assetId",
        "kind",
        "mediaType",
        "path",
        "metadata",
        "event",
        "payload",
        "errorCode",
        "errorMessage",
        "details",
        "ok",
        "summary",
        "requestId",
        "timestamp",
        "extra",
    ]
)
words = st.sampled_from(
    ["0", "log", "state_patch", "asset", "ui_event", "error", "done", "info", "debug", "x", ""]
)
events = st.dictionaries(
    fields, words | st.booleans() | st.none() | st.integers() | st.just({}) | st.just([])
)
near_events = st.builds(
    lambda event, changes: {**event, **changes},
    st.sampled_from(
        [
            example
            for schema in tool_protocol()["components"]["schemas"].values()
            for example in schema.get("examples", ())
        ]
    ),
    st.dictionaries(fields, words | st.none() | st.booleans() | st.just({}) | st.just([]), max_size=2),
)


@settings(max_examples=400)
@given(events | near_events)
def test_schema_and_decoder_agree_on_every_event(event: dict[str, Any]) -> None:
    try:
        decode_tool_event(msgspec.json.encode(event))
    except msgspec.ValidationError:
        accepted = False
    else:
        accepted = True
    assert EVENT.is_valid(event) == accepted


@pytest.mark.parametrize(
    "name", ["LogEvent", "StatePatchEvent", "AssetEvent", "UiEvent", "ErrorEvent", "DoneEvent"]
)
def test_every_event_has_an_example_that_decodes(name: str) -> None:
    examples = tool_protocol()["components"]["schemas"][name]["examples"]
    assert examples
    for example in examples:
        decode_tool_event(msgspec.json.encode(example))
        assert EVENT.is_valid(example)


async def test_what_a_tool_reads_on_stdin_fits_the_request_schema(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    tool = tmp_path / "reader"
    tool.write_text(f"#!/bin/bash\ncat > {seen}\necho '" + '{"version":"0","type":"done","ok":true}' + "'\n")
    tool.chmod(0o755)
    (tmp_path / "reader.tool.json").write_text(
        '{"name": "reader", "description": "Reads.", "wantsState": true}'
    )
    session = Session(state={"hp": 3})
    result = await ToolRegistry().executor.execute(process_tool(tool), {"a": 1}, session=session, call=Call())
    assert result.success, result.message
    request = json.loads(seen.read_text())
    REQUEST.validate(request)
    assert set(request) == set(tool_protocol()["components"]["schemas"]["Request"]["properties"])
    assert request["input"] == {"a": 1} and request["state"] == {"hp": 3}


# --- plans -----------------------------------------------------------------------------------------------

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 200)
    | st.sampled_from(["", " ", "a", "b"])
    | st.sampled_from([0.5, 1.0, 2e2, -0.0, 1e300])
)
marks = st.sampled_from(
    [{"$from": "t0"}, {"$from": 5}, {"$from": "t0", "pth": 1}, {"$literal": {"$from": 5}}, {"$literal": 1, "x": 2},
     {"$from": "t0", "path": ["a.b", 0], "default": {"$from": 5}}, {"$from": "t0", "path": [0.5]},
     {"$from": "t0", "path": [0.0]}, {"$from": "t0", "path": [True]}, {"$from": "t0", "path": ["a", 1e300]},
     {"$from": "t0", "path": None}, {"$from": "t0", "path": 7}, {"$from": "t0", "$literal": 1}]
)  # fmt: skip
inputs = (
    marks | st.fixed_dictionaries({"x": marks}) | st.fixed_dictionaries({"x": st.lists(marks, max_size=2)})
)
odd = scalars | st.just([]) | st.just({}) | st.just(["a"]) | st.just([1]) | st.just({"maxRetries": 101})
call_fields = st.sampled_from(
    ["toolId", "toolPath", "input", "dependencies", "required", "async", "retryPolicy", "unknown"]
)
plan_fields = st.sampled_from(
    ["requestId", "narrative", "tools", "parallel", "disabledSkills", "metadata", "unknown"]
)
retries = st.dictionaries(
    st.sampled_from(["maxRetries", "backoffMs", "x"]), st.integers(-1, 4_000_000) | scalars
)
metadata = st.dictionaries(
    st.sampled_from(["generationAttempt", "parentPlanId"]), st.integers(-1, 2) | scalars
)


@st.composite
def plans(draw: st.DrawFn) -> Any:
    """Plans that are nearly right: a good one with a few fields replaced or taken away."""
    calls: list[Any] = []
    for index in range(draw(st.integers(0, 2))):
        call: dict[str, Any] = {"toolId": f"t{index}", "toolPath": "x", "dependencies": [], "input": {}}
        call.update(draw(st.dictionaries(call_fields, odd, max_size=1)))
        if draw(st.booleans()):
            call["retryPolicy"] = draw(retries)
        if draw(st.booleans()):
            call["input"] = draw(inputs)
        if draw(st.integers(0, 9)) == 0:
            del call[draw(st.sampled_from(sorted(call)))]
        calls.append(call)
    plan: dict[str, Any] = {"requestId": "p", "tools": calls}
    plan.update(draw(st.dictionaries(plan_fields, odd, max_size=1)))
    if draw(st.booleans()):
        plan["metadata"] = draw(metadata)
    if draw(st.integers(0, 9)) == 0:
        del plan[draw(st.sampled_from(sorted(plan)))]
    return plan


def of_the_graph(problem: str) -> bool:
    """Problems that no schema can express."""
    return any(words in problem for words in ("already used", "no call has the toolId", "circular"))


@settings(max_examples=600)
@given(plans() | odd)
def test_schema_and_parser_agree_on_every_plan(plan: Any) -> None:
    try:
        PlanDocument.from_json(msgspec.json.encode(plan))
    except PlanRejected as rejected:
        accepted = all(of_the_graph(problem) for problem in rejected.problems)
    else:
        accepted = True
    assert PLAN.is_valid(plan) == accepted


def test_a_plan_that_python_makes_fits_the_schema() -> None:
    plan = PlanDocument.from_data(plan_json()["examples"][0])
    PLAN.validate(json.loads(plan.to_json()))
    PLAN.validate(json.loads(PlanDocument().to_json()))


# --- results and manifests -------------------------------------------------------------------------------


async def test_a_real_result_fits_its_schema(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text(
        "#!/bin/bash\necho '" + '{"version":"0","type":"log","level":"info","message":"m"}' + "'\nexit 3\n"
    )
    tool.chmod(0o755)
    record = Call()
    outcome = await ToolRegistry().executor.execute(process_tool(tool), {}, session=Session(), call=record)
    entry = call_result("t", outcome, record, 0.01)
    trace = json.loads(
        msgspec.json.encode(
            ExecutionResult(plan_id="p", success=False, tool_results=[entry], failed_tools=["t"])
        )
    )
    RESULT.validate(trace)
    assert trace["toolResults"][0]["events"] and trace["toolResults"][0]["errorCode"] == "NON_ZERO_EXIT"
    del trace["toolResults"][0]["retryCount"]
    assert not RESULT.is_valid(trace)


MANIFESTS = sorted([*ROOT.glob("examples/**/*.tool.json"), *ROOT.glob("stories/**/*.tool.json")])


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: os.path.relpath(path, ROOT))
def test_every_shipped_manifest_fits_its_schema(path: Path) -> None:
    MANIFEST.validate(json.loads(path.read_text(encoding="utf-8")))


GOOD = tool_manifest()["examples"][0]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"timeout": 0},
        {"timeout": "10"},
        {"name": "Torch Lighter"},
        {"name": None},
        {"description": ""},
        {"description": "x" * 201},
        {"colour": "red"},
        {"wantsState": "yes"},
        {"permissions": ["fs:read"]},
        {"permissions": [1]},
        {"skill": None, "title": "The torch"},
        {"retry": None},
        {"retry": {"maxRetries": -1}},
        {"retry": {"maxRetries": 1.0}},
        {"retry": {"maxRetries": 1.5}},
        {"limits": {"maxEvents": 5.0}},
        {"limits": {"maxEvents": 0}},
        {"limits": {"maxEvents": True}},
        {"timeout": 45},
        {"retry": {"maxRetries": 1, "backoff": {"type": "sometimes"}}},
        {"retry": {"backoff": {"type": "jittered", "base": {"type": "fixed", "delay": 1}, "jitter": 0.5}}},
        {"retry": {"backoff": {"type": "jittered", "base": {"type": "fixed", "delay": 1}, "jitter": 2}}},
        {"preconditions": [{"type": "permission", "permission": "fs:read", "critical": False}]},
        {"preconditions": [{"type": "weather"}]},
        {"preconditions": [{"type": "state"}]},
        {"effects": [{"type": "memory", "scope": "working", "key": "k", "value": 1}]},
        {"effects": [{"type": "memory", "scope": "nowhere", "key": "k"}]},
        {"effects": {}},
        {"parameters": {"type": "objekt"}},
        {"parameters": []},
        {"examples": [{"description": "", "input": {}}]},
        {"examples": [{"description": "x", "input": {}, "output": {}}]},
    ],
    ids=str,
)
def test_schema_and_loader_agree_on_manifests(change: dict[str, Any]) -> None:
    manifest = {**GOOD, **change}
    try:
        parse_manifest(manifest, where="here")
    except ToolValidationError:
        accepted = False
    else:
        accepted = True
    assert MANIFEST.is_valid(manifest) == accepted


# --- the files of a story ----------------------------------------------------------------------------------

STORIES = sorted(
    path.parent for path in [*ROOT.glob("stories/*/story.toml"), *ROOT.glob("examples/stories/*/story.toml")]
)


@pytest.mark.parametrize("folder", STORIES, ids=lambda path: path.name)
def test_the_files_of_every_shipped_story_fit_their_schemas(folder: Path) -> None:
    STORY.validate(tomllib.loads((folder / "story.toml").read_text(encoding="utf-8")))
    RULE_FILE.validate(tomllib.loads((folder / "narrator.toml").read_text(encoding="utf-8")))


TALE = {**story_toml()["examples"][0], "narrator": ["template"]}
MISSING = None


def as_toml(data: dict[str, Any]) -> str:
    """Return a TOML document, one key a line."""

    def value(one: Any) -> str:
        if isinstance(one, dict):
            return "{" + ", ".join(f"{json.dumps(key)} = {value(item)}" for key, item in one.items()) + "}"
        if isinstance(one, list):
            return "[" + ", ".join(map(value, one)) + "]"
        return json.dumps(one)

    return "".join(f"{json.dumps(key)} = {value(one)}\n" for key, one in data.items() if one is not MISSING)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"id": MISSING},
        {"id": "The Torch"},
        {"title": MISSING},
        {"title": "  "},
        {"title": 3},
        {"premise": MISSING},
        {"author": "Ada", "note": "Hello."},
        {"author": ["Ada"]},
        {"titel": "x"},
        {"language": "pt-BR"},
        {"language": "no language"},
        {"narrator": ["local", "template"]},
        {"narrator": "template"},
        {"narrator": ["bard"]},
        {"permissions": ["fs:read"]},
        {"permissions": [""]},
        {"permissions": "fs:read"},
        {"opening": MISSING},
        {"opening": "x"},
        {"opening": {"choices": ["a"]}},
        {"opening": {"narrative": "x", "choices": "a"}},
        {"opening": {"narrative": "x", "choices": [1]}},
        {"opening": {"narrative": "x", "picture": "a"}},
        {"cover": {}},
        {"cover": {"alt": 1}},
        {"cover": {"input": "x"}},
        {"cover": {"colour": "red"}},
        {"cover": 1},
        {"state": {"a": [1, {"b": True}]}},
        {"state": []},
        {"refusal": "No."},
        {"refusal": ["No.", "Never."]},
        {"refusal": [""]},
        {"refusal": 1},
        {"free_tools": []},
        {"free_tools": 1},
        {"mcp": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}},
        {"mcp": {"time": "uvx"}},
        {"mcp": 1},
        {"skills": ["dice"]},
        {"skills": {"dice": {"summary": False}}},
        {"skills": {"dice": 1}},
        {"skills": "dice"},
    ],
    ids=str,
)
def test_schema_and_loader_agree_on_story_toml(tmp_path: Path, change: dict[str, Any]) -> None:
    tale = {**TALE, **change}
    folder = tmp_path / "tale"
    folder.mkdir()
    (folder / "story.toml").write_text(as_toml(tale), encoding="utf-8")
    try:
        Story.load(folder)
    except StoryInvalid:
        accepted = False
    else:
        accepted = True
    assert STORY.is_valid({key: value for key, value in tale.items() if value is not MISSING}) == accepted


RULE = narrator_toml()["examples"][0]["rule"][0]


@pytest.mark.parametrize(
    "file",
    [
        {},
        {"rule": []},
        {"rule": [RULE]},
        {"rule": [{**RULE, "id": ""}]},
        {"rule": [{**RULE, "patterns": []}]},
        {"rule": [{**RULE, "patterns": "light torch"}]},
        {"rule": [{**RULE, "pattern": "x"}]},
        {"rule": [{**RULE, "when": {"a": 1}, "finally": False}]},
        {"rule": [{**RULE, "cases": []}]},
        {"rule": [{**RULE, "cases": [{"narrative": "x"}]}]},
        {"rule": [{**RULE, "cases": [{"id": "x"}]}]},
        {"rule": [{**RULE, "calls": [{"id": "x"}]}]},
        {"rule": [{**RULE, "calls": [{"tool": "x", "retries": 101}]}]},
        {"rule": [{**RULE, "calls": [{"tool": "x", "async": True}]}]},
        {"rule": [RULE], "words": {"see": ["look at", "see"]}},
        {"rule": [RULE], "words": ["see"]},
        {"rule": [RULE], "language": {"articles": "the a"}},
        {"rule": [RULE], "finally": [{"tool": "x"}], "undone": "No: {rest}"},
        {"rule": [RULE], "stage": 1},
    ],
    ids=str,
)
def test_schema_and_loader_agree_on_narrator_toml(file: dict[str, Any]) -> None:
    try:
        Rules.from_toml(file, Path("narrator.toml"))
    except StoryInvalid:
        accepted = False
    else:
        accepted = True
    assert RULE_FILE.is_valid(file) == accepted


# --- the page ----------------------------------------------------------------------------------------------

PAGE = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_protocol_page_shows_events_a_request_and_a_manifest_that_are_valid() -> None:
    (lines,) = blocks("ndjson")
    shown = [decode_tool_event(line) for line in lines.splitlines()]
    assert tuple(event.__struct_config__.tag for event in shown) == TOOL_EVENT_TYPES
    request, manifest = map(json.loads, blocks("json"))
    REQUEST.validate(request)
    MANIFEST.validate(manifest)


def test_the_protocol_page_lists_every_rule() -> None:
    listed = PAGE.partition("<!-- rules -->\n")[2].partition("<!-- /rules -->")[0]
    rows = [f"| {rule.level} | `{rule.name}` | {rule.says} |" for rule in RULES]
    assert listed.strip().splitlines()[2:] == rows


def test_the_protocol_page_names_the_limits_that_hold() -> None:
    assert Limits() == Limits(2 * 1024 * 1024, 200_000, 32 * 1024 * 1024, 2_000_000, 100, 64 * 1024)
    for text in ("2 MiB", "200,000 events", "32 MiB", "2,000,000 values", "100 levels", "64 KiB"):
        assert text in PAGE


def test_a_type_that_nobody_described_is_named() -> None:
    class Silent(msgspec.Struct):
        level: int

    class Silenced(msgspec.Struct):
        """Says what it is."""

        volume: int

    with pytest.raises(LookupError, match=r"what Silent is: add it to narratoria\.\w+\.\w+, or describe it"):
        _document("silent", Silent)
    with pytest.raises(LookupError, match=r"what Silenced\.volume is"):
        _document("silenced", Silenced)
