"""The scripts of a skill as tools, named `skill.script`.

A script with a manifest beside it (`roll`, `roll.tool.json`) speaks our protocol. One without is a program of the
command line, as other people's skills have them: it gets `args` and `stdin`, and what it prints is the result.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from narratoria.errors import NarratoriaError
from narratoria.events import JsonObject
from narratoria.kinds.foreign_names import our_name, our_names
from narratoria.kinds.manifest import SUFFIX, Manifest, has_manifest, manifest_path, read_manifest
from narratoria.kinds.process.launch import INTERPRETERS, command_for
from narratoria.kinds.process.process_tool import process_tool
from narratoria.kinds.process.surroundings import Surround
from narratoria.skills import plain_script
from narratoria.skills.skill import Skill
from narratoria.tools.tool import Tool, ToolContext, ToolKind, ToolResult

SCRIPT: Final = ToolKind("skill", ends_itself=True, returns_its_patches=True, foreign=True, local_files=True)
PROGRAM: Final = ToolKind("skill", ends_itself=True, foreign=True)
PLAIN_PARAMETERS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "args": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Arguments of the command line.",
        },
        "stdin": {"type": "string", "description": "Text for its standard input."},
    },
    "additionalProperties": False,
}
_MOST_MESSAGE: Final = 2_000

AnyTool = Tool[Any, Any]


@dataclass
class Scripts:
    """The tools of a skill, the reasons why a script is none, and the names that were mapped."""

    tools: list[AnyTool] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def script_files(skill: Skill) -> Iterator[Path]:
    """Yield the files in `scripts/` that can be run. What begins with `_` or `.` is the scripts' own."""
    if skill.root is None:
        return
    for path in sorted((skill.root / "scripts").glob("*")):
        if path.name.startswith(("_", ".")) or path.name.endswith(SUFFIX) or not path.is_file():
            continue
        if os.access(path, os.X_OK) or path.suffix.lower() in INTERPRETERS or has_manifest(path):
            yield path


def script_tools(skill: Skill, surround: Surround | None = None) -> Scripts:
    """Make tools of a skill's scripts. A script that cannot be used is a problem and hides no other."""
    found = Scripts()
    files = {_label(path): path for path in script_files(skill)}
    prefix = our_name(skill.name)
    for label, ours in our_names(list(files)).items():
        path, name = files[label], f"{prefix}.{ours}"
        try:
            found.tools.append(_tool(skill, path, name, surround))
        except NarratoriaError as error:
            found.problems.append(f"{name}: {error}")
            continue
        if name != f"{skill.name}.{label}":
            found.notes.append(f"{name}: the script {path.name} of the skill {skill.name!r}")
    return found


def _label(path: Path) -> str:
    """Return a script's own name: without the suffix, unless another script has that name too."""
    others = [one for one in path.parent.glob(f"{path.stem}.*") if not one.name.endswith(SUFFIX)]
    twins = [one for one in [*others, path.parent / path.stem] if one != path and one.is_file()]
    return path.name if twins else path.stem


def _tool(skill: Skill, path: Path, name: str, surround: Surround | None) -> AnyTool:
    env = [
        f"NARRATORIA_SKILL={skill.name}",
        f"NARRATORIA_SKILL_ROOT={skill.root}",
        f"NARRATORIA_PYTHON={sys.executable}",
    ]
    place = path if skill.root is None else skill.root / "SKILL.md"  # it may read the folder of its skill
    if has_manifest(path):
        manifest = msgspec.structs.replace(read_manifest(manifest_path(path)), name=name, skill=skill.name)
        return process_tool(path, manifest=manifest, env=env, kind=SCRIPT, surround=surround, place=place)
    described = Manifest(
        name=name,
        description=f"Runs {path.name} of the skill {skill.name}. {skill.description}",
        parameters=PLAIN_PARAMETERS,
        skill=skill.name,
    )
    command = msgspec.json.encode(command_for(path)).decode()
    inner = process_tool(
        plain_script.__file__,
        manifest=described,
        env=[*env, f"{plain_script.COMMAND}={command}"],
        kind=SCRIPT,
        surround=surround,
        place=place,
    )
    return Tool(
        name,
        described.description,
        _Program(inner).run,
        parameters=PLAIN_PARAMETERS,
        timeout=described.timeout,
        skill=skill.name,
        kind=PROGRAM,
        origin=path.resolve(),
    )


@dataclass(frozen=True, eq=False)
class _Program:
    """The handler of a script without a manifest: the value is what it printed."""

    inner: AnyTool

    async def run(self, params: JsonObject, *, context: ToolContext) -> ToolResult[JsonObject]:
        outcome = self.inner.handler(params, context=context)
        text = (outcome if isinstance(outcome, ToolResult) else await outcome).message
        short = text if len(text) <= _MOST_MESSAGE else f"{text[:_MOST_MESSAGE]}…"
        return ToolResult.ok({"text": text}, message=short)
