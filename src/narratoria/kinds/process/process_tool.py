"""Tools that are executables: one JSON object in, NDJSON events out."""
# 000 §2-6.

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

import msgspec

from narratoria import telemetry
from narratoria.errors import NON_ZERO_EXIT, OUTPUT_LIMIT, TIMEOUT, CallFailure, ToolFailure
from narratoria.events import JsonObject
from narratoria.kinds.conversation import request_for
from narratoria.kinds.environment import NOTHING, Named, environment, given, named, unset_of
from narratoria.kinds.from_manifest import FileKind, permissions_of, tool_from_manifest
from narratoria.kinds.manifest import Manifest, load_manifest
from narratoria.kinds.ndjson import Limits
from narratoria.kinds.placement import Engine, Job, engine_for, prepared
from narratoria.kinds.process.confinement import (
    CELLS,
    Confinement,
    ScratchWatch,
    nothing_holds,
    start_in,
)
from narratoria.kinds.process.launch import LaunchRefused, command_for, tool_command
from narratoria.kinds.process.process_output import Discreet, Output
from narratoria.kinds.process.scratch import scratch_folder
from narratoria.kinds.process.supervisor import ProcessOutcome, WarmStart, run_process
from narratoria.kinds.process.surroundings import Surround
from narratoria.kinds.process.verdict import judge
from narratoria.kinds.sandbox import NETWORK, Profile, ProfileName, profile_by_place, profile_of, stricter
from narratoria.session import Session
from narratoria.session.attempt_note import AttemptNote
from narratoria.tools.contract import Compensation, Effect
from narratoria.tools.node_resources import Resources
from narratoria.tools.tool import Tool, ToolContext, ToolKind, ToolResult

PROCESS: Final = ToolKind("process", ends_itself=True, returns_its_patches=True, local_files=True)


def process_tool(
    path: str | Path,
    *,
    manifest: Manifest | None = None,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    checks: Mapping[str, Any] | None = None,
    env: Iterable[str] = (),
    cwd: str | Path | None = None,
    kind: ToolKind = PROCESS,
    surround: Surround | None = None,
    folder: Path | None = None,
    sandbox: ProfileName | None = None,
    place: Path | None = None,
) -> Tool[Any, JsonObject]:
    """Make a tool from an executable and the manifest beside it.

    `limits` are the defaults; the manifest's own caps take precedence. `checks` holds, by id, the functions behind
    the manifest's `custom` preconditions. `env` adds variables to those the manifest names (`NAME`, or `NAME=VALUE`).
    `cwd` is the folder it runs in, and from which the paths of its assets are read; by default that of this process.
    `kind` and `surround` are for kinds that are made of executables, such as the scripts of a skill; `surround` is
    called before each call for more variables, and for the secrets in them, which are taken out of what it writes.
    `folder` goes with it where it runs on another machine; by default the folder it lies in. `sandbox` is the profile
    it runs in, if its place and its manifest do not ask for a stricter one. `place` is the file whose place counts for
    that, and whose folder it may read then; by default its own.
    Raises `ToolMissing`, `NotExecutable` or `ToolValidationError`; nothing is started here.
    """
    path = Path(path)
    command = command_for(path)
    manifest = manifest or load_manifest(path)
    env = list(env)
    warm, never_warm = _warm_start(command, surround) if manifest.warm else (None, "")
    process = _Process(
        manifest,
        command,
        limits.with_manifest(manifest.limits),
        named([*manifest.env, *env]),
        None if cwd is None else Path(cwd).absolute(),
        surround,
        path.absolute(),
        folder,
        b'"default"' in msgspec.json.encode(manifest.parameters),
        warm,
        never_warm,
        stricter(profile_by_place(place or path), manifest.sandbox, sandbox),
        named([*(one for one in manifest.env if "=" in one), *env]),
        (place or path).absolute(),
    )
    return tool_from_manifest(
        manifest,
        process.run,
        kind=kind,
        checks=checks,
        origin=path.resolve(),
        bind=lambda effect: _bound(effect, process, kind),
    )


