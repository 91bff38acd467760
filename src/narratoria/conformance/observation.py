"""One run of a tool, watched more closely than the runtime does: every line, every write, and the end.

The runtime stops at the first fault. A check goes on, so that an author sees all of them at once; the caps are the
same. Everything is bounded, and every process the tool left running is ended before this returns.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from narratoria.conformance.output_lines import Line, read_line
from narratoria.events import Asset, Done
from narratoria.kinds.environment import NOTHING, Named, environment
from narratoria.kinds.line_faults import EXCERPT_BYTES
from narratoria.kinds.ndjson import Limits
from narratoria.kinds.process import marks, platform
from narratoria.kinds.process.cells.cell_pool import cgroup_for
from narratoria.kinds.process.confinement import Confinement, wrapped
from narratoria.kinds.process.custody import custody
from narratoria.kinds.process.launch import refused
from narratoria.kinds.sandbox import PROFILES, Profile
from narratoria.session.assets import AssetStore

LINGER: Final = 1.0
GRACE: Final = 1.0
MAX_FAULTS: Final = 50
_TICK: Final = 0.02
_READ: Final = 1 << 16


@dataclass
class Observation:
    """The output, timing and ending of one run."""

    label: str
    """Name of this run in messages: `with nothing on stdin`."""
    request_id: str
    lines: list[Line] = field(default_factory=list)
    """The lines that are not blank; of a flood of ordinary logs and patches only the first."""
    kinds: set[type] = field(default_factory=set)
    """The kinds of event that were seen."""
    fault_count: int = 0
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    lingered: bool = False
    ignored_term: bool = False
    asked_to_stop: bool = False
    over: str | None = None
    """The cap that was exceeded, in words."""
    left_behind: list[str] = field(default_factory=list)
    """Commands that were still running after the tool's own end."""
    writes_seen: bool = False
    crowded_write: Line | None = None
    """The first line that shared its write with another, so it was not flushed when it was ready."""
    no_final_newline: bool = False
    stderr: str = ""
    allowed: float = 0.0
    duration: float = 0.0
    sandbox: Profile = PROFILES["trusted"]

    @property
    def dones(self) -> list[Line]:
        return [line for line in self.lines if isinstance(line.event, Done)]

    @property
    def faults(self) -> list[Line]:
        return [line for line in self.lines if line.fault is not None]

    @property
    def ended_by_itself(self) -> bool:
        return not self.asked_to_stop and self.over is None


def observe(
    argv: Sequence[str],
    stdin: bytes,
    *,
    label: str,
    request_id: str,
    tool: str,
    timeout: float,
    store: AssetStore,
    folder: Path,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    asked: Named = NOTHING,
    walls: Confinement | None = None,
) -> Observation:
    """Run a tool to its end; raise `LaunchRefused` when it cannot be started. `folder` is its TMPDIR; `asked` names
    variables beside those every tool gets; `walls` are those of its sandbox, if it has one.
    """
    call, cookie = custody().begin()
    seen, env, cwd, cgroup = Observation(label, request_id), environment(asked), None, None
    if walls is not None:
        seen.sandbox, cwd, env = walls.profile, folder, walls.variables(env, str(folder))
        cgroup = cgroup_for(call, walls.spec(str(folder)))
        argv = wrapped(walls, argv, str(folder), cgroup)
    env = {
        **env,
        marks.COOKIE.encode(): cookie.encode(),
        **dict.fromkeys((b"TMPDIR", b"TEMP", b"TMP"), os.fsencode(folder)),
    }
    try:
        watch = _Watch(call, argv, stdin, env, seen, tool, store, limits, cwd)
    except BaseException:
        custody().end(call)
        raise
    try:
        custody().entrust(call, watch.process.pid)
        watch.run(timeout)
        watch.seen.left_behind = _left_behind(call, watch.process.pid)
    finally:
        # Before its leader is reaped: until then nobody else can have this group's number.
        platform.signal_group(watch.process.pid, signal.SIGKILL)
        watch.close()
        custody().end(call)
        until = time.monotonic() + GRACE
        while custody().sweep_now(thorough=True) and time.monotonic() < until:
            time.sleep(_TICK)
        if cgroup is not None:
            cgroup.remove()
    return watch.seen


