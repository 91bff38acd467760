"""Stories: folders with `story.toml`, `narrator.toml`, `tools/` and `lore/`. Reading one, and checking it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from narratoria.errors import NarratoriaError, StoryInvalid, StoryProblem
from narratoria.events import JsonObject
from narratoria.kinds.foreign_sources import ToolSources
from narratoria.kinds.load import load_tool
from narratoria.kinds.manifest import default_name, manifest_data
from narratoria.kinds.mcp.server_file import ServerFile
from narratoria.kinds.openapi.api_file import ApiFile
from narratoria.kinds.tool_files import ToolFile, tool_files
from narratoria.narrator.roster import RULES, USUAL
from narratoria.narrator.rules.fillable import slots
from narratoria.narrator.rules.rule_file import Rules, RulesReader
from narratoria.narrator.rules.scripted import ScriptedNarrator
from narratoria.play.last_resort import SILENCE
from narratoria.play.stage import stage
from narratoria.play.story_approvals import ApprovalRules
from narratoria.play.story_file import Cover, Opening, StoryFile
from narratoria.play.story_keys import PanelTable
from narratoria.play.story_panel import panel_problems
from narratoria.play.story_skills import story_skills
from narratoria.play.story_texts import check_guides, texts
from narratoria.skills.skill_library import SkillLibrary, found_places
from narratoria.story_check import RuleBook, check_rules
from narratoria.story_check.called_tools import input_problems
from narratoria.story_check.rule_book import did_you_mean
from narratoria.story_check.written_state import state_paths
from narratoria.toml_lines import read_toml, toml_problem
from narratoria.tools.node_resources import Resources
from narratoria.tools.tool import Tool

AnyTool = Tool[Any, Any]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class StoryTool:
    """A tool in the story's `tools/`: its executable, or else its manifest, and what the manifest says."""

    name: str
    path: Path
    manifest: JsonObject = field(default_factory=dict)
    definition: AnyTool | None = field(default=None, compare=False, repr=False)
    """The tool itself, as it was when the story was read."""

    @property
    def description(self) -> str:
        return str(self.manifest.get("description", ""))


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
    go_on: str = ""  # what a player would say to let time pass
    refusal: tuple[str, ...] = ()  # what is told where nothing here can do what the player means
    cover: Cover = field(default_factory=Cover)
    state: JsonObject = field(default_factory=dict)
    panel: tuple[PanelTable, ...] = ()
    permissions: tuple[str, ...] = ()
    approval: ApprovalRules = field(default_factory=ApprovalRules)
    tools: tuple[StoryTool, ...] = ()
    resources: Mapping[str, Resources] = field(default_factory=dict)  # of the machines its tools run on
    free_tools: tuple[str, ...] = ()  # what a narrator may call although rules call it too
    lore: Mapping[str, str] = field(default_factory=dict)
    unread_lore: tuple[str, ...] = ()  # files of `lore/` that are no text, and why
    skills: Mapping[str, JsonObject] = field(
        default_factory=dict
    )  # skills it uses beside its own: their settings
    sources: ToolSources = field(default_factory=ToolSources)  # MCP servers and OpenAPI documents
    warnings: tuple[StoryProblem, ...] = ()  # what its files have that is surely not meant so

    @classmethod
    def load(cls, path: Path | str) -> Story:
        """Read the folder at `path` and check it; raise `StoryInvalid` with every mistake, its file, line and fix."""
        root = Path(path)
        if not root.is_dir():
            raise StoryInvalid(f"{root}: no such folder; a story is a folder with a story.toml in it")
        return _Reading(root.resolve()).story()

    def warn(self) -> list[str]:
        """Return the warnings in a line or two, for whoever starts it; none for a story without."""
        if not self.warnings:
            return []
        more = len(self.warnings) - 1
        rest = f" ({more} more: narratoria check {self.root})" if more else ""
        return [f"warning: {self.warnings[0]}{rest}"]

    @property
    def warning(self) -> str:
        """The first warning in a line, its file as it lies in the story's folder; empty for a story without."""
        if not self.warnings:
            return ""
        first, more = self.warnings[0], len(self.warnings) - 1
        return f"{first.place(self.root)}: {first.message}{f' (and {more} more)' if more else ''}"

    @property
    def is_english(self) -> bool:
        return self.language.partition("-")[0].lower() == "en"

    def scripted_narrator(self, *, whole: bool = False, defers: bool = False) -> ScriptedNarrator:
        """The narrator of the story's own `narrator.toml`; `whole` and `defers` where others stand behind it."""
        if self.rules is None:
            raise StoryInvalid(f"{self.root / 'narrator.toml'}: no such file; this story has no rules")
        rules = self.rules if self.is_english else self.rules.without_english(self.refusal or (SILENCE,))
        return ScriptedNarrator(rules, whole=whole, defers=defers)

    @property
    def reserved_tools(self) -> frozenset[str]:
        """Tools that only the rules may call: those they call, but for the ones the story sets free."""
        called = self.rules.tools if self.rules is not None else set()
        return frozenset(called) - frozenset(self.free_tools)

    @property
    def needs_stage(self) -> bool:
        """True where rules set state or offer choices, and the story brings no tool of its own for it."""
        return (
            self.rules is not None
            and self.rules.stage_name == stage.name
            and stage.name in self.rules.tools
            and all(tool.name != stage.name for tool in self.tools)
        )

    def tool(self, name: str) -> StoryTool:
        for tool in self.tools:
            if tool.name == name:
                return tool
        raise KeyError(name)


