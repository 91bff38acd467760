"""`story.toml`, read key by key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from narratoria.errors import StoryInvalid
from narratoria.events import JsonObject
from narratoria.kinds.mcp.server_file import ServerFile, ServersInvalid, read_server_file, servers_from_data
from narratoria.kinds.openapi.api_file import ApiFile, ApisInvalid, apis_from_data
from narratoria.kinds.sandbox import story_around
from narratoria.narrator.roster import NARRATORS, USUAL
from narratoria.play.story_approvals import DEFAULT, ApprovalRules
from narratoria.play.story_keys import KEYS, PanelTable
from narratoria.play.story_panel import read_panel
from narratoria.story_check.rule_book import did_you_mean
from narratoria.toml_lines import read_toml, toml_problem
from narratoria.tools.node_resources import Resources
from narratoria.tools.schema.tables import unknown_key
from narratoria.tools.tool import Approval
from narratoria.typed_values import convert

_RULES: Final = f"one of {', '.join(get_args(Approval))}"
_ID: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, slots=True)
class Opening:
    """The text and choices before the first prompt."""

    narrative: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cover:
    """A picture in the story's folder, or a tool that draws one. At most one of the two is set."""

    picture: Path | None = None
    alt: str = ""
    tool: str | None = None
    input: JsonObject = field(default_factory=dict)


