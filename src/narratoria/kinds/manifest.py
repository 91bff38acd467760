"""The manifest of a tool, `<tool>.tool.json`. It lies beside an executable, where it is optional, or stands alone."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from narratoria import bounds
from narratoria.errors import ArgumentsInvalid, ToolValidationError
from narratoria.events import JsonObject
from narratoria.json_lines import line_of
from narratoria.kinds.environment import named
from narratoria.kinds.sandbox import ProfileName
from narratoria.strict_json import read_file, with_integers
from narratoria.tools import schema
from narratoria.tools.contract import effects_from_data, preconditions_from_data
from narratoria.tools.deadline import LONGEST_TIMEOUT, check_seconds
from narratoria.tools.node_resources import Resources
from narratoria.tools.retry import policy_from_data
from narratoria.tools.schema.tables import table_problems
from narratoria.tools.tool import Approval
from narratoria.unicode_text import legible


class ManifestExample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    description: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"\S")]
    input: JsonObject = msgspec.field(default_factory=dict)


DEFAULT_KIND: Final = "process"
Positive = Annotated[int, msgspec.Meta(gt=0)]


class ManifestLimits(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Caps on the output of one invocation; a missing key means the runtime's default."""

    max_line_bytes: Positive | None = None
    max_events: Positive | None = None
    max_bytes: Positive | None = None
    max_values: Positive | None = None


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The keys of a manifest. Times are in seconds."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_-]{1,64}$")]
    description: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"\S")]
    title: str | None = None
    parameters: JsonObject = msgspec.field(
        default_factory=lambda: {"type": "object", "additionalProperties": True}
    )
    timeout: Annotated[float, msgspec.Meta(gt=0, extra_json_schema={"maximum": int(LONGEST_TIMEOUT)})] = 30.0
    retry: JsonObject | None = None
    preconditions: list[JsonObject] = msgspec.field(default_factory=list)
    effects: list[JsonObject] = msgspec.field(default_factory=list)
    permissions: list[str] = msgspec.field(default_factory=list)
    wants_state: bool = False
    read_only: bool = False
    approval: Approval | None = None
    """The calls that a person must approve first."""
    skill: str | None = None
    examples: list[ManifestExample] = msgspec.field(default_factory=list)
    operation: str = "run"
    limits: ManifestLimits | None = None
    sandbox: ProfileName | None = None
    """The walls it wants to run behind; its place, or a person, may ask for stricter ones."""
    env: list[Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(=|$)")]] = msgspec.field(
        default_factory=list
    )
    """Variables it needs beside the standard ones: `NAME`, with the value the person has, or `NAME=VALUE`."""
    resources: Resources | None = None
    """Resources that a machine must have free for it. With them, it runs on a Ray cluster."""
    warm: bool = False
    """True for a Python script whose calls are forks of an interpreter that has imported its modules."""
    kind: str = DEFAULT_KIND
    """The kind of tool: `process`, an executable beside the manifest, or another one in `kinds.load`."""
    settings: JsonObject = msgspec.field(default_factory=dict)
    """Settings of that kind, for those that need some."""


_parse: Any = schema.parser_for(Manifest)


SUFFIX: Final = ".tool.json"


def is_manifest(path: Path) -> bool:
    """Tell by its name if a file is a manifest."""
    return path.name.endswith(SUFFIX)


def manifest_path(executable: Path) -> Path:
    """Beside the executable: `torch-lighter` → `torch-lighter.tool.json`, `roll.py` → `roll.tool.json`."""
    whole = executable.with_name(f"{executable.name}{SUFFIX}")
    # Not `Path.exists`, which raises for a name that is too long for the file system.
    return whole if os.path.exists(whole) else executable.with_name(f"{executable.stem}{SUFFIX}")  # noqa: PTH110


def has_manifest(executable: Path) -> bool:
    """Tell if anything exists at the manifest's path: an unreadable manifest is a fault, not an absence."""
    return os.path.lexists(manifest_path(executable))


def default_name(executable: Path) -> str:
    """Return a tool name made from a file name: characters not allowed in names become hyphens."""
    return re.sub(r"[^a-z0-9_-]+", "-", executable.stem.lower()).strip("-")[:64] or "tool"


def load_manifest(executable: Path) -> Manifest:
    """The manifest beside `executable`, or what can be said without one."""
    if not has_manifest(executable):
        name = default_name(executable)
        return Manifest(name=name, description=f"The executable {legible(executable.name)}."[:200])
    return read_manifest(manifest_path(executable))


def read_manifest(path: Path) -> Manifest:
    """The manifest in the file `path`."""
    return parse_manifest(manifest_data(path), where=str(path), file=path)


def manifest_data(path: Path) -> Any:
    """The JSON in the manifest `path`, not yet checked. A `ToolValidationError` names the file and the line."""
    try:
        return read_file(path)
    except bounds.DocumentFault as error:
        raise ToolValidationError(error.at(path)) from None
    except OSError as error:
        raise ToolValidationError(
            f"{path}: the manifest cannot be read: {error.strerror}; make it a file that you may read"
        ) from None


def parse_manifest(data: Any, *, where: str, file: Path | None = None) -> Manifest:
    """Check a manifest whole, contract included; every problem names the key, and the line in its file."""

    def invalid(key: str, problem: object) -> ToolValidationError:
        line = line_of(file, key) if file is not None else None
        return ToolValidationError(f"{where}:{line}: {problem}" if line else f"{where}: {problem}")

    if isinstance(data, dict):
        numbers = {
            "limits": with_integers(data.get("limits")),
            "retry": with_integers(data.get("retry"), ["maxRetries"]),
        }
        data = {**data, **{key: value for key, value in numbers.items() if key in data}}
    try:
        check_seconds("timeout", data.get("timeout") if isinstance(data, dict) else None, LONGEST_TIMEOUT)
        manifest: Manifest = _parse(data)
    except ArgumentsInvalid as error:
        told = table_problems(error)
        problem = "; ".join(f"{key}: {problem}" for key, problem in told)
        raise invalid(told[0][0] if told else "", problem) from None
    except ToolValidationError as error:
        raise invalid("timeout", error) from None
    for key, check in _CONTRACT.items():
        try:
            check(manifest)
        except ToolValidationError as error:
            raise invalid(key, error) from None
    return manifest


def _check_retry(manifest: Manifest) -> None:
    if manifest.retry is not None:
        policy_from_data(manifest.retry, name=manifest.name)


_CONTRACT: Final[dict[str, Callable[[Manifest], object]]] = {
    "preconditions": lambda one: preconditions_from_data(
        one.preconditions, name=one.name, checks=_AnyCheck()
    ),
    "effects": lambda one: effects_from_data(one.effects, name=one.name),
    "retry": _check_retry,
    "parameters": lambda one: schema.parser_for_schema(one.parameters, name=one.name),
    "env": lambda one: named(one.env),
}


class _AnyCheck(dict[str, Any]):
    """A mapping that accepts any custom check: they are code of the embedding program, and a manifest may name any."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> Any:
        return lambda context: True