# --- reading the folder --------------------------------------------------------------------------------


class _Reading:
    """One reading of a folder. A mistake is kept, and the reading goes on with what can be read."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[StoryProblem] = []
        self.broken: set[str] = set()  # tools with a mistake
        self.partly: Rules | None = None  # of rules with a mistake, what can be read
        self.unmarked: dict[str, ToolFile] = {}  # scripts that may be meant as tools, and lack the run bit

    def attempt(self, read: Callable[[], _T], otherwise: _T) -> _T:
        try:
            return read()
        except StoryInvalid as error:
            self.problems += error.problems or [StoryProblem(self.root, None, str(error))]
            return otherwise

    def story(self) -> Story:
        root = self.root
        file = self.attempt(lambda: StoryFile(root / "story.toml"), None)
        if file is None:
            raise StoryInvalid.of(self.problems)
        self.attempt(file.check_keys, None)
        tools = tuple(self._tools(root / "tools"))
        names = {tool.name for tool in tools}
        narrators: tuple[str, ...] = self.attempt(file.narrators, tuple(USUAL))
        rules = self.attempt(lambda: self._rules(needed=RULES in narrators), None)
        lore, unread_lore = texts(root / "lore")
        told = len(self.problems)
        sources = ToolSources(self.attempt(file.servers, ServerFile()), self.attempt(file.apis, ApiFile()))
        skills: dict[str, JsonObject] = self.attempt(file.skills, {})
        unread = len(self.problems) > told  # then any prefix may be one of theirs

        def foreign(prefix: str) -> bool:
            return unread or prefix in sources.names or prefix in skills

        by_skill = {str(tool.manifest.get("skill") or tool.name) for tool in tools}
        self.attempt(lambda: check_guides(root / "skills", by_skill, skills), None)
        made = Story(
            root=root,
            id=self.attempt(file.id, root.name),
            title=self.attempt(lambda: file.text("title", required=True), ""),
            premise=self.attempt(lambda: file.text("premise", required=True), ""),
            author=self.attempt(lambda: file.text("author"), ""),
            note=self.attempt(lambda: file.text("note"), ""),
            language=self.attempt(file.language, "en"),
            opening=self.attempt(file.opening, Opening("")),
            cover=self.attempt(lambda: file.cover(names), Cover()),
            narrators=narrators,
            go_on=self.attempt(file.go_on, ""),
            refusal=self.attempt(file.refusal, ()),
            rules=rules,
            state=self.attempt(file.state, {}),
            panel=self.attempt(file.panel, ()),
            permissions=self.attempt(lambda: file.strings("permissions"), ()),
            approval=self.attempt(lambda: file.approval(names | {stage.name}, foreign), ApprovalRules()),
            tools=tools,
            resources=self.attempt(lambda: file.resources(names), {}),
            free_tools=self.attempt(lambda: file.free_tools(names | {stage.name}, foreign), ()),
            lore=lore,
            unread_lore=tuple(unread_lore),
            skills=skills,
            sources=sources,
        )
        return self._checked(made)

    def _checked(self, story: Story) -> Story:
        self.problems += _cover_problems(story)
        self.problems += _opening_problems(story)
        library = story_skills(story) if story.skills or (story.root / "skills").is_dir() else None
        if library is not None:
            self.problems += _skill_problems(story, library)
        rules = story.rules or self.partly
        if rules is not None:
            lacking = {name: self._lacking(one) for name, one in self.unmarked.items()}
            book = rule_book(story, rules, library, self.broken, lacking)
            self.problems += check_rules(book, whole=story.rules is not None)
            if story.rules is not None:
                self.problems += panel_problems(story.panel, book)
        self.problems += self._uncalled_scripts()
        told = " ".join(one.message for one in self.problems)
        files = list(dict.fromkeys(one.file for one in self.problems))
        errors = sorted(
            (
                one
                for one in self.problems
                if one.severity == "error" and not _is_the_misspelt(one.message, told)
            ),
            key=lambda one: (files.index(one.file), one.line or 0),
        )
        warnings = [one for one in self.problems if one.severity == "warning"]
        if errors:
            raise StoryInvalid.of([*errors, *warnings])
        return replace(story, warnings=tuple(warnings))

    def _lacking(self, one: ToolFile) -> str:
        """Return what a script lacks to be a tool, with its path as seen from the story's folder."""
        return f"{one.path} {one.problem}".replace(f"{self.root}/", "")

    def _uncalled_scripts(self) -> Iterator[StoryProblem]:
        """Yield a warning for each script that lacks the run bit and that no rule calls: a rule's own line says it."""
        told = " ".join(one.message for one in self.problems)
        for one in dict.fromkeys(self.unmarked.values()):
            lacking = self._lacking(one)
            if lacking not in told:
                yield StoryProblem(one.path, None, lacking, "warning")

    def _rules(self, *, needed: bool) -> Rules | None:
        path = self.root / "narrator.toml"
        if not needed and not path.is_file():
            return None
        reader = RulesReader(path, read_toml(path))
        rules = reader.rules()
        if reader.problems:
            self.partly = rules
            raise StoryInvalid.of(reader.problems)
        return rules

    def _tools(self, folder: Path) -> Iterator[StoryTool]:
        """Every tool of the folder. One that cannot be run, or that is only described, is a mistake of the story."""
        found: dict[str, Path] = {}
        for one in tool_files(folder):
            if not one.meant:
                self.unmarked |= dict.fromkeys((one.name, default_name(one.path)), one)
                continue
            tool = self.attempt(partial(_story_tool, one), None)
            if tool is None:
                self.broken |= {one.name, default_name(one.path)}
            elif tool.name in found:
                message = f"{found[tool.name]} has the name {tool.name!r} already; give each its own in its manifest"
                self.problems.append(StoryProblem(one.path, None, message))
            else:
                found[tool.name] = one.path
                yield tool


