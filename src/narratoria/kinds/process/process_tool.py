"""Tools that are executables: one JSON object in, NDJSON events out."""
# 000 §2-6.

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast
from weakref import WeakSet

import msgspec

from narratoria import telemetry
from narratoria.errors import NON_ZERO_EXIT, TIMEOUT, CallFailure, ToolFailure
from narratoria.events import Asset, JsonObject, ToolErrorEvent, ToolEvent
from narratoria.kinds.conversation import LAYOUT, Conversation, request_for
from narratoria.kinds.environment import Named, environment, given, named, unset_of
from narratoria.kinds.from_manifest import FileKind, permissions_of, tool_from_manifest
from narratoria.kinds.manifest import Manifest, load_manifest
from narratoria.kinds.ndjson import Limits
from narratoria.kinds.placement import Engine, Job, engine_for, prepared
from narratoria.kinds.process.crash_lines import last_words
from narratoria.kinds.process.custody import custody
from narratoria.kinds.process.launch import LaunchRefused, command_for, tool_command
from narratoria.kinds.process.supervisor import ProcessOutcome, WarmStart, run_process
from narratoria.kinds.process.surroundings import Surround, Surroundings
from narratoria.session import Session
from narratoria.session.attempt_note import AttemptNote
from narratoria.tools.contract import Compensation, Effect
from narratoria.tools.node_resources import Resources
from narratoria.tools.tool import Tool, ToolContext, ToolKind, ToolResult
from narratoria.unicode_text import escaped