def _warm_start(command: list[str], surround: Surround | None) -> tuple[WarmStart | None, str]:
    """Return the way to start a tool that asks to be warm; or None and why there is none."""
    from narratoria.kinds.process.python_script import NotPython, interpreter_of
    from narratoria.kinds.process.warm_servers import WarmScript

    if surround is not None:
        return None, "its variables are made anew for each call"
    try:
        return WarmScript(interpreter_of(command), command[-1]).start, ""
    except NotPython as reason:
        return None, str(reason)


def warmth(tool: Tool[Any, Any]) -> str | None:
    """Return why a tool whose manifest says `warm` cannot be, "" if it can; None if it does not say so."""
    process = getattr(tool.handler, "__self__", None)
    if not isinstance(process, _Process) or not process.manifest.warm:
        return None
    return process.never_warm


def _from_file(path: Path, manifest: Manifest) -> Tool[Any, JsonObject]:
    tool_command(path)
    return process_tool(path, manifest=manifest)


FILES: Final = FileKind(_from_file, runs_a_file=True)


def _bound(effect: Effect, process: _Process, kind: ToolKind) -> Effect:
    """An effect whose rollback is an operation of the same executable gets a tool that runs it."""
    rollback, manifest = effect.rollback, process.manifest
    if not isinstance(rollback, Compensation) or rollback.operation is None:
        return effect
    undoing = replace(process, manifest=msgspec.structs.replace(manifest, operation=rollback.operation))
    tool: Tool[Any, JsonObject] = Tool(
        manifest.name,
        f"Takes back: {effect.description}"[:200],
        undoing.run,
        parameters={"type": "object", "additionalProperties": True},
        preconditions=permissions_of(manifest),
        timeout=manifest.timeout,
        kind=kind,
    )
    return replace(effect, rollback=Compensation(tool=tool, input=rollback.input))