def _is_the_misspelt(message: str, told: str) -> bool:
    """Tell if a key is missing only because it, or its table, is misspelt, which another message says."""
    key = message.removeprefix("key ").partition(": missing;")
    return bool(key[1]) and any(f"did you mean '{part}'?" in told for part in key[0].strip("'").split("."))


def _story_tool(one: ToolFile) -> StoryTool:
    """Load a tool as every command does. Its name is the manifest's, or that of its file without the suffix."""
    if one.problem is not None:
        raise _invalid(one.path, one.problem)
    file = one.manifest or one.path
    try:
        data = {} if one.manifest is None else manifest_data(one.manifest)
        definition = load_tool(one.path)
    except NarratoriaError as error:
        raise _invalid(file, str(error)) from error
    return StoryTool(definition.name, one.path, data, definition)


def _invalid(path: Path, problem: str) -> StoryInvalid:
    """Return the error for a tool's file; a problem may begin with the file and the line."""
    found = re.match(re.escape(str(path)) + r"(?::(\d+))?: ", problem)
    if found is None:
        return StoryInvalid.of([StoryProblem(path, None, problem)])
    return StoryInvalid.of([StoryProblem(path, int(found[1]) if found[1] else None, problem[found.end() :])])


def _cover_problems(story: Story) -> Iterator[StoryProblem]:
    """Yield what the tool that draws the cover refuses in its input."""
    definition = next((one.definition for one in story.tools if one.name == story.cover.tool), None)
    if definition is not None:
        for path, problem in input_problems(story.cover.input, definition):
            key = f"cover.input{path}"
            yield toml_problem(story.root / "story.toml", key, f"key {key!r}: {problem}")


