"""An executable as a tool: what it is sent, what its events do to the session, and how each ending is judged."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from narratoria.errors import ToolValidationError
from narratoria.events import CallEmitted, Log, StatePatch
from narratoria.kinds.manifest import load_manifest, manifest_path
from narratoria.kinds.process.custody import sweep
from narratoria.kinds.process.launch import NotExecutable, ToolMissing
from narratoria.kinds.process.process_tool import process_tool
from narratoria.run.call_record import Call
from narratoria.run.registry import ToolRegistry
from narratoria.session import Record, Session
from narratoria.tools.retry import plan_policy
from narratoria.tools.tool import ToolResult

HOSTILE = sorted((Path(__file__).parent.parent / "hostile").glob("*.sh"))
DONE = '{"version":"0","type":"done","ok":true,"summary":"Done."}'


def patch(**changes: Any) -> str:
    return json.dumps({"version": "0", "type": "state_patch", "patch": changes})


def write_tool(folder: Path, source: str, manifest: dict[str, Any] | None = None, name: str = "tool") -> Path:
    path = folder / name
    path.write_text("#!/bin/bash\n" + source)
    path.chmod(0o755)
    if manifest is not None:
        whole = {"name": "tool", "description": "A tool.", **manifest}
        (folder / f"{name}.tool.json").write_text(json.dumps(whole))
    return path


async def run(
    path: Path,
    arguments: dict[str, Any] | None = None,
    *,
    session: Session | None = None,
    call: Call | None = None,
) -> ToolResult[Any]:
    tool = process_tool(path)
    executor = ToolRegistry().executor
    return await executor.execute(tool, arguments or {}, session=session or Session(), call=call or Call())


def code_of(result: ToolResult[Any]) -> str | None:
    return result.failure.code if result.failure else None


# --- the world around a bad tool -------------------------------------------------------------------------


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: path.stem)
async def test_the_session_is_untouched_by_a_hostile_tool(
    path: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    header = dict(re.findall(r"^# (\w+): (.*)$", path.read_text(errors="replace"), re.MULTILINE))
    session = Session(state={"hp": 3, "bag": {"torch": 1}})
    call = Call(timeout=float(header.get("time", "20")))
    result = await run(path, session=session, call=call)
    assert code_of(result) == (None if header["call"] == "ok" else header["call"])
    assert session.snapshot() == {"hp": 3, "bag": {"torch": 1}}
    await sweep()


async def test_a_failed_attempt_leaves_nothing_and_the_next_one_counts(tmp_path: Path) -> None:
    source = f"""
        if mkdir '{tmp_path}/tried' 2>/dev/null; then echo '{patch(a=1, first=True)}'; exit 3; fi
        echo '{patch(a=2)}'; echo '{DONE}'
    """
    session, call = Session(state={"a": 0}), Call(policy=plan_policy(1, 0))
    result = await run(write_tool(tmp_path, source), session=session, call=call)
    assert result.success and call.attempts == 2
    assert session.snapshot() == {"a": 2}


async def test_patches_are_merged_in_order_into_state_and_output(tmp_path: Path) -> None:
    source = "\n".join(
        f"echo '{line}'" for line in (patch(a={"x": 1, "y": 1}), patch(a={"x": None}, b=[1]), DONE)
    )
    session = Session(state={"a": {"z": 1}})
    result = await run(write_tool(tmp_path, source), session=session)
    assert session.snapshot() == {"a": {"y": 1, "z": 1}, "b": [1]}
    assert result.value == {"a": {"y": 1}, "b": [1]}
    assert result.message == "Done."


class Heard:
    full = False

    def __init__(self, act: Callable[[Record], None]) -> None:
        self.push = act

    async def wait(self) -> None:
        return None


async def test_events_reach_subscribers_while_the_tool_still_runs(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    log = '{"version":"0","type":"log","level":"info","message":"waiting"}'
    path = write_tool(tmp_path, f"echo '{log}'; until [ -e '{gate}' ]; do sleep 0.01; done; echo '{DONE}'")
    session = Session()

    def open_gate(record: Record) -> None:
        if isinstance(record.event, CallEmitted) and isinstance(record.event.event, Log):
            gate.touch()  # only now can the tool go on: had the event waited for its end, both would wait

    session.attach(Heard(open_gate))
    assert (await asyncio.wait_for(run(path, session=session), 20)).success


async def test_a_patch_is_seen_live_but_committed_only_at_the_end(tmp_path: Path) -> None:
    session, seen = Session(), []

    def note(record: Record) -> None:
        if isinstance(record.event, CallEmitted) and isinstance(record.event.event, StatePatch):
            seen.append(session.snapshot())

    session.attach(Heard(note))
    await run(write_tool(tmp_path, f"echo '{patch(a=1)}'; echo '{DONE}'"), session=session)
    assert seen == [{}]
    assert session.snapshot() == {"a": 1}


# --- what it is sent ---------------------------------------------------------------------------------------


async def test_the_request_has_the_fields_of_the_protocol_and_the_input_as_it_is(tmp_path: Path) -> None:
    path = write_tool(tmp_path, f"cat >'{tmp_path}/seen'; echo '{DONE}'")
    arguments = {"text": 'é "quoted" \n 🐉', "nested": {"n": [1, 2.5, None, True]}}
    await run(path, arguments)
    request = json.loads((tmp_path / "seen").read_text(encoding="utf-8"))
    assert request.pop("requestId")
    assert request == {"tool": "tool", "operation": "run", "input": arguments, "dependencies": {}}


async def test_state_is_sent_only_when_the_manifest_asks(tmp_path: Path) -> None:
    source = f"cat >'{tmp_path}/seen'; echo '{DONE}'"
    for wants, expected in ((False, None), (True, {"hp": 3})):
        path = write_tool(tmp_path, source, {"wantsState": wants, "operation": "light"})
        await run(path, session=Session(state={"hp": 3}))
        request = json.loads((tmp_path / "seen").read_text())
        assert request.get("state") == expected
        assert request["operation"] == "light"


async def test_the_request_id_is_the_same_on_every_attempt_and_another_on_every_call(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    path = write_tool(tmp_path, f"cat >>'{seen}'; echo >>'{seen}'; exit 3")
    session = Session()
    for _ in range(2):
        await run(path, session=session, call=Call(policy=plan_policy(1, 0)))
    ids = [json.loads(line)["requestId"] for line in seen.read_text().splitlines()]
    assert ids[0] == ids[1] != ids[2] == ids[3]


# --- how endings are judged ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "code", "says"),
    [
        (
            '{"version":"0","type":"done","ok":false,"summary":"The lamp is empty."}',
            "EXECUTION_FAILED",
            "lamp is empty",
        ),
        ('{"version":"0","type":"done","ok":false}', "EXECUTION_FAILED", "reported failure"),
    ],
)
async def test_done_with_ok_false_fails_the_call(tmp_path: Path, source: str, code: str, says: str) -> None:
    result = await run(write_tool(tmp_path, f"echo '{source}'"))
    assert code_of(result) == code and says in result.message


async def test_the_last_error_before_done_names_the_failure_and_keeps_its_details(tmp_path: Path) -> None:
    first = '{"version":"0","type":"error","errorCode":"FIRST","errorMessage":"one"}'
    last = '{"version":"0","type":"error","errorCode":"NO_OIL","errorMessage":"dry","details":{"ml":0}}'
    source = f'echo \'{first}\'; echo \'{last}\'; echo \'{{"version":"0","type":"done","ok":false}}\''
    result = await run(write_tool(tmp_path, source))
    assert result.failure is not None
    assert (result.failure.code, result.failure.details["ml"]) == ("NO_OIL", 0)
    assert "dry" in result.failure.message


async def test_an_error_event_alone_does_not_end_or_fail_a_call(tmp_path: Path) -> None:
    """001 §4.5: error events do not terminate the invocation; `done.ok` decides."""
    error = '{"version":"0","type":"error","errorCode":"E","errorMessage":"m"}'
    session = Session()
    result = await run(
        write_tool(tmp_path, f"echo '{error}'; echo '{patch(a=1)}'; echo '{DONE}'"), session=session
    )
    assert result.success and session.snapshot() == {"a": 1}


async def test_a_log_of_level_error_is_not_an_error(tmp_path: Path) -> None:
    log = '{"version":"0","type":"log","level":"error","message":"looks bad"}'
    assert (await run(write_tool(tmp_path, f"echo '{log}'; echo '{DONE}'"))).success


async def test_a_crash_tells_the_status_and_the_last_words_on_stderr(tmp_path: Path) -> None:
    result = await run(write_tool(tmp_path, "echo one >&2; echo it was the butler >&2; exit 7"))
    assert result.failure is not None and result.failure.details is not None
    assert result.failure.code == "NON_ZERO_EXIT"
    assert "status 7" in result.failure.message and "it was the butler" in result.failure.message
    assert result.failure.details["exitCode"] == 7
    assert result.failure.details["stderr"] == "one\nit was the butler\n"


async def test_the_timeout_of_the_manifest_holds(tmp_path: Path) -> None:
    result = await run(write_tool(tmp_path, "exec sleep 60", {"timeout": 0.2}))
    assert code_of(result) == "TIMEOUT" and "0.2 s" in result.message


async def test_a_tool_with_nothing_but_done_succeeds(tmp_path: Path) -> None:
    result = await run(write_tool(tmp_path, f"echo '{DONE}'"))
    assert result.success and result.value == {}


# --- manifests -------------------------------------------------------------------------------------------


def test_a_tool_without_manifest_is_named_after_its_file(tmp_path: Path) -> None:
    tool = process_tool(write_tool(tmp_path, "", name="Light The Torch.sh"))
    assert tool.name == "light-the-torch"


def test_the_manifest_lies_beside_the_executable(tmp_path: Path) -> None:
    path = write_tool(tmp_path, "", {"name": "other-name", "timeout": 5}, name="torch")
    assert load_manifest(path).name == "other-name"
    (tmp_path / "roll.py").touch()
    assert manifest_path(tmp_path / "roll.py") == tmp_path / "roll.tool.json"
    (tmp_path / "roll.py.tool.json").touch()
    assert manifest_path(tmp_path / "roll.py") == tmp_path / "roll.py.tool.json"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ('{"name": "tool", "description": "T.", "timeout": 5, "timeout": 6}', '"timeout" appears twice'),
        (
            '{"name": "tool", "description": "T.", "parameters": {"type": "object", "type": "object"}}',
            "appears twice",
        ),
        ("[]", "expected an object"),
        ('{"name": "tool"}', "description"),
        ('{"name": "tool", "description": "T.", "timeuot": 5}', "timeuot"),
        ('{"name": "A Tool", "description": "T."}', "name"),
        ('{"name": "tool", "description": "T.", "parameters": {"type": "objekt"}}', "objekt"),
        ('{"name": "tool", "description": "T.", "effects": [{"type": "magic"}]}', "effects"),
        ('{"name": "tool", "description": "T.", "preconditions": [{"type": "state"}]}', "state"),
        ('{"name": "tool", "description": "T.", "retry": {"maxRetries": "3"}}', "maxRetries"),
    ],
)
def test_a_mistake_in_a_manifest_names_the_file_and_the_key(tmp_path: Path, text: str, says: str) -> None:
    path = write_tool(tmp_path, "")
    (tmp_path / "tool.tool.json").write_text(text)
    with pytest.raises(ToolValidationError) as error:
        process_tool(path)
    assert "tool.tool.json" in str(error.value) and says in str(error.value)


async def test_permissions_preconditions_and_effects_of_a_manifest_are_kept(tmp_path: Path) -> None:
    manifest = {
        "permissions": ["fire:use"],
        "preconditions": [{"type": "state", "state": "torch", "description": "there must be a torch"}],
        "effects": [{"type": "state_change", "state": "lit", "change": "increment", "value": 1}],
    }
    path = write_tool(tmp_path, f"echo '{DONE}'", manifest)
    bare = await run(path)
    assert code_of(bare) == "PRECONDITION_FAILED"
    assert "fire:use" in bare.message and "there must be a torch" in bare.message
    session = Session(state={"torch": True, "lit": 1}, permissions=["fire:use"])
    assert (await run(path, session=session)).success
    assert session.snapshot() == {"torch": True, "lit": 2}


def test_what_cannot_be_run_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing):
        process_tool(tmp_path / "nowhere")
    (tmp_path / "notes").write_text("text")
    with pytest.raises(NotExecutable):
        process_tool(tmp_path / "notes")


async def test_twenty_calls_at_once_do_not_mix_their_events(tmp_path: Path) -> None:
    path = write_tool(tmp_path, f"cat >/dev/null; echo '{patch(seen=1)}'; echo '{DONE}'")
    calls = [Call() for _ in range(20)]
    results = await asyncio.gather(*(run(path, call=call) for call in calls))
    assert all(result.success for result in results)
    assert all([type(event).__name__ for event in call.events] == ["StatePatch", "Done"] for call in calls)


async def test_what_a_tool_leaves_in_its_temporary_folder_goes_with_the_call_and_its_asset_stays(
    tmp_path: Path,
) -> None:
    source = """
    folder=$(mktemp -d)
    printf '\\x89PNG\\r\\n\\x1a\\nnot much of a picture' > "$folder/dusk.png"
    printf '{"version":"0","type":"asset","assetId":"dusk","kind":"image","mediaType":"image/png","path":"%s"}\\n' \
      "$folder/dusk.png"
    printf '{"version":"0","type":"state_patch","patch":{"folder":"%s"}}\\n' "$folder"
    """
    session = Session()
    result = await run(write_tool(tmp_path, f"{source}\necho '{DONE}'"), session=session)
    assert result.success
    assert not Path(session.state["folder"]).exists()
    (asset,) = session.asset_records.values()
    assert session.assets.path_of(asset.hash).read_bytes() == b"\x89PNG\r\n\x1a\nnot much of a picture"
