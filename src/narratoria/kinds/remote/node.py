"""The node's half of a call: the executable under the supervisor and guardian of this process, its answer in batches.

`perform` is a task of Ray. It runs in the main thread of a worker, which Ray interrupts to cancel a call; the process
is supervised by a loop in a thread of its own, so that time limits hold while the coordinator is behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import sys
import threading
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any, Final

import narratoria
from narratoria.errors import EXECUTION_FAILED, AssetRefused
from narratoria.events import Asset, Done, ToolEvent
from narratoria.kinds.environment import standard
from narratoria.kinds.process import folder_removal
from narratoria.kinds.process.custody import custody
from narratoria.kinds.process.launch import LaunchRefused, command_for
from narratoria.kinds.process.supervisor import run_process
from narratoria.kinds.remote import wire
from narratoria.kinds.remote.outbox import Outbox
from narratoria.kinds.remote.tool_bundle import BundleBroken, digest_of, keep, kept
from narratoria.session.assets import opened, shown
from narratoria.tools.schema.excerpts import quoted

CHUNK_BYTES: Final = 1024 * 1024
END_SECONDS: Final = 8.0
"""Time that a cancelled call has to end its processes; the guardian ends those of a worker that is killed then."""
_DEVICES: Final = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_PACKAGE: Final = Path(narratoria.__file__).parent


def perform(packed: bytes, files: list[Any]) -> Iterator[bytes]:
    """Run the work of a call, and yield its answer. `files` holds the reference of the tool's files, or nothing."""
    work = wire.unpack_work(packed)
    outbox = Outbox(work.batch_seconds, work.batch_bytes)
    running = Running(worker_loop(), _answer(work, files, outbox))
    try:
        while (batch := outbox.take()) is not None:
            yield batch
    finally:
        running.end()


def warm() -> str:
    """Load this module in a worker, so that the first call need not wait for it. Return the version."""
    return narratoria.__version__


@functools.cache
def worker_loop() -> asyncio.AbstractEventLoop:
    """The loop of this worker, in a thread that lives as long as it."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="narratoria", daemon=True).start()
    return loop


class Running:
    """A coroutine in the loop of the worker."""

    def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Any) -> None:
        self._loop = loop
        self._over = threading.Event()
        self._task: asyncio.Task[None] | None = None
        loop.call_soon_threadsafe(self._begin, coroutine)

    def _begin(self, coroutine: Any) -> None:
        self._task = self._loop.create_task(coroutine)
        self._task.add_done_callback(lambda task: self._over.set())

    def end(self) -> None:
        """Return when it has ended; one that still runs is cancelled."""
        if not self._over.is_set():
            self._loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())
            self._over.wait(END_SECONDS)


async def _answer(work: wire.Work, files: list[Any], outbox: Outbox) -> None:
    try:
        outbox.put(await _part(work, files, outbox), 0)
    except LaunchRefused as refusal:
        outbox.put(wire.Refused(refusal.code, str(refusal)), 0)
    except (BundleBroken, OSError) as error:
        outbox.put(wire.Refused(EXECUTION_FAILED, f"the node cannot run it: {error}"), 0)
    finally:
        outbox.close()


async def _part(work: wire.Work, files: list[Any], outbox: Outbox) -> wire.Part:
    """Run the work and return the last part of the answer."""
    if work.version != narratoria.__version__:
        return wire.Refused(
            EXECUTION_FAILED,
            f"the node has narratoria {narratoria.__version__} and the coordinator {work.version}; install one version",
        )
    found = _found(work.source, []) or (
        await asyncio.to_thread(_found, work.source, files) if files else None
    )
    if found is None:
        return wire.FilesWanted()
    folder, file = found
    scratch = custody().scratch_folder()
    try:
        cwd = _same_place(work.cwd) or Path(scratch)
        speaker = _Speaker(outbox, cwd, work.asset_cap)
        outcome = await run_process(
            command_for(file),
            work.request,
            tool=work.tool,
            on_events=speaker.hear,
            timeout=work.timeout,
            limits=work.limits,
            env=_environment(work, folder, scratch),
            cwd=cwd,
        )
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(scratch)  # noqa: PTH106 - the common case, an empty folder, must stay cheap
            scratch = ""
        if scratch:
            await asyncio.shield(asyncio.to_thread(folder_removal.remove, scratch))
    return wire.ended(outcome)


def _found(source: wire.ToolSource, files: list[Any]) -> tuple[Path, Path] | None:
    """Return the tool's folder and file on this node: in the same place, kept from before, or as they came."""
    folder = Path(source.folder)
    if source.ours:
        if (kept_there := _folder(folder, source, files)) is None:
            return None
        return kept_there, _PACKAGE / source.name
    there = _folder(folder, source, files)
    return None if there is None else (there, there / source.name)