class _Watch:
    """The descriptors of one run and their output."""

    def __init__(
        self,
        call: int,
        argv: Sequence[str],
        stdin: bytes,
        env: Mapping[bytes, bytes],
        seen: Observation,
        tool: str,
        store: AssetStore,
        limits: Limits,
        cwd: Path | None,
    ) -> None:
        self.seen, self.tool, self.store, self.limits = seen, tool, store, limits
        self.stdout, write_end, seen.writes_seen = _packet_pipe()
        try:
            with custody().tagged(call):
                self.process = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.PIPE,
                    stdout=write_end,
                    stderr=subprocess.PIPE,
                    env=env,
                    cwd=cwd,
                    start_new_session=True,
                )
        except OSError as error:
            os.close(self.stdout)
            raise refused(argv, error) from error
        finally:
            os.close(write_end)
        self.started = time.monotonic()
        self.unsent = memoryview(stdin)
        self.partial = bytearray()
        self.number = 0
        self.events = 0
        self.values = 0
        self.bytes = 0
        self.error_tail = bytearray()
        self.done_at: float | None = None
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.stdout, selectors.EVENT_READ, self._on_stdout)
        self._watch_stream(self.process.stderr, selectors.EVENT_READ, self._on_stderr)
        self._watch_stream(self.process.stdin, selectors.EVENT_WRITE, self._on_stdin)

    def _watch_stream(self, stream: IO[bytes] | None, events: int, act: object) -> None:
        if stream is None:
            raise AssertionError("it was opened as a pipe")
        os.set_blocking(stream.fileno(), False)
        self.selector.register(stream, events, act)

    def run(self, timeout: float) -> None:
        """Watch until the process has ended and its output is read, or it has to be ended."""
        seen = self.seen
        seen.allowed = timeout
        while not self._ended():
            self._turn()
            now = time.monotonic()
            if self.done_at is not None:
                seen.lingered = now - self.done_at > LINGER
            else:
                seen.timed_out = now - self.started > timeout
            if seen.timed_out or seen.lingered or seen.over or seen.fault_count > MAX_FAULTS:
                self._stop()
        until = time.monotonic() + LINGER
        while self.stdout >= 0 and not seen.over and self._turn() and time.monotonic() < until:
            pass
        self._last_line()
        seen.stderr = bytes(self.error_tail).decode("utf-8", "replace")
        seen.duration = time.monotonic() - self.started

    def _turn(self) -> bool:
        """Handle the ready descriptors; return False when nothing came within the tick."""
        if not self.selector.get_map():
            time.sleep(_TICK)
            return False
        ready = self.selector.select(_TICK)
        for key, _ in ready:
            key.data()
        return bool(ready)

    def _stop(self) -> None:
        self.seen.asked_to_stop = True
        platform.signal_group(self.process.pid, signal.SIGTERM)
        if not self._ended(GRACE):
            self.seen.ignored_term = True
            platform.signal_group(self.process.pid, signal.SIGKILL)
            self._ended(GRACE)

    def _ended(self, within: float = 0.0) -> bool:
        """Tell if the process has ended; it is not reaped yet."""
        until = time.monotonic() + within
        while not platform.has_ended(self.process.pid):
            if time.monotonic() >= until:
                return False
            time.sleep(_TICK)
        return True

    # --- the streams ----------------------------------------------------------------------------------

    def _on_stdout(self) -> None:
        data = os.read(self.stdout, _READ)
        if not data or self.seen.over:
            self.selector.unregister(self.stdout)
            os.close(self.stdout)
            self.stdout = -1
            return
        self.bytes += len(data)
        if self.bytes > self.limits.max_bytes:
            self.seen.over = f"wrote more than {self.limits.max_bytes:,} bytes"
            return
        self.partial += data
        lines: list[bytearray] = []
        if b"\n" in data:
            *lines, self.partial = self.partial.split(b"\n")
        kept = [line for line in (self._line(bytes(raw)) for raw in lines) if line is not None]
        if len(kept) > 1 and self.seen.crowded_write is None:
            self.seen.crowded_write = kept[1]
        if len(self.partial) > self.limits.max_line_bytes:
            self.seen.over = f"line {self.number + 1} is longer than {self.limits.max_line_bytes:,} bytes"

    def _line(self, raw: bytes, *, complete: bool = True) -> Line | None:
        self.number += 1
        if not raw.strip() or self.seen.over:
            return None
        line = read_line(self.tool, self.number, raw, complete=complete)
        self.events += 1
        if self.events > self.limits.max_events:
            self.seen.over = f"wrote more than {self.limits.max_events:,} events"
            return None
        self.values += line.values
        if self.values > self.limits.max_values:
            self.seen.over = f"line {self.number}: more than {self.limits.max_values:,} values in its events"
            return None
        self.seen.kinds.add(type(line.event))
        self.seen.fault_count += line.fault is not None
        if isinstance(line.event, Asset):
            line.look_at_asset(self.store)
        after_done = self.done_at is not None
        if isinstance(line.event, Done) and not after_done:
            self.done_at = time.monotonic()
        if line.worth_keeping or after_done or len(self.seen.lines) < MAX_FAULTS:
            self.seen.lines.append(line)
        return line

    def _last_line(self) -> None:
        if self.partial.strip() and self.seen.ended_by_itself:
            line = self._line(bytes(self.partial), complete=False)
            self.seen.no_final_newline = line is not None and line.fault is None

    def _on_stderr(self) -> None:
        stream = self.process.stderr
        data = os.read(stream.fileno(), _READ) if stream is not None else b""
        if not data and stream is not None:
            self.selector.unregister(stream)
        self.error_tail += data
        del self.error_tail[: -self.limits.stderr_bytes]

    def _on_stdin(self) -> None:
        stream = self.process.stdin
        if stream is None:
            return
        try:
            self.unsent = self.unsent[os.write(stream.fileno(), self.unsent[:_READ]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.unsent = self.unsent[:0]  # 001 §6: a tool may ignore its input
        if not self.unsent:
            self.selector.unregister(stream)
            stream.close()

    def close(self) -> None:
        self.selector.close()
        if self.stdout >= 0:
            os.close(self.stdout)
        for stream in (self.process.stdin, self.process.stderr):
            if stream is not None and not stream.closed:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it hangs in the kernel: no verdict on its exit
            code = self.process.wait(GRACE)
            self.seen.exit_code, self.seen.signal = (None, -code) if code < 0 else (code, None)


def _packet_pipe() -> tuple[int, int, bool]:
    """Return a pipe that keeps writes apart where the system has one (Linux, O_DIRECT), to show unflushed events."""
    direct = getattr(os, "O_DIRECT", 0)
    if direct and hasattr(os, "pipe2"):
        with contextlib.suppress(OSError):
            return (*os.pipe2(direct | os.O_CLOEXEC), True)
    return (*os.pipe(), False)


def _left_behind(call: int, group: int) -> list[str]:
    """Return the commands of a call that still run after its process has ended and a pipeline had a moment to run
    dry.
    """
    until = time.monotonic() + LINGER / 2
    while True:
        found = {*custody().belonging_to(call), *custody().unmarked_of(call)}
        alive = sorted(found - {group})
        if not alive or time.monotonic() > until:
            return [_command_of(pid) for pid in alive]
        time.sleep(_TICK)


def _command_of(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").strip()
    except OSError:
        words = b""
    return f"{words[:EXCERPT_BYTES].decode('utf-8', 'replace') or 'a process'} (pid {pid})"
