"""`narratoria mcp` passes on more than executables: skills, and tools of MCP servers and OpenAPI documents."""

from __future__ import annotations

import sys
from pathlib import Path

TRIAL = Path(__file__).parents[1] / "kinds" / "mcp" / "trial_server.py"


def skill(folder: Path) -> Path:
    root = folder / "greet"
    (root / "scripts").mkdir(parents=True)
    (root / "SKILL.md").write_text("---\nname: greet\ndescription: Greets people.\n---\nBe brief.\n")
    (root / "scripts" / "hello.sh").write_text('echo "Hello, $1."\n')
    return folder


async def test_skills_that_are_named_are_offered_and_changes_are_picked_up(workshop):
    shelf = skill(workshop.folder / "shelf")
    async with workshop.over_stdio("--skills", shelf, bare=True) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["greet.hello", "undo"]
        result = await client.call_tool("greet.hello", {"args": ["Marit"]})
        assert result.structured_content == {"text": "Hello, Marit."}
        (shelf / "greet" / "scripts" / "bye.sh").write_text("echo Bye.\n")
        assert "greet.bye" in [tool.name for tool in (await client.list_tools()).tools]
        assert not (await client.call_tool("greet.bye", {})).is_error


async def test_a_story_offers_its_skills_its_servers_and_its_documents(workshop, pet_shop):
    folder = workshop.folder / "tale"
    skill(folder / "skills")
    (folder / "story.toml").write_text(
        f"""
title = "The desk"
premise = "A desk and a pen."
narrator = ["template"]
skills = ["dice"]
[opening]
narrative = "You sit at a desk."
[mcp.trial]
command = "{sys.executable}"
args = ["{TRIAL}"]
[openapi.pets]
spec = "{pet_shop}/pets.json"
secrets = {{ key = "PETS_KEY" }}
"""
    )
    workshop.env["PETS_KEY"] = "sesame"
    async with workshop.over_stdio("--story", folder) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"greet.hello", "dice.roll", "trial.add", "pets.getpet"} <= names
        added = await client.call_tool("trial.add", {"a": 2, "b": 3})
        assert added.structured_content == {"total": 5}
        found = await client.call_tool("pets.getpet", {"petId": 7})
        assert found.structured_content == {"path": "/v1/pets/7", "key": "given"}


async def test_a_source_that_cannot_be_used_is_said_and_hides_no_other(workshop, tmp_path):
    servers = tmp_path / "servers.json"
    servers.write_text('{"mcpServers": {"bad": {"command": "no-such-program-here"}}}')
    workshop.tool("hello", '{"version":"0","type":"done","ok":true}')
    async with workshop.over_stdio("--mcp", servers) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["hello", "undo"]
    assert "no-such-program-here" in workshop.errors.read_text()
