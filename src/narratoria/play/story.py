"""Stories: folders with `story.toml`, `narrator.toml`, `tools/` and `lore/`. Reading one, and finding all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from narratoria.errors import StoryInvalid, ToolValidationError
from narratoria.events import JsonObject
from narratoria.kinds.manifest import manifest_data
from narratoria.kinds.mcp.server_file import ServerFile, ServersInvalid, read_server_file, servers_from_data
from narratoria.kinds.tool_files import tool_files
from narratoria.narrator.roster import NARRATORS, USUAL
from narratoria.narrator.rules.rule_file import Rules, read_toml
from narratoria.narrator.rules.scripted import ScriptedNarrator
from narratoria.play.story_keys import KEYS
from narratoria.play.story_texts import check_guides, texts
from narratoria.store.store import data_home
from narratoria.tools.schema.tables import unknown_key

_ID: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_TOOL_NAME: Final = re.compile(r"[a-z0-9_-]{1,64}")
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True, slots=True)
class StoryTool:
    """A tool in the story's `tools/`: its executable, or else its manifest, and what the manifest says."""

    name: str
    path: Path
    manifest: JsonObject = field(default_factory=dict)

    @property
    def description(self) -> str:
        return str(self.manifest.get("description", ""))


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


@dataclass(frozen=True, slots=True)
class Story:
    """A story that can be played."""

    root: Path
    id: str
    title: str
    premise: str
    opening: Opening
    rules: Rules | None
    author: str = ""
    note: str = ""
    language: str = "en"
    narrators: tuple[str, ...] = USUAL
    refusal: tuple[str, ...] = ()  # what is told where nothing here can do what the player means
    cover: Cover = Cover()
    state: JsonObject = field(default_factory=dict)
    permissions: tuple[str, ...] = ()
    tools: tuple[StoryTool, ...] = ()
    free_tools: tuple[str, ...] = ()  # what a narrator may call although rules call it too
    lore: Mapping[str, str] = field(default_factory=dict)
    unread_lore: tuple[str, ...] = ()  # files of `lore/` that are no text, and why
    skills: Mapping[str, JsonObject] = field(
        default_factory=dict
    )  # skills it uses beside its own: their settings
    servers: ServerFile = field(default_factory=ServerFile)  # MCP servers, whose tools are the story's too

    @classmethod
    def load(cls, path: Path | str) -> Story:
        """Read the folder at `path`; raise `StoryInvalid` that names the file, the key and the fix."""
        root = Path(path)
        if not root.is_dir():
            raise StoryInvalid(f"{root}: no such folder; a story is a folder with a story.toml in it")
        root = root.resolve()
        tools = tuple(_tools(root / "tools"))
        reader = _StoryFile(root / "story.toml")
        narrators = reader.narrators()
        rules = _rules(root, tools, needed="rules" in narrators)
        lore, unread = texts(root / "lore")
        servers = reader.servers()
        skills = reader.skills()
        check_guides(
            root / "skills", {str(tool.manifest.get("skill") or tool.name) for tool in tools}, skills
        )
        return cls(
            root=root,
            id=reader.id(),
            title=reader.text("title", required=True),
            premise=reader.text("premise", required=True),
            author=reader.text("author"),
            note=reader.text("note"),
            language=reader.language(),
            opening=reader.opening(),
            cover=reader.cover({tool.name for tool in tools}),
            narrators=narrators,
            refusal=reader.refusal(),
            rules=rules,
            state=reader.state(),
            permissions=reader.strings("permissions"),
            tools=tools,
            free_tools=reader.free_tools({tool.name for tool in tools}, servers.names | skills.keys()),
            lore=lore,
            unread_lore=tuple(unread),
            skills=skills,
            servers=servers,
        )

    def scripted_narrator(self, *, whole: bool = False, defers: bool = False) -> ScriptedNarrator:
        """The narrator of the story's own `narrator.toml`; `whole` and `defers` where others stand behind it."""
        if self.rules is None:
            raise StoryInvalid(f"{self.root / 'narrator.toml'}: no such file; this story has no rules")
        return ScriptedNarrator(self.rules, whole=whole, defers=defers)

    @property
    def reserved_tools(self) -> frozenset[str]:
        """Tools that only the rules may call: those they call, but for the ones the story sets free."""
        called = self.rules.tools if self.rules is not None else set()
        return frozenset(called) - frozenset(self.free_tools)

    def tool(self, name: str) -> StoryTool:
        for tool in self.tools:
            if tool.name == name:
                return tool
        raise KeyError(name)


# --- finding -------------------------------------------------------------------------------------------


def story_folders() -> list[Path]:
    """Return the folders that hold stories, the player's own first. In a wheel the others lie in the package, in a
    checkout beside `src`.
    """
    package = Path(__file__).resolve().parents[1]
    shipped = package / "stories"
    return [data_home() / "stories", shipped if shipped.is_dir() else package.parents[1] / "stories"]