def _folder(folder: Path, source: wire.ToolSource, files: list[Any]) -> Path | None:
    name = "" if source.ours else source.name
    try:
        if digest_of(folder, name) == source.digest:
            return folder
    except OSError:
        pass  # it is not here
    if kept(source.digest).is_dir():
        return kept(source.digest)
    if not files:
        return None
    import ray

    return keep(source.digest, ray.get(files[0]))


def _same_place(place: wire.Place | None) -> Path | None:
    """Return the coordinator's folder, if this node has the same one, and not only one of that name."""
    if place is None or identity_of(Path(place.path)) != place.identity:
        return None
    return Path(place.path)


def identity_of(folder: Path) -> str:
    """Return what tells a folder from all others, on this machine and on others; "" if there is none."""
    try:
        status = folder.stat()
    except OSError:
        return ""
    return f"{_machine()}:{status.st_dev}:{status.st_ino}"


@functools.cache
def _machine() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return os.uname().nodename


def _environment(work: wire.Work, folder: Path, scratch: str) -> dict[bytes, bytes]:
    """Return the tool's environment: the standard variables of this node, and those that the coordinator gives."""
    env = standard()
    for device in _DEVICES:  # Ray sets them to the devices of this call
        if device in os.environ:
            env[device.encode()] = os.fsencode(os.environ[device])
    ours = {work.source.folder: str(folder), work.python: sys.executable}
    for name, value in work.env.items():
        for theirs, here in ours.items():
            value = value.replace(os.fsencode(theirs), os.fsencode(here))
        env[name] = value
    env.update(dict.fromkeys((b"TMPDIR", b"TEMP", b"TMP"), os.fsencode(scratch)))
    return env


class _Speaker:
    """Hands the events of a process on, and the files of its assets before they can go."""

    def __init__(self, outbox: Outbox, folder: Path, cap: int) -> None:
        self._outbox = outbox
        self._folder = folder
        self._cap = cap

    def hear(self, events: list[ToolEvent]) -> Awaitable[None] | None:
        if any(type(event) is Asset for event in events):
            return self._with_assets(events)
        self._tell(events)
        return self._outbox.drained() if self._outbox.crowded else None

    def _tell(self, events: list[ToolEvent]) -> None:
        if events:
            part = wire.heard(events)
            self._outbox.put(part, len(part.events), ending=type(events[-1]) is Done)

    async def _with_assets(self, events: list[ToolEvent]) -> None:
        waiting: list[ToolEvent] = []
        for event in events:
            if not isinstance(event, Asset):
                waiting.append(event)
                continue
            self._tell(waiting)
            waiting = []
            await self._send(event)
        self._tell(waiting)

    async def _send(self, event: Asset) -> None:
        path = self._folder / event.path
        refusal = None
        try:
            left = self._cap + 1  # it may grow meanwhile; who keeps it refuses what is over the cap
            with await asyncio.to_thread(opened, event.asset_id, path, self._cap) as source:
                while chunk := await asyncio.to_thread(source.read, min(CHUNK_BYTES, left)):
                    left -= len(chunk)
                    self._outbox.put(wire.Chunk(chunk), len(chunk))
                    await self._outbox.drained()
        except AssetRefused as error:
            refusal = str(error)
        except OSError as error:
            refusal = f"asset {quoted(event.asset_id)}: {shown(path)} cannot be read: {error.strerror}"
        self._outbox.put(wire.arrived(event, refusal), 0)