class StoryFile:
    """`story.toml`, key by key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = read_toml(path)

    def fail(self, key: str, problem: str) -> StoryInvalid:
        return StoryInvalid.of([toml_problem(self.path, key, f"key {key!r}: {problem}")])

    def check_keys(self) -> None:
        """Raise for the keys of the file that there are not."""
        self._known(self.data, KEYS[""], "")

    def _known(self, table: Mapping[str, Any], known: Sequence[str], prefix: str) -> None:
        problems = [
            problem
            for key in table
            if key not in known
            for problem in self.fail(prefix + key, unknown_key(key, known)).problems
        ]
        if problems:
            raise StoryInvalid.of(problems)

    def _table(self, key: str) -> dict[str, Any]:
        table = self.data.get(key, {})
        if not isinstance(table, dict):
            raise self.fail(key, f"expected a table, written [{key}], got {table!r}")
        self._known(table, KEYS[key], f"{key}.")
        return table

    def _text(self, table: Mapping[str, Any], key: str, name: str, *, required: bool = False) -> str:
        value = table.get(key, "")
        if not isinstance(value, str):
            raise self.fail(name, f"expected a string, got {value!r}")
        if required and not value.strip():
            raise self.fail(name, f'missing; add {key} = "…"')
        return "\n\n".join(" ".join(block.split()) for block in value.split("\n\n")).strip()

    def _strings(self, table: Mapping[str, Any], key: str, name: str) -> tuple[str, ...]:
        items = table.get(key, [])
        if not isinstance(items, list) or not all(isinstance(item, str) and item.strip() for item in items):
            raise self.fail(name, f"expected a list of strings, got {items!r}")
        return tuple(items)

    def text(self, key: str, *, required: bool = False) -> str:
        return self._text(self.data, key, key, required=required)

    def strings(self, key: str) -> tuple[str, ...]:
        return self._strings(self.data, key, key)

    def servers(self) -> ServerFile:
        """Return the MCP servers: of the file that `mcp` names, or of the table `[mcp.NAME]`."""
        given = self.data.get("mcp", {})
        folder = self.path.parent
        try:
            if isinstance(given, str):
                path = (folder / given).resolve()
                if not path.is_relative_to(folder):
                    raise self.fail("mcp", f"{given!r} is no file inside the story's folder")
                return self._sandboxed(read_server_file(path, cwd=folder))
            found = servers_from_data(given, where=f"{self.path}: mcp", folder=folder, cwd=folder)
            return self._sandboxed(found)
        except ServersInvalid as error:
            raise self.fail("mcp", str(error)) from None

    def _sandboxed(self, found: ServerFile) -> ServerFile:
        """Return the servers as those of this story, whose programs run in its sandbox."""
        story = story_around(self.path)
        return replace(found, servers=tuple(replace(one, story=story) for one in found.servers))

    def apis(self) -> ApiFile:
        """Return the OpenAPI documents: the one that `openapi` names, or those of the tables `[openapi.NAME]`."""
        folder = self.path.parent
        try:
            found = apis_from_data(self.data.get("openapi", {}), folder=folder)
        except ApisInvalid as error:
            raise self.fail("openapi", str(error)) from None
        for api in found.apis:
            path = api.path.resolve()
            if not api.is_remote and not (path.is_file() and path.is_relative_to(folder)):
                raise self.fail(
                    f"openapi.{api.name}.spec", f"{api.settings.spec!r} is no file inside the story's folder"
                )
        return found

    def skills(self) -> dict[str, JsonObject]:
        """Return the skills the story names, each with its settings: a list of names, or a table for each."""
        given = self.data.get("skills", [])
        if isinstance(given, list):
            return {name: {} for name in self.strings("skills")}
        if not isinstance(given, dict) or not all(isinstance(one, dict) for one in given.values()):
            raise self.fail(
                "skills", "expected a list of names, or a table of settings for each: [skills.NAME]"
            )
        return {name: _json_state(one, self, f"skills.{name}") for name, one in given.items()}

    def approval(self, known: set[str], foreign: Callable[[str], bool]) -> ApprovalRules:
        """Return the rules for approvals: one for all tools, or a table with one for each."""
        given = self.data.get("approval", {})
        table = {DEFAULT: given} if isinstance(given, str) else given
        if not isinstance(table, dict):
            raise self.fail("approval", f"expected {_RULES}, or a table [approval], got {given!r}")
        for name, rule in table.items():
            key = "approval" if isinstance(given, str) else f"approval.{name}"
            if rule not in get_args(Approval):
                near = difflib.get_close_matches(str(rule), get_args(Approval), 1)
                raise self.fail(
                    key, f"{rule!r} is no rule; {f'did you mean {near[0]!r}?' if near else _RULES}"
                )
            prefix, dot, _ = name.partition(".")
            if (
                name != DEFAULT
                and name not in known
                and not (dot and (foreign(prefix) or prefix in self._own_skills()))
            ):
                raise self.fail(key, f"there is no tool {name!r}; {did_you_mean(name, known)}")
        return ApprovalRules(table)

    def _own_skills(self) -> set[str]:
        return {path.name for path in (self.path.parent / "skills").glob("*/")}

    def free_tools(self, known: set[str], foreign: Callable[[str], bool]) -> tuple[str, ...]:
        names = self.strings("free_tools")
        for name in names:
            prefix, dot, _ = name.partition(".")
            if name not in known and not (dot and (foreign(prefix) or prefix in self._own_skills())):
                raise self.fail("free_tools", f"tools/{name} does not exist; {did_you_mean(name, known)}")
        return names

    def resources(self, known: set[str]) -> dict[str, Resources]:
        """Return what tools need of the machine they run on: a table `[resources.TOOL]` each."""
        given = self.data.get("resources", {})
        if not isinstance(given, dict):
            raise self.fail("resources", f"expected a table for each tool, [resources.TOOL], got {given!r}")
        found: dict[str, Resources] = {}
        for name, table in given.items():
            if name not in known:
                raise self.fail(
                    f"resources.{name}", f"tools/{name} does not exist; {did_you_mean(name, known)}"
                )
            try:
                found[name] = convert(table, Resources)
            except msgspec.ValidationError as error:
                raise self.fail(f"resources.{name}", str(error)) from None
        return found

    def id(self) -> str:
        value = self.text("id") or self.path.parent.name
        if not _ID.fullmatch(value):
            raise self.fail("id", f"{value!r} is not an id; use small letters, digits, - and _")
        return value

    def language(self) -> str:
        value = self.text("language") or "en"
        if not _LANGUAGE.fullmatch(value):
            raise self.fail("language", f"{value!r} is not a language tag; use one such as en or pt-BR")
        return value

    def narrators(self) -> tuple[str, ...]:
        names = self.strings("narrator") or USUAL
        for name in names:
            if name not in NARRATORS:
                near = difflib.get_close_matches(name, NARRATORS, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(NARRATORS)}"
                raise self.fail("narrator", f"{name!r} is no narrator; {hint}")
        return names

    def go_on(self) -> str:
        return self.text("go_on") if self.data.get("go_on") else ""

    def refusal(self) -> tuple[str, ...]:
        value = self.data.get("refusal", [])
        if isinstance(value, str):
            return (self.text("refusal"),) if value.strip() else ()
        return tuple(" ".join(line.split()) for line in self.strings("refusal"))

    def opening(self) -> Opening:
        table = self._table("opening")
        narrative = self._text(table, "narrative", "opening.narrative", required=True)
        return Opening(narrative, self._strings(table, "choices", "opening.choices"))

    def state(self) -> JsonObject:
        table = self.data.get("state", {})
        if not isinstance(table, dict):
            raise self.fail("state", f"expected a table, written [state], got {table!r}")
        return {key: _json_state(value, self, f"state.{key}") for key, value in table.items()}

    def panel(self) -> tuple[PanelTable, ...]:
        """Return the parts of the panel beside the story."""
        return read_panel(self.data.get("panel", []), self.fail)

    def cover(self, tools: set[str]) -> Cover:
        table = self._table("cover")
        picture = self._text(table, "picture", "cover.picture")
        tool = self._text(table, "tool", "cover.tool")
        given = table.get("input", {})
        if picture and tool:
            raise self.fail("cover", "has a picture and a tool; keep one")
        if not isinstance(given, dict):
            raise self.fail("cover.input", f"expected a table, got {given!r}")
        if tool and tool not in tools:
            raise self.fail("cover.tool", f"tools/{tool} does not exist; {did_you_mean(tool, tools)}")
        path = (self.path.parent / picture).resolve() if picture else None
        if path is not None and not (path.is_file() and path.is_relative_to(self.path.parent)):
            raise self.fail("cover.picture", f"{picture!r} is no file inside the story's folder")
        return Cover(path, self._text(table, "alt", "cover.alt"), tool or None, given)


def _json_state(value: Any, reader: StoryFile, path: str) -> Any:
    """Return a value as JSON state: TOML has dates, JSON has not."""
    if isinstance(value, dict):
        return {key: _json_state(item, reader, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_json_state(item, reader, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, bool | int | float | str):
        return value
    raise reader.fail(path, f"{value} is a date, which state cannot hold; write it as a string")
