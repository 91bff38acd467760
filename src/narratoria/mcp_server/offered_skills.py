"""Skills for hosts: the guide and the files of each, as resources and prompts, and by the skills extension.

The extension `io.modelcontextprotocol/skills` (SEP-2640) has `skills/list` and `skills/get`, which name every file of a
skill with its digest, and `resources/directory/read`. A host that does not know it finds the guides among the resources
and the prompts.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from narratoria.events import JsonObject
from narratoria.mcp_server.offered_prompts import OfferedPrompt
from narratoria.skills.frontmatter import FrontmatterInvalid, frontmatter_as_json
from narratoria.skills.skill import Skill, SkillInvalid
from narratoria.skills.skill_files import GUIDE, file_of_skill, folder_of_skill, skill_files
from narratoria.skills.skill_library import SkillLibrary
from narratoria.unicode_text import legible

EXTENSION: Final = "io.modelcontextprotocol/skills"
SKILLS: Final = "skill://"
GUIDES: Final = "narratoria://guides/"
"""Guides of a story that are single files, which the extension does not know."""
MARKDOWN: Final = "text/markdown"
FOLDER: Final = "inode/directory"
MOST_TOLD: Final = 40
"""Skills that the instructions of the server name."""
LONGEST_TOLD: Final = 200
_BYTES: Final = "surrogateescape"  # the name of a file need not be UTF-8

Context = ServerRequestContext[Any, Any]


class GetSkillParams(types.RequestParams):
    """The parameters of `skills/get`: the address of a SKILL.md."""

    uri: str


class ReadDirectoryParams(types.PaginatedRequestParams):
    """The parameters of `resources/directory/read`: the address of a folder."""

    uri: str


class OfferedSkills:
    """The skills of a library as MCP offers them. Each question looks at the folders again."""

    def __init__(self, library: SkillLibrary) -> None:
        self._library = library
        self._digests: dict[Path, tuple[int, int, str]] = {}

    def extend(self, server: Server[Any]) -> None:
        """Add the extension to a server."""
        server.extensions[EXTENSION] = {"directoryRead": True}
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self._list)
        server.add_request_handler("skills/get", GetSkillParams, self._get)
        server.add_request_handler("resources/directory/read", ReadDirectoryParams, self._read_directory)

    # --- for every host ---------------------------------------------------------------------------------------

    def told(self) -> str | None:
        """The skills in the words of the server's instructions; None if there are none."""
        skills = [one for one in self.now() if not one.is_guide]
        if not skills:
            return None
        lines = [f"- {guide_uri(one)}: {_short(one.description)}" for one in skills[:MOST_TOLD]]
        if len(skills) > MOST_TOLD:
            lines.append(f"- and {len(skills) - MOST_TOLD} more, among the resources")
        return "\n".join(["Skills: read the guide of a skill before you use its tools.", *lines])

    def resources(self) -> list[JsonObject]:
        """The guides and their pages, as resources are listed. Other files are read by their address."""
        return [one for skill in self.now() for one in _resources(skill)]

    def prompts(self) -> Iterator[OfferedPrompt]:
        """The guides as prompts; that of a skill has the skill's name."""
        for skill in self.now():
            if not skill.is_guide:
                yield OfferedPrompt(skill.name, lambda _, text=skill.body: text, skill.description)  # type: ignore[misc]

    def read(self, uri: str) -> JsonObject | None:
        """The file at an address, exactly as it is; None if it is no file of a skill."""
        if uri.startswith(GUIDES):
            name = unquote(uri.removeprefix(GUIDES)).removesuffix(".md")
            guide = next((one for one in self.now() if one.is_guide and one.name == name), None)
            return None if guide is None else {"uri": uri, "mimeType": MARKDOWN, "text": guide.body}
        skill, path = self._find(uri)
        found = None if skill is None else file_of_skill(skill, path)
        if found is None:
            return None
        try:
            content = found.read_bytes()
        except OSError:
            return None
        one: JsonObject = {"uri": uri, "mimeType": media_type(path)}
        try:
            one["text"] = content.decode()
        except UnicodeDecodeError:
            one["blob"] = base64.b64encode(content).decode("ascii")
        return one

    # --- the extension ----------------------------------------------------------------------------------------

    async def _list(self, context: Context, params: types.PaginatedRequestParams) -> JsonObject:
        if params.cursor is not None:
            raise MCPError(types.INVALID_PARAMS, "every list is one page here: leave the cursor out")
        entries = []
        for skill in self.now():
            try:
                if not skill.is_guide:
                    entries.append(self._entry(skill))
            except (SkillInvalid, FrontmatterInvalid, OSError):
                continue  # `skills/get` says why
        return _fresh({"skills": entries})

    async def _get(self, context: Context, params: GetSkillParams) -> JsonObject:
        skill, path = self._find(params.uri)
        if skill is None or path != GUIDE:
            raise MCPError(
                types.INVALID_PARAMS, f"there is no skill at {params.uri!r}; skills/list has those there are"
            )
        try:
            return _fresh({"skill": self._entry(skill)})
        except (SkillInvalid, FrontmatterInvalid, OSError) as error:
            raise MCPError(
                types.INVALID_PARAMS, f"the skill {skill.name!r} cannot be offered: {error}"
            ) from None

    async def _read_directory(self, context: Context, params: ReadDirectoryParams) -> JsonObject:
        if params.cursor is not None:
            raise MCPError(types.INVALID_PARAMS, "every list is one page here: leave the cursor out")
        skill, path = self._find(params.uri)
        children = None if skill is None else folder_of_skill(skill, path)
        if skill is None or children is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no folder of a skill at {params.uri!r}")
        above = f"{path}/" if path else ""
        folders, files = children
        listed = [_file(skill, f"{above}{name}") for name in files]
        listed += [
            {"uri": _uri(skill, f"{above}{name}"), "name": legible(name), "mimeType": FOLDER}
            for name in folders
        ]
        return {"resultType": "complete", "resources": listed}

    def _entry(self, skill: Skill) -> JsonObject:
        files = skill_files(skill)
        return {
            "uri": guide_uri(skill),
            "frontmatter": frontmatter_as_json(files[GUIDE].read_text(encoding="utf-8")),
            "resources": [{"uri": _uri(skill, name), **self._digest(path)} for name, path in files.items()],
        }

    def _digest(self, path: Path) -> JsonObject:
        now = path.stat()
        known = self._digests.get(path)
        if known is None or known[:2] != (now.st_mtime_ns, now.st_size):
            content = path.read_bytes()
            known = now.st_mtime_ns, len(content), hashlib.sha256(content).hexdigest()
            self._digests[path] = known
        return {"digest": f"sha256:{known[2]}", "size": known[1]}

    def now(self) -> list[Skill]:
        """The skills as they are now; one that did not change is the same object as before."""
        self._library.refresh()
        return self._library.skills

    def _find(self, uri: str) -> tuple[Skill | None, str]:
        """The skill an address belongs to, and the path in it."""
        name, _, path = unquote(uri.removeprefix(SKILLS), errors=_BYTES).partition("/")
        if not uri.startswith(SKILLS):
            return None, path
        return next((one for one in self.now() if one.name == name and not one.is_guide), None), path