def find_stories(
    folders: Sequence[Path] | None = None,
    *,
    on_invalid: Callable[[Path, StoryInvalid], None] = lambda path, error: None,
) -> list[Story]:
    """Return every playable story, by title. An invalid one goes to `on_invalid` and hides no other.

    Where two have one id, the first shelf wins: a person may keep a changed copy of a shipped story.
    """
    found: dict[str, Story] = {}
    for folder in story_folders() if folders is None else folders:
        for path in sorted(folder.glob("*/story.toml")):
            try:
                story = Story.load(path.parent)
            except StoryInvalid as error:
                on_invalid(path.parent, error)
            else:
                found.setdefault(story.id, story)
    return sorted(found.values(), key=lambda story: story.title)


def open_story(name: str | Path) -> Story:
    """Return a story by its folder or its id; `StoryInvalid` lists the known ones."""
    path = Path(name)
    if (path / "story.toml").is_file():
        return Story.load(path)
    return library_story(str(name))


def library_story(name: str) -> Story:
    """Return a story of the library by its id, whatever folders the working directory has."""
    broken: dict[str, StoryInvalid] = {}

    def note(where: Path, error: StoryInvalid) -> None:
        broken.setdefault(where.name, error)

    stories = find_stories(on_invalid=note)
    for story in stories:
        if story.id == name:
            return story
    if name in broken:
        raise broken[name]
    known = ", ".join(story.id for story in stories) or "none"
    raise StoryInvalid(
        f"{name}: neither a folder with a story.toml nor the id of a story (there are: {known})"
    )


# --- reading story.toml --------------------------------------------------------------------------------


class _StoryFile:
    """`story.toml`, key by key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = read_toml(path)
        self._known(self.data, KEYS[""], "")

    def fail(self, key: str, problem: str) -> StoryInvalid:
        return StoryInvalid(f"{self.path}: key {key!r}: {problem}")

    def _known(self, table: Mapping[str, Any], known: Sequence[str], prefix: str) -> None:
        for key in table:
            if key not in known:
                raise self.fail(prefix + key, unknown_key(key, known))

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
                return read_server_file(path, cwd=folder)
            return servers_from_data(given, where=f"{self.path}: mcp", folder=folder, cwd=folder)
        except ServersInvalid as error:
            raise self.fail("mcp", str(error)) from None

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

    def free_tools(self, known: set[str], prefixes: AbstractSet[str]) -> tuple[str, ...]:
        names = self.strings("free_tools")
        own = {path.name for path in (self.path.parent / "skills").glob("*/")}
        for name in names:
            prefix, dot, _ = name.partition(".")
            if name not in known and not (dot and prefix in prefixes | own):
                raise self.fail("free_tools", f"tools/{name} does not exist; name a tool of the tools folder")
        return names

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
                raise self.fail("narrator", f"{name!r} is no narrator; known are {', '.join(NARRATORS)}")
        return names

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
            raise self.fail(
                "cover.tool", f"tools/{tool} does not exist; there are {', '.join(sorted(tools))}"
            )
        path = (self.path.parent / picture).resolve() if picture else None
        if path is not None and not (path.is_file() and path.is_relative_to(self.path.parent)):
            raise self.fail("cover.picture", f"{picture!r} is no file inside the story's folder")
        return Cover(path, self._text(table, "alt", "cover.alt"), tool or None, given)


def _json_state(value: Any, reader: _StoryFile, path: str) -> Any:
    """Return a value as JSON state: TOML has dates, JSON has not."""
    if isinstance(value, dict):
        return {key: _json_state(item, reader, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_json_state(item, reader, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, bool | int | float | str):
        return value
    raise reader.fail(path, f"{value} is a date, which state cannot hold; write it as a string")


# --- the rest of the folder ----------------------------------------------------------------------------


def _rules(root: Path, tools: Sequence[StoryTool], *, needed: bool) -> Rules | None:
    path = root / "narrator.toml"
    if not needed and not path.is_file():
        return None
    rules = Rules.load(path)
    names = {tool.name for tool in tools}
    for tool in sorted({call.tool for call in rules.calls}):
        if "/" in tool and not (root / tool).is_file():
            raise StoryInvalid(f"{path}: tool {tool!r}: there is no such file in {root}")
    if rules.stage_name in rules.tools - names:
        raise StoryInvalid(
            f"{path}: 'set' and 'choices' of rules need tools/{rules.stage_name}, which does not exist; "
            f"copy it from the lighthouse story, or name another with the key 'stage'"
        )
    return rules


def _tools(folder: Path) -> Iterator[StoryTool]:
    """Every tool of the folder. One that cannot be run, or that is only described, is a mistake of the story."""
    for one in tool_files(folder, below=False):
        if one.problem is not None:
            raise StoryInvalid(f"{one.path}: {one.problem}")
        if not _TOOL_NAME.fullmatch(one.name):
            raise StoryInvalid(
                f"{one.path}: a tool's name has small letters, digits, - and _ only; rename it"
            )
        yield StoryTool(one.name, one.path, {} if one.manifest is None else _manifest(one.manifest, one.name))


def _manifest(path: Path, name: str) -> JsonObject:
    try:
        data = manifest_data(path)
    except ToolValidationError as error:
        raise StoryInvalid(str(error)) from None
    if not isinstance(data, dict):
        raise StoryInvalid(f"{path}: expected a JSON object")
    if data.get("name", name) != name:
        raise StoryInvalid(f"{path}: key 'name': {data['name']!r}, but the tool beside it is {name!r}")
    return data
