"""The engine that runs tools on the nodes of a Ray cluster.

A call is a task of Ray with a streaming answer. Ray finds a node that has the resources free; the code there is
`node.py`. Ray itself never repeats a task: the pipeline does, with a new draft and the same call id.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

import narratoria
from narratoria.errors import EXECUTION_FAILED, NODE_LOST, TIMEOUT, CallFailure
from narratoria.kinds.placement import FunctionJob, Job, Listener
from narratoria.kinds.process.custody import custody
from narratoria.kinds.process.supervisor import ProcessOutcome
from narratoria.kinds.remote import node, node_function, wire
from narratoria.kinds.remote.local_cluster import Connection, RayUnavailable
from narratoria.kinds.remote.tool_bundle import digest_of, pack

BATCH_SECONDS: Final = 0.01
BATCH_BYTES: Final = 64 * 1024
_AHEAD: Final = 8
"""Batches that Ray may hold for us before the node has to wait."""
_PATIENCE: Final = 5.0
"""Seconds after its time limit in which a node must have said how a call ended."""
_PACKAGE: Final = Path(narratoria.__file__).parent


class _FilesWanted(Exception):
    """A node lacks the files of a tool."""


class RayEngine:
    """Runs executables on a Ray cluster: that at `address`, or one of its own on this machine.

    `options` go to `ray.init`. `batch_seconds` and `batch_bytes` bound what a node gathers before it sends.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        batch_seconds: float = BATCH_SECONDS,
        batch_bytes: int = BATCH_BYTES,
        **options: Any,
    ) -> None:
        self._connection = Connection(address, **options)
        self._options = options
        self._dead: Connection | None = None
        self._renewing = threading.Lock()
        self._batching = batch_seconds, batch_bytes
        self._tasks: dict[Any, Any] = {}
        self._files: dict[str, Any] = {}

    def start(self) -> None:
        """Connect to the cluster, or start one; it blocks for seconds."""
        self._connection.open()

    @property
    def ready(self) -> bool:
        """True once it is connected."""
        return self._connection.ready and self._dead is not self._connection

    async def prepare(self) -> None:
        """Wait for the connection. A Ray of our own that has died is followed by another."""
        if not self.ready:
            try:
                await asyncio.to_thread(self._connect)
                self._connection.take_signals_back()
            except RayUnavailable as error:
                raise CallFailure(EXECUTION_FAILED, str(error)) from error

    def _connect(self) -> None:
        with self._renewing:
            if self._dead is self._connection:
                self._tasks.clear()
                self._files.clear()
                self._connection.close()
                self._connection, self._dead = Connection(None, **self._options), None
        self._connection.open()

    def close(self) -> None:
        """End the connection, and a cluster of our own with all that runs there."""
        self._tasks.clear()
        self._files.clear()
        self._connection.close()

    async def launch(self, job: Job, listener: Listener) -> ProcessOutcome:
        """Run an executable on a node to its end."""
        await self.prepare()
        work, files = self._work(job), []
        if work.source.digest in self._files:
            files = [self._files[work.source.digest]]
        try:
            return await self._run(job, work, files, listener)
        except _FilesWanted:
            source = work.source
            packed = await asyncio.to_thread(pack, Path(source.folder), "" if source.ours else source.name)
            self._files[source.digest] = self._connection.ray.put(packed)
            return await self._run(job, work, [self._files[source.digest]], listener)

    async def execute(self, job: FunctionJob, listener: Listener) -> Any:
        """Run a Python function on a node, and return its result or raise what it raised."""
        await self.prepare()
        answer = self._task(node_function.perform_function, job).remote(
            job.tool,
            job.handler,
            job.params,
            job.call_id,
            job.state,
            job.outputs,
            job.timeout,
            job.asset_cap,
            self._batching,
        )
        part = await self._hear(job, answer, listener)
        pickle = self._connection.ray.cloudpickle
        if isinstance(part, wire.Raised):
            raise pickle.loads(part.error)
        return pickle.loads(part.result)

    def _work(self, job: Job) -> wire.Work:
        try:
            source = _source(job)
        except OSError as error:
            raise CallFailure(EXECUTION_FAILED, f"{job.tool}: {job.file}: {error.strerror}") from error
        seconds, size = self._batching
        return wire.Work(
            narratoria.__version__,
            job.tool,
            source,
            job.request,
            job.timeout,
            job.limits,
            {**job.env},
            None if job.cwd is None else wire.Place(str(job.cwd), node.identity_of(job.cwd)),
            sys.executable,
            job.asset_cap,
            seconds,
            size,
        )

    def _task(self, function: Callable[..., Any], job: Job | FunctionJob) -> Any:
        asked = job.resources
        key = (function, asked.cpu, asked.gpu, asked.memory, *sorted(asked.custom.items()))
        if key not in self._tasks:
            self._tasks[key] = self._connection.ray.remote(
                num_cpus=asked.cpu,
                num_gpus=asked.gpu,
                memory=asked.memory,
                resources=asked.custom or None,
                num_returns="streaming",
                max_retries=0,
                _generator_backpressure_num_objects=_AHEAD,
            )(function)
        return self._tasks[key]

    async def _run(self, job: Job, work: wire.Work, files: list[Any], listener: Listener) -> ProcessOutcome:
        answer = self._task(node.perform, job).remote(wire.pack_work(work), files)
        part = await self._hear(job, answer, listener)
        return wire.outcome_of(part)

    async def _hear(self, job: Job | FunctionJob, answer: Any, listener: Listener) -> Any:
        """Hand on the parts of an answer, and return the last."""
        incoming = _Incoming()
        try:
            async for parts in self._batches(job, answer):
                for part in parts:
                    match part:
                        case wire.Heard():
                            waiting = listener.hear(wire.events_of(part))
                            if waiting is not None:
                                await waiting
                        case wire.Chunk():
                            incoming.add(part.data)
                        case wire.Arrived():
                            with incoming.whole() as file:
                                await listener.receive(wire.asset_of(part), part.refusal or file)
                        case wire.Ended() | wire.Returned() | wire.Raised():
                            return part
                        case wire.Refused():
                            raise CallFailure(part.code, f"{job.tool}: {part.message}")
                        case wire.FilesWanted():
                            raise _FilesWanted
        except (CallFailure, _FilesWanted):
            raise
        except BaseException:
            await self._end(answer)
            raise
        finally:
            incoming.close()
        raise CallFailure(EXECUTION_FAILED, f"{job.tool}: the node ended its answer without an ending")

    async def _batches(self, job: Job | FunctionJob, answer: Any) -> AsyncIterator[list[wire.Part]]:
        """Yield the parts of an answer as they come; a `CallFailure` tells what became of a node."""
        connection = self._connection
        lost = connection.losses
        limit = None if job.timeout is None else job.timeout + _PATIENCE
        try:
            async with asyncio.timeout(limit):
                first = await self._content(await anext(answer))
            yield wire.unpack_parts(first)
            async for ref in answer:
                yield wire.unpack_parts(await self._content(ref))
        except TimeoutError:
            await self._end(answer, 2.0)
            raise CallFailure(
                TIMEOUT,
                f"{job.tool}: no node answered within {limit:g} s; none may have {job.resources.told()} free",
                suggestions=["`ray status` tells what the nodes have, and what is waited for"],
            ) from None
        except lost as error:
            if (
                isinstance(error, connection.ray.exceptions.LocalRayletDiedError)
                and connection.address is None
            ):
                self._dead = connection
            raise CallFailure(
                NODE_LOST, f"{job.tool}: the node that ran it was lost: {_first_line(error)}"
            ) from error
        except self._connection.ray.exceptions.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, BaseException) else error
            hint = "; install narratoria on every node" if isinstance(cause, ModuleNotFoundError) else ""
            raise CallFailure(
                EXECUTION_FAILED, f"{job.tool}: the node failed: {_first_line(cause)}{hint}"
            ) from error

    async def _content(self, ref: Any) -> bytes:
        """Return a batch that is there; a small one comes with the news of it, and needs no other wait."""
        ray = self._connection.ray
        try:
            content: bytes = ray.get(ref, timeout=0)
        except ray.exceptions.GetTimeoutError:
            content = await ref
        return content

    async def _end(self, answer: Any, patience: float = node.END_SECONDS) -> None:
        """Cancel a task, and return when its processes have ended; a worker that does not hear is killed."""
        for force, seconds in ((False, patience), (True, 2.0)):
            with contextlib.suppress(Exception):
                self._connection.ray.cancel(answer, force=force)
            over = asyncio.ensure_future(self._over(answer))
            done, _ = await asyncio.wait([over], timeout=seconds)
            if done:
                return
            over.cancel()

    async def _over(self, answer: Any) -> None:
        with contextlib.suppress(self._connection.ray.exceptions.RayError):
            await answer.completed()


def _source(job: Job) -> wire.ToolSource:
    folder = job.folder or job.file.parent
    if job.file.is_relative_to(_PACKAGE) and job.folder is not None:
        return wire.ToolSource(str(folder), str(job.file.relative_to(_PACKAGE)), digest_of(folder, ""), True)
    name = str(job.file.relative_to(folder))
    return wire.ToolSource(str(folder), name, digest_of(folder, name))


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__


class _Incoming:
    """The file of an asset, piece by piece."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._path = Path()

    def add(self, data: bytes) -> None:
        if self._file is None:
            folder = custody().scratch_folder()
            self._path = Path(folder) / "asset"
            self._file = self._path.open("wb")
        self._file.write(data)

    @contextlib.contextmanager
    def whole(self) -> Any:
        """The path of the file, which is removed afterwards."""
        self.add(b"")
        if self._file is not None:
            self._file.close()
        try:
            yield self._path
        finally:
            self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                os.rmdir(self._path.parent)  # noqa: PTH106
