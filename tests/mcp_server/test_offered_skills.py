"""The guides of skills, as a host reads them: resources, prompts, and the skills extension of the protocol."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
import yaml
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from narratoria import ToolRegistry
from narratoria.mcp_server import OfferedPrompt, ToolServer
from narratoria.skills.skill_library import SkillLibrary, given_places

GUIDE = """---
name: knots
description: Ties knots. Use it when a rope is at hand.
metadata:
  version: 1.20
  stable: true
  since: 2026-01-02
  code: "0012"
---

# Knots\r
Read [the table](references/table.md) first.
"""
EXTENSION = "io.modelcontextprotocol/skills"
PICTURE = b"\x89PNG\r\n\x1a\n\x00\xff"


class AnyRequest(types.Request[dict[str, Any], str]):
    method: str
    params: dict[str, Any]


class AnyResult(types.Result):
    model_config = types.Result.model_config | {"extra": "allow"}


async def ask(client: Any, method: str, **params: Any) -> dict[str, Any]:
    """Send a request that the client has no function for."""
    answer = await client.session.send_request(AnyRequest(method=method, params=params), AnyResult)
    return answer.model_dump(by_alias=True, mode="json")


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    root = tmp_path / "shelf" / "knots"
    for part in ("references", "scripts", "assets/small", ".git"):
        (root / part).mkdir(parents=True)
    (root / "SKILL.md").write_bytes(GUIDE.encode())
    (root / "references" / "table.md").write_text("| knot | use |\n")
    (root / "scripts" / "tie.sh").write_text("echo tied\n")
    (root / "assets" / "small" / "bowline.png").write_bytes(PICTURE)
    (root / ".git" / "config").write_text("secret")
    (root / ".env").write_text("KEY=secret")
    (root / "out.md").symlink_to("/etc/hostname")
    return root.parent


def served(shelf: Path, mode: str = "2026-07-28", **options: Any) -> Client:
    """A server in this process."""
    library = SkillLibrary(given_places([shelf]))
    return Client(ToolServer(ToolRegistry(library), skills=library, **options).protocol, mode=mode)


def text_of(answer: Any) -> str:
    [one] = answer.contents
    return str(one.text)


async def test_a_host_lists_and_reads_the_guide_of_each_skill_and_its_pages(workshop, shelf):
    async with workshop.over_stdio("--skills", shelf, bare=True) as client:
        found = {str(one.uri): one for one in (await client.list_resources()).resources}
        guide = found["skill://knots/SKILL.md"]
        assert (guide.name, guide.mime_type) == ("knots", "text/markdown")
        assert guide.description == "Ties knots. Use it when a rope is at hand."
        assert text_of(await client.read_resource("skill://knots/SKILL.md")) == GUIDE
        assert text_of(await client.read_resource("skill://knots/references/table.md")) == "| knot | use |\n"
        assert "skill://knots/references/table.md" in found and "skill://knots/scripts/tie.sh" not in found
        [picture] = (await client.read_resource("skill://knots/assets/small/bowline.png")).contents
        assert base64.b64decode(picture.blob) == PICTURE and picture.mime_type == "image/png"
        for hidden in (".env", ".git/config", "out.md", "../../../etc/hostname", "%2e%2e/x", "none.md"):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(f"skill://knots/{hidden}")
            assert refused.value.code == types.INVALID_PARAMS
        told = await ask(client, "server/discover")
        assert "skill://knots/SKILL.md: Ties knots." in told["instructions"]
        [entry] = (await ask(client, "skills/list"))["skills"]
        assert entry["resources"][0]["digest"] == f"sha256:{hashlib.sha256(GUIDE.encode()).hexdigest()}"


async def test_a_skill_is_a_prompt_for_hosts_that_show_prompts(shelf):
    async with served(shelf, "legacy", prompts=[OfferedPrompt("greet", lambda _: "Greet.")]) as client:
        listed = (await client.list_prompts()).prompts
        assert [one.name for one in listed] == ["greet", "knots"]
        assert listed[1].description == "Ties knots. Use it when a rope is at hand."
        [message] = (await client.get_prompt("knots")).messages
        assert message.content.text.startswith("# Knots") and "description:" not in message.content.text
        other = shelf / "maps"
        other.mkdir()
        (other / "SKILL.md").write_text("---\nname: maps\ndescription: Reads maps.\n---\nNorth is up.\n")
        assert [one.name for one in (await client.list_prompts()).prompts] == ["greet", "knots", "maps"]
        assert text_of(await client.read_resource("skill://maps/SKILL.md")).endswith("North is up.\n")


async def test_the_skills_extension_lists_every_file_with_its_digest(shelf):
    async with served(shelf) as client:
        told = await ask(client, "server/discover")
        assert told["capabilities"]["extensions"] == {EXTENSION: {"directoryRead": True}}
        answer = await ask(client, "skills/list")
        assert (answer["resultType"], answer["ttlMs"], answer["cacheScope"]) == ("complete", 0, "private")
        [entry] = answer["skills"]
        assert entry["uri"] == "skill://knots/SKILL.md"
        # A host compares this with the YAML it reads (version 1.2), and refuses the skill if they differ.
        assert entry["frontmatter"] == {
            "name": "knots",
            "description": "Ties knots. Use it when a rope is at hand.",
            "metadata": {"version": 1.2, "stable": True, "since": "2026-01-02", "code": "0012"},
        }
        assert [one["uri"].removeprefix("skill://knots/") for one in entry["resources"]] == [
            "SKILL.md",
            "assets/small/bowline.png",
            "references/table.md",
            "scripts/tie.sh",
        ]
        for one in entry["resources"]:
            data = (shelf / one["uri"].removeprefix("skill://")).read_bytes()
            assert one["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}" and one["size"] == len(data)
        assert (await ask(client, "skills/get", uri=entry["uri"]))["skill"] == entry
        for wrong in ("skill://none/SKILL.md", "skill://knots", "skill://knots/references/table.md"):
            with pytest.raises(MCPError) as refused:
                await ask(client, "skills/get", uri=wrong)
            assert refused.value.code == types.INVALID_PARAMS


async def test_the_folders_of_a_skill_are_listed_level_by_level(shelf):
    async with served(shelf) as client:
        children = (await ask(client, "resources/directory/read", uri="skill://knots"))["resources"]
        assert [(one["name"], one["mimeType"]) for one in children] == [
            ("knots", "text/markdown"),
            ("assets", "inode/directory"),
            ("references", "inode/directory"),
            ("scripts", "inode/directory"),
        ]
        [small] = (await ask(client, "resources/directory/read", uri="skill://knots/assets"))["resources"]
        assert small == {"uri": "skill://knots/assets/small", "name": "small", "mimeType": "inode/directory"}
        for wrong in ("skill://knots/SKILL.md", "skill://knots/none", "skill://none", "skill://knots/.git"):
            with pytest.raises(MCPError) as refused:
                await ask(client, "resources/directory/read", uri=wrong)
            assert refused.value.code == types.INVALID_PARAMS


async def test_a_story_offers_its_guides_and_the_skills_it_names(workshop):
    folder = workshop.folder / "tale"
    (folder / "skills").mkdir(parents=True)
    (folder / "tools").mkdir()
    (folder / "tools" / "lamp").write_text("#!/bin/sh\n")
    (folder / "tools" / "lamp").chmod(0o755)
    (folder / "skills" / "lamp.md").write_text("A lamp needs oil.\n")
    (folder / "story.toml").write_text(
        'title = "Desk"\npremise = "A desk."\nnarrator = ["template"]\nskills = ["dice"]\n'
        '[opening]\nnarrative = "You sit."\n'
    )
    async with workshop.over_stdio("--story", folder, mode="legacy") as client:
        found = {str(one.uri) for one in (await client.list_resources()).resources}
        assert {"narratoria://guides/lamp.md", "skill://dice/SKILL.md"} <= found
        assert text_of(await client.read_resource("narratoria://guides/lamp.md")) == "A lamp needs oil.\n"
        [entry] = (await ask(client, "skills/list"))["skills"]
        guide = text_of(await client.read_resource(entry["uri"]))
        assert yaml.safe_load(guide.split("---")[1])["name"] == entry["frontmatter"]["name"] == "dice"
        assert (client.instructions or "").startswith("A desk.\n\nSkills: ")


async def test_a_server_without_skills_does_not_declare_them():
    async with Client(ToolServer(ToolRegistry()).protocol, mode="2026-07-28") as client:
        assert "extensions" not in (await ask(client, "server/discover"))["capabilities"]
        with pytest.raises(MCPError) as refused:
            await ask(client, "skills/list")
        assert refused.value.code == types.METHOD_NOT_FOUND


async def test_a_skill_beyond_the_limits_of_the_extension_is_refused_with_the_reason(shelf):
    for number in range(512):
        (shelf / "knots" / "assets" / f"{number}.txt").write_text("x")
    async with served(shelf) as client:
        assert (await ask(client, "skills/list"))["skills"] == []
        with pytest.raises(MCPError, match="more than 512 files"):
            await ask(client, "skills/get", uri="skill://knots/SKILL.md")
        assert text_of(await client.read_resource("skill://knots/SKILL.md")) == GUIDE
