"""The conformance kit: checks that an executable keeps the tool protocol, whatever it is sent.

`check_tool` runs it with a good request and with hostile ones, and judges each rule as pass, fail or not exercised.
`lines` reads a line, `observation` watches a run, `requests` are what is sent; `protocol_rules` lists the rules,
which `output_rules` and `ending_rules` judge.
"""
# 001 is the specification of the protocol.

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypedDict, Unpack

from narratoria.conformance.ending_rules import rudeness
from narratoria.conformance.observation import Observation, observe
from narratoria.conformance.protocol_rules import RULES
from narratoria.conformance.requests import requests_for
from narratoria.conformance.verdicts import FAIL, Judgement, Subject, judge
from narratoria.errors import ToolValidationError
from narratoria.events import Done, JsonObject
from narratoria.kinds.environment import named, unset_of
from narratoria.kinds.load import file_kind, load_tool, manifest_of
from narratoria.kinds.manifest import Manifest, default_name, has_manifest, is_manifest
from narratoria.kinds.ndjson import Limits
from narratoria.kinds.process import folder_removal
from narratoria.kinds.process.confinement import CELLS, Confinement, nothing_holds
from narratoria.kinds.process.custody import custody
from narratoria.kinds.process.launch import LaunchRefused, tool_command
from narratoria.kinds.sandbox import NETWORK, profile_by_place, profile_of, stricter
from narratoria.session.assets import AssetStore

DEFAULT_TIMEOUT: Final = 10.0

__all__ = ["RULES", "Judgement", "Report", "check_tool"]


class RequestParts(TypedDict, total=False):
    """The parts of a request beside its input."""

    state: JsonObject | None
    operation: str | None
    dependencies: JsonObject | None


@dataclass(frozen=True)
class Report:
    """The verdicts on a tool, in the order of the specification."""

    tool: str
    judgements: tuple[Judgement, ...]
    runs: int
    refused_input: bool
    """True if the tool ran but rejected the good request, so that no events of a success were seen."""
    unset: tuple[str, ...] = ()
    """Variables named by its manifest that are not set."""
    other_kind: str | None = None
    """The kind of a tool that is no executable: only its manifest was checked."""
    stderr: str = ""
    """The end of the standard error of the first run that wrote any."""
    sandbox: str = "trusted"
    """The profile of the sandbox that it was run in."""

    @property
    def conforms(self) -> bool:
        """Tell if no MUST is broken. A broken SHOULD is advice."""
        return not any(one.verdict == FAIL and one.rule.level == "MUST" for one in self.judgements)


def check_tool(
    path: Path,
    *,
    input: JsonObject | None = None,  # noqa: A002 - the protocol's word
    timeout: float | None = None,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    **request: Unpack[RequestParts],
) -> Report:
    """Run the tool at `path` and judge it. Nothing it does can make this raise; `timeout` bounds each run.

    `state`, `operation` and `dependencies` are sent with the input. It runs in the sandbox in which its calls will run.

    Of a tool that is no executable only the manifest is judged.
    """
    subject = Subject(path=path, name=default_name(path))
    manifest = _read_manifest(path, subject)
    if manifest is not None:
        subject.name = manifest.name
    if subject.other_kind is None:
        try:
            command = tool_command(path.absolute())
            seconds = timeout or (manifest.timeout if manifest else DEFAULT_TIMEOUT)
            caps = limits.with_manifest(manifest.limits if manifest else None)
            _run_all(subject, command, manifest, input, seconds, caps, request)
        except LaunchRefused as refusal:
            subject.refusal = refusal
    first = subject.runs[0] if subject.runs else None
    return Report(
        tool=subject.name,
        judgements=tuple(judge(rule, subject) for rule in RULES),
        runs=len(subject.runs),
        refused_input=first is not None and _said_no(first),
        unset=tuple(unset_of(named(manifest.env))) if manifest else (),
        other_kind=subject.other_kind,
        stderr=next((run.stderr for run in subject.runs if run.stderr.strip()), ""),
        sandbox=first.sandbox.name if first is not None else "trusted",
    )


def _read_manifest(path: Path, subject: Subject) -> Manifest | None:
    """Return the manifest, if there is a readable one; its problems are reported by a rule."""
    if not is_manifest(path) and not has_manifest(path):
        return None
    try:
        subject.manifest = manifest = manifest_of(path)
        if not file_kind(manifest.kind, path).runs_a_file:
            subject.other_kind = manifest.kind
            load_tool(path)  # its settings are of that kind
    except ToolValidationError as error:
        subject.manifest_problem = str(error)
    return subject.manifest


def _run_all(
    subject: Subject,
    command: list[str],
    manifest: Manifest | None,
    given: JsonObject | None,
    timeout: float,
    limits: Limits,
    parts: RequestParts,
) -> None:
    if given is None:
        given = manifest.examples[0].input if manifest and manifest.examples else {}
    walls = _walls(subject.path, command, manifest)
    variables = manifest.env if manifest else ()
    asked = named(variables if walls is None else [one for one in variables if "=" in one])
    with _folder() as folder:
        store = AssetStore(Path(folder) / "assets")
        scratch = Path(folder) / "tmp"
        scratch.mkdir()
        for request in requests_for(subject.name, given, manifest, **parts):
            seen = observe(
                command,
                request.stdin,
                label=request.label,
                request_id=request.request_id,
                tool=subject.name,
                timeout=timeout,
                store=store,
                folder=scratch,
                limits=limits,
                asked=asked,
                walls=walls,
            )
            subject.add(request.rule, seen)
            # What breaks on a good request breaks on the others too; they would say nothing new.
            if request.rule is None and rudeness(seen) is not None:
                return


def _walls(path: Path, command: list[str], manifest: Manifest | None) -> Confinement | None:
    """Return the walls that a call of the tool has; None without any, or where the system has none."""
    profile = profile_of(stricter(profile_by_place(path), manifest.sandbox if manifest else None))
    if not profile.confines:
        return None
    asks = manifest is not None and NETWORK in manifest.permissions
    walls = Confinement.of(profile, command, path.absolute(), asks_network=asks)
    if not CELLS:
        walls.check(nothing_holds())
        return None
    return walls


@contextmanager
def _folder() -> Iterator[str]:
    folder = custody().scratch_folder()
    try:
        yield folder
    finally:
        folder_removal.remove(folder)


def _said_no(seen: Observation) -> bool:
    return any(isinstance(line.event, Done) and not line.event.ok for line in seen.lines)
