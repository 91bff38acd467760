"""Turns of programs without an event loop."""

from __future__ import annotations

from narratoria.narrator.protocol import Narrator
from narratoria.play.turn import take_turn
from narratoria.play.turn_types import Interrupted, Origin, TurnResult, TurnSettings
from narratoria.run.background_loop import run_sync
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session


def take_turn_sync(
    session: Session,
    prompt: str,
    *,
    narrator: Narrator,
    registry: ToolRegistry,
    executor: PlanExecutor | None = None,
    origin: Origin = "player",
    settings: TurnSettings = TurnSettings(),  # noqa: B008 (frozen)
    resume: Interrupted | None = None,
) -> TurnResult:
    """Take one turn and wait for it: `take_turn` for programs without an event loop."""
    turn = take_turn(
        session, prompt, narrator=narrator, registry=registry, executor=executor, origin=origin, settings=settings,
        resume=resume,
    )  # fmt: skip
    return run_sync(turn)