def _opening_problems(story: Story) -> Iterator[StoryProblem]:
    """Yield the `{state.…}` of the opening that the first state has not."""
    texts = {"narrative": story.opening.narrative}
    texts |= {f"choices[{at}]": one for at, one in enumerate(story.opening.choices)}
    known = [".".join(map(str, path)) for path in state_paths(story.state)]
    for place, text in texts.items():
        for slot in sorted(slots(text)):
            path = slot.removeprefix("state.")
            if slot.startswith("state.") and path not in known:
                key = f"opening.{place}"
                hint = did_you_mean(path, known, "[state] has")
                message = f"key {key!r}: {{{slot}}}: [state] has no {path}; {hint}"
                yield toml_problem(story.root / "story.toml", key, message, "warning")


def _skill_problems(story: Story, library: SkillLibrary) -> Iterator[StoryProblem]:
    """Yield what is wrong with skills, and the skills that the story names and that are not there. Whoever plays may
    bring one.
    """
    for text in library.problems:
        place, _, reason = text.removeprefix("skipped: ").partition(": ")
        if Path(place).is_relative_to(story.root):
            yield StoryProblem(Path(place), None, f"the skill is left out: {reason}", "warning")
    found = {skill.name for skill in library.skills}
    known = (
        {skill.name for skill in SkillLibrary(found_places()).skills}
        if story.skills.keys() - found
        else set()
    )
    for name in sorted(story.skills.keys() - found):
        message = f"key 'skills': there is no skill {name!r} here; {did_you_mean(name, known)}"
        yield toml_problem(story.root / "story.toml", f"skills.{name}", message, "warning")


def rule_book(
    story: Story,
    rules: Rules,
    library: SkillLibrary | None,
    broken: AbstractSet[str] = frozenset(),
    lacking: Mapping[str, str] = MappingProxyType({}),
) -> RuleBook:
    """Return the rules of a story with all that they are checked against."""
    own = {one.name: one.definition for one in story.tools if one.definition is not None}
    tools: dict[str, AnyTool] = {stage.name: stage, **own}
    folders = [story.root / "tools", story.root / "skills"]
    if library is not None:
        tools |= {tool.name: tool for tool in library}
        folders += [skill.root for skill in library.skills if skill.root is not None]
    return RuleBook(
        root=story.root,
        rules=rules,
        tools=tools,
        broken=broken,
        lacking=lacking,
        servers=frozenset(story.sources.names),
        state=story.state,
        choices=story.opening.choices,
        go_on=story.go_on if {"local", "llm"}.isdisjoint(story.narrators) else "",
        folders=folders,
    )