PROCESS: Final = ToolKind("process", ends_itself=True, returns_its_patches=True, local_files=True)
_CLOSED: Final = "it had closed its standard output, and lived on"


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
) -> Tool[Any, JsonObject]:
    """Make a tool from an executable and the manifest beside it.

    `limits` are the defaults; the manifest's own caps take precedence. `checks` holds, by id, the functions behind
    the manifest's `custom` preconditions. `env` adds variables to those the manifest names (`NAME`, or `NAME=VALUE`).
    `cwd` is the folder it runs in, and from which the paths of its assets are read; by default that of this process.
    `kind` and `surround` are for kinds that are made of executables, such as the scripts of a skill; `surround` is
    called before each call for more variables, and for the secrets in them, which are taken out of what it writes.
    `folder` goes with it where it runs on another machine; by default the folder it lies in.
    Raises `ToolMissing`, `NotExecutable` or `ToolValidationError`; nothing is started here.
    """
    path = Path(path)
    command = command_for(path)
    manifest = manifest or load_manifest(path)
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
        *(_warm_start(command, surround) if manifest.warm else ()),
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
    _told: WeakSet[Session] = field(default_factory=WeakSet, init=False)
    _told_cold: WeakSet[Session] = field(default_factory=WeakSet, init=False)

    async def run(self, params: JsonObject, *, context: ToolContext) -> ToolResult[JsonObject]:
        if self.surround is None:
            return await self._run(params, context, _Output(context, self.cwd or _here()))
        surroundings = self.surround()
        discreet = _Discreet(context, self.cwd or _here(), surroundings)
        try:
            return await self._run(params, context, discreet)
        except ToolFailure as failure:
            raise surroundings.failure(failure) from None

    async def _run(
        self, params: JsonObject, context: ToolContext, conversation: _Output
    ) -> ToolResult[JsonObject]:
        if self.asked.names:
            self._tell_unset(context)
        engine = engine_for(context.tool)
        if engine is None:
            outcome = await self._run_here(params, context, conversation)
        else:
            outcome = await self._run_elsewhere(engine, params, context, conversation)
        settled = conversation.settled(outcome)
        if context.session.root.recording:
            self._note(settled, params, context)
        return self.judge(settled, conversation, context)

    async def _run_here(
        self, params: JsonObject, context: ToolContext, conversation: _Output
    ) -> ProcessOutcome:
        """Run the executable on this machine."""
        env = environment(self.asked)
        async with _scratch_folder() as scratch:
            own = dict.fromkeys((b"TMPDIR", b"TEMP", b"TMP"), os.fsencode(scratch))
            request = request_for(self.manifest, params, context)

            def run(env: dict[bytes, bytes]) -> Awaitable[ProcessOutcome]:
                return run_process(
                    self.command,
                    request,
                    tool=self.manifest.name,
                    on_events=conversation.hear,
                    timeout=context.time_limit,
                    limits=self.limits,
                    env=env,
                    cwd=self.cwd,
                    warm=self.warm,
                )

            try:
                outcome = await self._launched({**env, **conversation.env, **own}, run)
            except LaunchRefused as refusal:  # only the system's own attempt showed that it cannot be run
                raise CallFailure(refusal.code, f"{self.manifest.name}: {refusal}") from refusal
        if outcome.cold or self.never_warm:
            self._tell_cold(context, outcome.cold or self.never_warm)
        return outcome

    async def _run_elsewhere(
        self, engine: Engine, params: JsonObject, context: ToolContext, conversation: _Output
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

        return await self._launched({**given(self.asked), **conversation.env}, run)

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
        """Report, once per session, variables named by the manifest that are not set. The tool may not need them."""
        unset = unset_of(self.asked)
        session = context.session.root
        if unset and session not in self._told:
            self._told.add(session)
            context.session.report(
                f"{self.manifest.name}: its manifest names {', '.join(unset)}, which "
                f"{'is' if len(unset) == 1 else 'are'} not set; set it where narratoria is started, or pass "
                f"--env {unset[0]}=…"
            )

    def _tell_cold(self, context: ToolContext, reason: str) -> None:
        """Report, once per session, that a tool whose manifest says `warm` was started cold."""
        session = context.session.root
        if session not in self._told_cold:
            self._told_cold.add(session)
            context.session.report(
                f"{self.manifest.name}: started cold, though its manifest says `warm`: {reason}"
            )

    def judge(
        self, outcome: ProcessOutcome, conversation: Conversation, context: ToolContext
    ) -> ToolResult[JsonObject]:
        name = self.manifest.name
        conversation.report_after_done(
            name, outcome.after_done_line, outcome.after_done, outcome.after_done_head
        )
        details: JsonObject = {"exitCode": outcome.exit_code, "signal": outcome.signal}
        if outcome.stderr:
            details["stderr"] = outcome.stderr
        if outcome.failure is not None:
            raise CallFailure(outcome.failure.code, str(outcome.failure), details=details)
        if outcome.timed_out:
            raise CallFailure(
                TIMEOUT,
                f"{name}: no result within {context.time_limit:g} s; the process and its children were ended"
                + (f"; {_CLOSED}" if outcome.closed_stdout else ""),
                suggestions=[
                    "allow more time: `timeout` in the manifest, `call --timeout`, `run --call-timeout`"
                ],
                details=details,
            )
        # 001 §5.3: a non-zero exit is a protocol-level failure, regardless of any emitted events, done included. A
        # process that had to be ended after `done` did not choose its exit status: `done` stands.
        if not outcome.lingered and (outcome.exit_code or outcome.signal is not None):
            raise CallFailure(NON_ZERO_EXIT, _exit_text(name, outcome, conversation.error), details=details)
        return conversation.result(
            name,
            outcome.done,
            ended="the process ended",
            note=f"; {_CLOSED}" if outcome.closed_stdout else "",
            details=details,
        )


def _here() -> Path | None:
    """Return the working directory a tool is started in; None if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


@asynccontextmanager
async def _scratch_folder() -> AsyncIterator[str]:
    """Make the temporary folder of one call; it is removed when the call ends, after its assets are copied."""
    scratch = custody().scratch_folder()
    try:
        yield scratch
    finally:
        try:
            os.rmdir(scratch)  # noqa: PTH106 - the common case, an empty folder, must stay cheap
        except OSError:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True))


class _Output(Conversation):
    """The output of a process so far, passed on as it arrives."""

    env: Mapping[bytes, bytes] = MappingProxyType({})
    """Variables of this call alone."""

    def settled(self, outcome: ProcessOutcome) -> ProcessOutcome:
        """Return the ending of the process as it may be told."""
        return outcome


class _Discreet(_Output):
    """The output of a process that was given secrets, without them."""

    def __init__(self, context: ToolContext, folder: Path | None, surroundings: Surroundings) -> None:
        super().__init__(context, folder)
        self.surroundings = surroundings
        self.env = surroundings.env

    def hear(self, events: list[ToolEvent]) -> Awaitable[None] | None:
        return super().hear(self.surroundings.events(events))

    async def receive(self, event: Asset, arrived: Path | str) -> None:
        for hidden in self.surroundings.events([event]):
            await super().receive(cast(Asset, hidden), arrived)

    def shown(self, event: Asset) -> Asset:
        return msgspec.structs.replace(event, path=self.surroundings.redaction.text(event.path))

    def clean(self, content: bytes) -> bytes:
        return self.surroundings.redaction.content(content)

    def settled(self, outcome: ProcessOutcome) -> ProcessOutcome:
        return self.surroundings.outcome(outcome)


def _exit_text(name: str, outcome: ProcessOutcome, error: ToolErrorEvent | None) -> str:
    how = (
        f"was ended by signal {outcome.signal}"
        if outcome.signal
        else f"exited with status {outcome.exit_code}"
    )
    text = f"{name}: the process {how}"
    if outcome.done is not None:
        text += f" after `done` with ok: {str(outcome.done.ok).lower()}; exit 0 when the protocol was kept"
    if error is not None:
        text += f"; it reported {error.error_code}: {error.error_message}"
    last = last_words(outcome.stderr)
    return escaped(f"{text}; {last}" if last else text, keep=LAYOUT)