def guide_uri(skill: Skill) -> str:
    """The address of a skill's SKILL.md."""
    return _uri(skill, GUIDE)


def media_type(path: str) -> str:
    """The media type of a file, by its name; text where the name does not say."""
    return MARKDOWN if path.endswith(".md") else mimetypes.guess_type(path)[0] or "text/plain"


def _uri(skill: Skill, path: str) -> str:
    return f"{SKILLS}{quote(skill.name)}/{quote(path, errors=_BYTES)}"


def _resources(skill: Skill) -> Iterator[JsonObject]:
    if skill.is_guide:
        name = f"{skill.name}.md"
        yield {"uri": f"{GUIDES}{quote(name)}", "name": name, "mimeType": MARKDOWN}
        return
    for path in (GUIDE, *skill.references):
        yield _file(skill, path)


def _file(skill: Skill, path: str) -> JsonObject:
    listed: JsonObject = {
        "uri": _uri(skill, path),
        "name": legible(path.rpartition("/")[2]),
        "mimeType": media_type(path),
    }
    if path == GUIDE:
        listed |= {"name": skill.name, "description": skill.description}
    return listed


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TOLD else f"{line[: LONGEST_TOLD - 1]}…"


def _fresh(answer: JsonObject) -> JsonObject:
    """Mark an answer as whole, and as one that nobody is to keep: skills change while they are served."""
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **answer}