@dataclass(frozen=True, eq=False)
class _Process:
    """The handler of a process tool."""

    manifest: Manifest
    command: list[str]
    limits: Limits
    asked: Named
    cwd: Path | None
    surround: Surround | None
    file: Path
    folder: Path | None
    adds_defaults: bool = False
    warm: WarmStart | None = None
    never_warm: str = ""
    sandbox: ProfileName = "trusted"
    given: Named = NOTHING
    """The variables that it gets in a sandbox: none by the word of its manifest alone."""
    place: Path = Path()
    _told: WeakSet[Session] = field(default_factory=WeakSet, init=False)
    _told_cold: WeakSet[Session] = field(default_factory=WeakSet, init=False)
    _told_walls: WeakSet[Session] = field(default_factory=WeakSet, init=False)
    _walls: dict[str, Confinement] = field(default_factory=dict, init=False)
    _called: list[bool] = field(default_factory=list, init=False)

    async def run(self, params: JsonObject, *, context: ToolContext) -> ToolResult[JsonObject]:
        if self.surround is None:
            return await self._run(params, context, Output(context, self.cwd or _here()))
        surroundings = self.surround()
        discreet = Discreet(context, self.cwd or _here(), surroundings)
        try:
            return await self._run(params, context, discreet)
        except ToolFailure as failure:
            raise surroundings.failure(failure) from None

    async def _run(
        self, params: JsonObject, context: ToolContext, conversation: Output
    ) -> ToolResult[JsonObject]:
        engine = engine_for(context.tool)
        profile = profile_of(self.sandbox)
        walls = self._confinement(profile, context, away=engine is not None) if profile.confines else None
        if self.asked.names:
            self._tell_unset(context) if walls is None else self._tell_withheld(context, profile)
        share = context.session.root.share
        place = None
        if share is not None:
            place = await share.take(context.tool.name, context.session, here=engine is None)
            conversation.spent = place.charge
        try:
            if engine is not None:
                outcome = await self._run_elsewhere(engine, params, context, conversation)
            elif walls is None:
                outcome = await self._run_here(params, context, conversation)
            else:
                outcome = await self._run_confined(walls, params, context, conversation)
        except LaunchRefused as refusal:  # only the system's own attempt showed that it cannot be run
            raise CallFailure(refusal.code, f"{self.manifest.name}: {refusal}") from refusal
        finally:
            if place is not None:
                place.release()
        settled = conversation.settled(outcome)
        if context.session.root.recording:
            self._note(settled, params, context)
        return judge(self.manifest.name, settled, conversation, context, profile)

    async def _run_here(
        self, params: JsonObject, context: ToolContext, conversation: Output
    ) -> ProcessOutcome:
        """Run the executable on this machine."""
        env = environment(self.asked)
        async with scratch_folder() as scratch:
            own = dict.fromkeys((b"TMPDIR", b"TEMP", b"TMP"), os.fsencode(scratch))
            # A server pays from the second call on, and many a program makes only one.
            start = self.warm if self._called else None
            self._called[:] = [True]
            run = self._runner(params, context, conversation, self.cwd, start)
            outcome = await self._launched({**env, **conversation.env, **own}, run)
        if outcome.cold or self.never_warm:
            self._tell_cold(context, outcome.cold or self.never_warm)
        return outcome

    def _runner(
        self,
        params: JsonObject,
        context: ToolContext,
        conversation: Output,
        cwd: Path | None,
        start: WarmStart | None,
    ) -> Callable[[dict[bytes, bytes]], Awaitable[ProcessOutcome]]:
        request = request_for(self.manifest, params, context)
        return lambda env: run_process(
            self.command,
            request,
            tool=self.manifest.name,
            on_events=conversation.hear,
            timeout=context.time_limit,
            limits=self.limits,
            env=env,
            cwd=cwd,
            warm=start,
            spent=conversation.spent,
        )

    async def _run_confined(
        self, walls: Confinement, params: JsonObject, context: ToolContext, conversation: Output
    ) -> ProcessOutcome:
        """Run the executable on this machine, behind walls, in its scratch folder."""
        env = environment(self.given)
        if self.manifest.warm:
            self._tell_cold(context, f"it runs in the sandbox {walls.profile.name!r}")
        async with walls.cell() as cell:
            self._tell_walls(context, walls, cell.missing)
            cwd = conversation.folder = self.cwd or Path(cell.scratch)
            conversation.within = (Path(cell.scratch), *walls.folders)
            own = dict.fromkeys((b"TMPDIR", b"TEMP", b"TMP"), os.fsencode(cell.scratch))
            env = {**walls.variables(env, cell.scratch), **conversation.env, **own}
            with ScratchWatch(cell, walls.profile.scratch) as watch:
                run = self._runner(params, context, conversation, cwd, start_in(cell, self.command))
                outcome = await self._launched(env, run)
        if watch.over:
            raise CallFailure(OUTPUT_LIMIT, f"{self.manifest.name}: {watch.over}, and it was ended")
        return outcome

    def _confinement(self, profile: Profile, context: ToolContext, *, away: bool) -> Confinement | None:
        """Return the walls of a profile; None where there can be none, if the profile does not insist on them."""
        walls = self._walls.get(profile.name)
        if walls is None:
            asks = NETWORK in self.manifest.permissions
            walls = Confinement.of(profile, self.command, self.place, asks_network=asks)
            self._walls[profile.name] = walls
        if CELLS and not away:
            return walls
        missing = nothing_holds("it runs on another machine" if away else "there are cells on Linux alone")
        try:
            walls.check(missing)
        except LaunchRefused as refusal:
            raise CallFailure(refusal.code, f"{self.manifest.name}: {refusal}") from None
        self._tell_walls(context, walls, missing)
        return None

    def _tell_walls(self, context: ToolContext, walls: Confinement, missing: Mapping[str, str]) -> None:
        """Keep in the record of the call what it ran behind, and report missing walls once per session."""
        session = context.session.root
        if session.recording:
            note = session.attempt_notes.setdefault(context.call_id, AttemptNote())
            note.sandbox = {"profile": walls.profile.name, "missing": dict(missing)}
        if missing:
            self._report_once(self._told_walls, context, walls.complaint(self.manifest.name, missing))

    async def _run_elsewhere(
        self, engine: Engine, params: JsonObject, context: ToolContext, conversation: Output
    ) -> ProcessOutcome:
        """Run the executable by an engine."""
        if not engine.ready:
            await prepared(engine, context.session)
        request = request_for(self.manifest, params, context)

        def run(env: dict[bytes, bytes]) -> Awaitable[ProcessOutcome]:
            job = Job(
                tool=self.manifest.name,
                file=self.file,
                folder=self.folder,
                request=request,
                timeout=context.time_limit,
                limits=self.limits,
                env=env,
                cwd=self.cwd or _here(),
                resources=context.tool.resources or Resources(),
                asset_cap=context.session.root.assets.cap,
            )
            return engine.launch(job, conversation)

        outcome = await self._launched({**given(self.asked), **conversation.env}, run)
        if conversation.spent is not None:
            conversation.spent(outcome.cpu)
        return outcome

    def _note(self, outcome: ProcessOutcome, params: JsonObject, context: ToolContext) -> None:
        """Note the ending of the process for the journal, and the input if defaults were added to what was given."""
        note = context.session.root.attempt_notes.setdefault(context.call_id, AttemptNote())
        note.exit_code, note.signal, note.stderr = outcome.exit_code, outcome.signal, outcome.stderr
        note.operation, note.sent_state = self.manifest.operation, self.manifest.wants_state
        if self.adds_defaults:
            note.sent = params

    async def _launched(
        self, env: dict[bytes, bytes], run: Callable[[dict[bytes, bytes]], Awaitable[ProcessOutcome]]
    ) -> ProcessOutcome:
        """Run the executable once, with its place in the trace in its environment."""
        with telemetry.process(self.command[-1]) as span:
            env.update(span.environment())
            outcome = await run(env)
            span.note(pid=outcome.pid, exit_code=outcome.exit_code, signal=outcome.signal)
            if outcome.timed_out:
                span.failed(TIMEOUT)
            elif not outcome.lingered and (outcome.exit_code or outcome.signal is not None):
                span.failed(NON_ZERO_EXIT)
        return outcome

    def _tell_unset(self, context: ToolContext) -> None:
        """Report variables named by the manifest that are not set. The tool may not need them."""
        if unset := unset_of(self.asked):
            message = (
                f"its manifest names {', '.join(unset)}, which {'is' if len(unset) == 1 else 'are'} not set; set it "
                f"where narratoria is started, or pass --env {unset[0]}=…"
            )
            self._report_once(self._told, context, f"{self.manifest.name}: {message}")

    def _tell_withheld(self, context: ToolContext, profile: Profile) -> None:
        """Report variables that the manifest names and that the sandbox keeps back."""
        withheld = sorted(os.fsdecode(name) for name in self.asked.names - environment(self.given).keys())
        if withheld:
            message = (
                f"its manifest names {', '.join(withheld)}; in the sandbox {profile.name!r} a tool gets no variable "
                f"by that alone; pass --env {withheld[0]} to give it"
            )
            self._report_once(self._told, context, f"{self.manifest.name}: {message}")

    def _tell_cold(self, context: ToolContext, reason: str) -> None:
        """Report that a tool whose manifest says `warm` was started cold."""
        message = f"{self.manifest.name}: started cold, though its manifest says `warm`: {reason}"
        self._report_once(self._told_cold, context, message)

    @staticmethod
    def _report_once(told: WeakSet[Session], context: ToolContext, message: str) -> None:
        """Report something once per session."""
        session = context.session.root
        if session not in told:
            told.add(session)
            context.session.report(message)


def _here() -> Path | None:
    """Return the working directory a tool is started in; None if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None
