"""`narratoria mcp` and the official client: tools, structured output, progress, logs, choices, files, undo."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from tests import warm_start

DONE = '{"version":"0","type":"done","ok":true,"summary":"All done."}'
PATCH = '{"version":"0","type":"state_patch","patch":{"torch":{"lit":true}}}'
CHOICE = '{"version":"0","type":"ui_event","event":"narrative_choice","payload":{"choices":["Open","Leave"]}}'


def log(message: str, level: str = "info", **fields: Any) -> str:
    event = {"version": "0", "type": "log", "level": level, "message": message}
    return json.dumps({**event, "fields": fields} if fields else event)


async def test_tools_are_listed_by_name_and_called_with_structured_output(workshop, any_host):
    schema = {"type": "object", "properties": {"target": {"type": "string"}}, "additionalProperties": False}
    workshop.tool("lighter", PATCH, DONE, parameters=schema, title="Light it")
    workshop.tool("anvil", DONE)
    async with any_host() as client:
        listed = (await client.list_tools()).tools
        assert [one.name for one in listed] == ["anvil", "lighter", "undo"]
        assert listed[1].input_schema == schema
        assert (listed[1].title, listed[1].description) == ("Light it", "Does lighter.")
        result = await client.call_tool("lighter", {"target": "torch"})
        assert not result.is_error
        assert result.structured_content == {"torch": {"lit": True}}
        assert result.content[0].text == 'All done.\n{"torch":{"lit":true}}'
        state = await client.read_resource("narratoria://state")
        assert json.loads(state.contents[0].text) == {"torch": {"lit": True}}


async def test_wrong_arguments_are_told_to_the_model_and_an_unknown_tool_is_an_error(workshop, host):
    workshop.tool("anvil", DONE, parameters={"type": "object", "additionalProperties": False})
    async with host() as client:
        result = await client.call_tool("anvil", {"colour": "red"})
        assert result.is_error
        assert "colour: unknown key" in result.content[0].text
        assert result.meta["narratoria/error"]["code"] == "INVALID_ARGUMENTS"
        with pytest.raises(MCPError, match="no tool 'hammer'") as refused:
            await client.call_tool("hammer", {})
        assert refused.value.error.code == types.INVALID_PARAMS


async def test_progress_and_logs_arrive_while_the_call_runs(workshop, host):
    """The tool waits for a file that is written once its first line has arrived."""
    go = workshop.folder / "go"
    workshop.tool(
        "slow",
        log("begun", progress=0.25),
        f"until [ -e {go} ]; do sleep 0.02; done",
        log("watch out", "warn", progress=0.5),
        log("fine", "debug"),
        DONE,
    )
    steps: list[tuple[float, float | None, str | None]] = []
    logs: list[tuple[str, Any]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total, message))
        go.touch()

    async def heard(params: types.LoggingMessageNotificationParams) -> None:
        logs.append((params.level, params.data))

    async with host(logging_callback=heard, log_level="info") as client:
        result = await asyncio.wait_for(client.call_tool("slow", {}, progress_callback=progress), 20)
        assert not result.is_error
    assert steps == [(0.25, 1.0, "begun"), (0.5, 1.0, "watch out")]
    assert logs == [
        ("info", {"message": "begun", "progress": 0.25}),
        ("warning", {"message": "watch out", "progress": 0.5}),
    ]


async def test_a_cancelled_call_ends_its_process_and_changes_nothing(workshop, any_host):
    begun, ended = workshop.folder / "begun", workshop.folder / "ended"
    workshop.tool("endless", f"trap 'touch {ended}; exit 1' TERM", PATCH, f"touch {begun}", "sleep 60 & wait")
    async with any_host() as client:
        call = asyncio.create_task(client.call_tool("endless", {}))
        await _until(begun.exists)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await _until(ended.exists)
        state = await client.read_resource("narratoria://state")
        assert json.loads(state.contents[0].text) == {}
    assert workshop.leaves_nothing()


async def test_calls_run_side_by_side(workshop):
    """Each of two tools waits for the other."""
    one, two = workshop.folder / "one", workshop.folder / "two"
    workshop.tool("first", f"touch {one}", f"until [ -e {two} ]; do sleep 0.02; done", DONE)
    workshop.tool("second", f"touch {two}", f"until [ -e {one} ]; do sleep 0.02; done", DONE)
    async with workshop.over_stdio() as client:
        both = asyncio.gather(client.call_tool("first", {}), client.call_tool("second", {}))
        assert not any(result.is_error for result in await asyncio.wait_for(both, 20))


async def test_undo_takes_back_the_newest_call_that_changed_something(workshop, host):
    workshop.tool("lighter", PATCH, DONE)
    workshop.tool("look", DONE)
    async with host() as client:
        assert (await client.call_tool("undo", {})).is_error
        await client.call_tool("lighter", {"which": 1})
        await client.call_tool("look", {})
        result = await client.call_tool("undo", {})
        assert result.structured_content == {
            "undone": ["look", 'lighter {"which":1}'],
            "takenBack": [],
            "staying": [],
        }
        state = await client.read_resource("narratoria://state")
        assert json.loads(state.contents[0].text) == {}
        assert "nothing to undo" in (await client.call_tool("undo", {})).content[0].text


async def test_undo_names_every_call_that_ran_at_the_same_time(workshop):
    one, two = workshop.folder / "one", workshop.folder / "two"
    for name, mine, other in (("first", one, two), ("second", two, one)):
        workshop.tool(name, f"touch {mine}", f"until [ -e {other} ]; do sleep 0.02; done", PATCH, DONE)
    async with workshop.over_stdio() as client:
        both = asyncio.gather(client.call_tool("first", {"n": 1}), client.call_tool("second", {}))
        await asyncio.wait_for(both, 20)
        result = await client.call_tool("undo", {})
        assert sorted(result.structured_content["undone"]) == ['first {"n":1}', "second"]
        assert "Undone: second" in result.content[0].text


async def test_a_session_goes_on_in_another_server(workshop):
    workshop.tool("lighter", PATCH, DONE)
    async with workshop.over_stdio("--session", "lamp") as client:
        await client.call_tool("lighter", {})
    async with workshop.over_stdio("--session", "lamp") as client:
        state = await client.read_resource("narratoria://state")
        assert json.loads(state.contents[0].text) == {"torch": {"lit": True}}
        assert not (await client.call_tool("undo", {})).is_error
        assert json.loads((await client.read_resource("narratoria://state")).contents[0].text) == {}


async def test_an_effect_outside_is_taken_back_by_undo(workshop):
    """The compensation of the manifest is an operation of the same executable."""
    made = workshop.folder / "made"
    path = workshop.tools / "maker"
    path.write_text(
        f"#!/bin/bash\nif grep -q '\"operation\":\"unmake\"'; then rm -f {made}; else touch {made}; fi\necho '{DONE}'\n"
    )
    path.chmod(0o755)
    effect = {"type": "state_change", "state": "made", "value": True, "rollback": {"operation": "unmake"}}
    described = {"name": "maker", "description": "Makes a file.", "effects": [effect]}
    (workshop.tools / "maker.tool.json").write_text(json.dumps(described))
    async with workshop.over_stdio() as client:
        await client.call_tool("maker", {})
        assert made.exists()
        result = await client.call_tool("undo", {})
        assert result.structured_content["takenBack"] == ["set state 'made'"]
        assert not made.exists()


async def test_a_choice_is_put_to_the_person_where_the_client_can(workshop, any_host):
    workshop.tool("door", PATCH, CHOICE, DONE)
    asked: list[Any] = []

    async def choose(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action="accept", content={"choice": "Leave"})

    async with any_host(elicitation_callback=choose) as client:
        result = await client.call_tool("door", {})
        assert result.content[-1].text == "The user chose: Leave"
        assert result.meta["narratoria/choice"] == "Leave"
        assert result.structured_content == {"torch": {"lit": True}}
        assert len(asked) == 1
        assert asked[0].requested_schema["properties"]["choice"]["enum"] == ["Open", "Leave"]
        await client.call_tool("undo", {})
        state = await client.read_resource("narratoria://state")
        assert json.loads(state.contents[0].text) == {}  # the tool ran once


async def test_choices_are_named_where_the_client_cannot_ask_or_the_person_declines(workshop, host):
    workshop.tool("door", CHOICE, DONE)

    async def decline(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    for options in ({}, {"elicitation_callback": decline}):
        async with host(**options) as client:
            result = await client.call_tool("door", {})
            assert not result.is_error
            assert result.content[-1].text == "Choices: Open · Leave"
            assert result.meta["narratoria/choices"] == ["Open", "Leave"]


PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def made(name: str, media_type: str) -> str:
    event = {"version": "0", "type": "asset", "assetId": name, "kind": media_type.partition("/")[0]}
    return json.dumps({**event, "mediaType": media_type, "path": f"PLACE/{name}"})


async def test_files_are_content_or_links_and_can_be_read_as_resources(workshop, host):
    place = workshop.folder / "files"
    place.mkdir()
    (place / "dot.png").write_bytes(base64.b64decode(PICTURE))
    (place / "note.txt").write_text("Ancient runes")
    (place / "data.bin").write_bytes(bytes(range(256)))
    events = [
        made("dot.png", "image/png"),
        made("note.txt", "text/plain"),
        made("data.bin", "application/x-thing"),
    ]
    workshop.tool("maker", *(one.replace("PLACE", str(place)) for one in events), DONE)
    async with host() as client:
        _, picture, note, link = (await client.call_tool("maker", {})).content
        assert (picture.type, picture.data, picture.mime_type) == ("image", PICTURE, "image/png")
        assert (note.type, note.resource.text) == ("resource", "Ancient runes")
        assert (link.type, link.name, link.size) == ("resource_link", "data.bin", 256)
        listed = {one.name: one for one in (await client.list_resources()).resources}
        assert set(listed) == {"state", "dot.png", "note.txt", "data.bin"}
        read = (await client.read_resource(link.uri)).contents[0]
        assert base64.b64decode(read.blob) == bytes(range(256))
        assert (await client.read_resource(listed["note.txt"].uri)).contents[0].text == "Ancient runes"
        with pytest.raises(MCPError, match="no resource"):
            await client.read_resource("narratoria://assets/" + "0" * 64)


async def test_a_failed_call_says_why_and_what_to_do(workshop):
    failed = '{"version":"0","type":"error","errorCode":"WET","errorMessage":"The torch is wet."}'
    workshop.tool("lighter", PATCH, failed, '{"version":"0","type":"done","ok":false}')
    workshop.tool("locked", DONE, permissions=["door:open"])
    async with workshop.over_stdio() as client:
        result = await client.call_tool("lighter", {})
        assert (result.is_error, result.content[0].text) == (True, "lighter: The torch is wet.")
        assert result.meta["narratoria/error"]["code"] == "WET"
        assert "door:open" in (await client.call_tool("locked", {})).content[0].text
    async with workshop.over_stdio("--grant", "door:open") as client:
        assert not (await client.call_tool("locked", {})).is_error


async def test_annotations_come_from_the_contract(workshop):
    def state(change: str, **more: Any) -> dict[str, Any]:
        return {"type": "state_change", "state": "lit", "change": change, **more}

    workshop.tool("plain", DONE)
    workshop.tool("setter", DONE, effects=[state("set", value=True)])
    workshop.tool("counter", DONE, effects=[state("increment", value=1)])
    workshop.tool("cleaner", DONE, effects=[state("clear")])
    workshop.tool("caller", DONE, effects=[{"type": "notification", "event": "called"}])
    workshop.tool("fetcher", DONE, permissions=["net:fetch"])
    async with workshop.over_stdio() as client:
        found = {
            one.name: one.annotations and one.annotations.model_dump(by_alias=True, exclude_none=True)
            for one in (await client.list_tools()).tools
        }

    def hints(destructive: bool, idempotent: bool, open_world: bool) -> dict[str, bool]:
        return {
            "readOnlyHint": False,
            "destructiveHint": destructive,
            "idempotentHint": idempotent,
            "openWorldHint": open_world,
        }

    assert found == {
        "plain": None,  # it says nothing, so nothing is claimed
        "setter": hints(False, True, False),
        "counter": hints(False, False, False),
        "cleaner": hints(True, True, False),
        "caller": hints(False, False, True),
        "fetcher": {"openWorldHint": True},
        "undo": hints(True, False, True),
    }


async def test_prompts_come_from_the_folder_prompt(workshop, host):
    folder = workshop.tools / "prompt"
    folder.mkdir()
    (folder / "tell.md").write_text("# Tell a tale\n\nTell of $hero in ${place}, for $$5.\n")
    workshop.tool("anvil", DONE)
    async with host() as client:
        (prompt,) = (await client.list_prompts()).prompts
        assert (prompt.name, prompt.title) == ("tell", "Tell a tale")
        assert [(one.name, one.required) for one in prompt.arguments] == [("hero", True), ("place", True)]
        told = await client.get_prompt("tell", {"hero": "Mira", "place": "Sull"})
        assert told.messages[0].content.text == "# Tell a tale\n\nTell of Mira in Sull, for $5."
        with pytest.raises(MCPError, match="needs hero, place"):
            await client.get_prompt("tell", {})


async def test_the_tools_of_a_story_act_on_its_world(workshop):
    async with workshop.over_stdio("--story", "torch", mode="legacy") as client:
        assert client.server_info.title == "The Torch and the Door"
        assert "torch-lighter" in [one.name for one in (await client.list_tools()).tools]
        assert not (await client.call_tool("torch-lighter", {"action": "light_torch"})).is_error
        state = json.loads((await client.read_resource("narratoria://state")).contents[0].text)
        assert state["inventory"]["torch"]["lit"] is True
        await client.call_tool("undo", {})
        assert (await client.call_tool("undo", {})).is_error  # the opening stays
    (session,) = json.loads(warm_start.run("sessions", "list", "--json", env=workshop.env, kind="mcp").stdout)
    assert session["story"] == "torch"
    async with workshop.over_stdio("--session", session["id"], bare=True) as client:  # it knows its story
        assert "torch-lighter" in [one.name for one in (await client.list_tools()).tools]


async def test_the_state_can_be_watched(workshop):
    workshop.tool("lighter", PATCH, DONE)
    told = asyncio.Event()

    async def heard(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            told.set()

    async with workshop.over_stdio(mode="legacy", message_handler=heard) as client:
        with pytest.warns(MCPDeprecationWarning):
            await client.subscribe_resource("narratoria://state")
        await client.call_tool("lighter", {})
        await asyncio.wait_for(told.wait(), 10)
    async with workshop.over_stdio() as client:
        async with client.listen(resource_subscriptions=["narratoria://state"]) as changes:
            await client.call_tool("lighter", {})
            change = await asyncio.wait_for(anext(aiter(changes)), 10)
        assert change.uri == "narratoria://state"


async def test_what_a_tool_prints_wrongly_never_reaches_the_wire(workshop):
    workshop.tool("noisy", "echo this is noise", "echo more noise >&2", DONE)
    workshop.tool("loud", "echo of no matter >&2", DONE)
    async with workshop.over_stdio() as client:
        assert re.search("noise", (await client.call_tool("noisy", {})).content[0].text)
        assert not (await client.call_tool("loud", {})).is_error


async def _until(holds: Any) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.02)
