"""The place of a tool's process: this machine, or others by an engine.

An engine gets a `Job` and a `Listener`, and returns the ending of the process. Everything else of a call stays here:
its arguments, its draft, the judgement of its ending, and its record.
"""

from __future__ import annotations

import asyncio
import pkgutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from narratoria.errors import NarratoriaError
from narratoria.events import Asset, JsonObject, ToolEvent
from narratoria.extras import absent, needed
from narratoria.tools.node_resources import Resources

if TYPE_CHECKING:
    from narratoria.kinds.ndjson import Limits
    from narratoria.kinds.process.supervisor import ProcessOutcome
    from narratoria.session import Draft
    from narratoria.tools.tool import Tool

EngineName: TypeAlias = Literal["local", "ray"]
ENGINES: Final[Mapping[str, str]] = {"ray": "narratoria.kinds.remote.ray_engine:RayEngine"}


@dataclass(frozen=True, slots=True)
class Job:
    """One run of an executable, as an engine needs it."""

    tool: str
    file: Path
    """The executable, as it lies on this machine."""
    folder: Path | None
    """The folder that goes with the file to another machine; None: the one it lies in."""
    request: bytes
    timeout: float | None
    limits: Limits
    env: Mapping[bytes, bytes] = field(repr=False)
    """Variables beside the standard ones, which are the node's own."""
    cwd: Path | None
    resources: Resources
    asset_cap: int
    """Cap on the bytes of one asset."""


@dataclass(frozen=True, slots=True)
class FunctionJob:
    """One call of a Python function, as an engine needs it."""

    tool: str
    handler: Callable[..., Any]
    params: Any
    call_id: str
    state: JsonObject
    outputs: JsonObject | None
    timeout: float | None
    resources: Resources
    asset_cap: int


class Listener(Protocol):
    """Hears a process that runs elsewhere."""

    def hear(self, events: list[ToolEvent]) -> Awaitable[None] | None:
        """Take events, none of them an asset; nothing more is read while the returned awaitable is pending."""

    async def receive(self, event: Asset, arrived: Path | str) -> None:
        """Take an asset: its content in a file here, or the reason why there is none."""


class Engine(Protocol):
    """Runs processes on other machines."""

    @property
    def ready(self) -> bool:
        """True once a call need not wait for the engine itself."""

    async def prepare(self) -> None:
        """Wait until it is ready; a `CallFailure` says why it never will be."""

    async def launch(self, job: Job, listener: Listener) -> ProcessOutcome:
        """Run an executable to its end. When cancelled, its process group is ended before the exception goes on."""

    async def execute(self, job: FunctionJob, listener: Listener) -> Any:
        """Run a function and return its result, or raise what it raised."""

    def start(self) -> None:
        """Be ready before the first call; it blocks for seconds. Without it, the first call waits."""

    def close(self) -> None:
        """End the engine, and what it started."""


async def prepared(engine: Engine, draft: Draft) -> None:
    """Wait until an engine is ready. The time limits of the call and of its plan stand still meanwhile."""
    await asyncio.sleep(0)  # the pipeline arms the limits of a call that waits
    plans = draft.root.approvals.limits
    with draft.root.approvals.clock.standstill() as hold:
        hold([*draft.limits, *(limit for each in plans for limit in each)])
        await engine.prepare()


@dataclass(frozen=True, slots=True)
class _Choice:
    engine: EngineName | None = None
    address: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


_choice = _Choice()
_engines: dict[str | None, Engine] = {}


def choose(engine: EngineName | None, address: str | None = None, **options: Any) -> Callable[[], None]:
    """Choose where the tools of this process run, until the returned function is called, which ends the engine.

    `ray` is for every executable, `local` for none; None for those whose manifest or story asks for resources.
    `address` is that of a cluster; without one, an engine starts its own on this machine. `options` are the engine's.
    """
    global _choice
    before, _choice = _choice, _Choice(engine, address, options)

    def take_back() -> None:
        global _choice
        _choice = before
        for one in [*_engines.values()]:
            one.close()
        _engines.clear()

    try:
        if engine == "ray":
            _engine("ray").start()
    except BaseException:
        take_back()
        raise
    return take_back


def engine_for(tool: Tool[Any, Any]) -> Engine | None:
    """Return the engine that runs a tool; None for this machine."""
    if tool.engine is not None:
        engine: Engine = tool.engine
        return engine
    if _choice.engine == "ray" or (tool.resources is not None and _choice.engine is None):
        return _engine("ray")
    return None


def _engine(name: str) -> Engine:
    address = _choice.address
    if address not in _engines:
        if absent(name):
            raise NarratoriaError(f"the engine {name} {needed(name)}")
        _engines[address] = pkgutil.resolve_name(ENGINES[name])(address, **_choice.options)
    return _engines[address]
