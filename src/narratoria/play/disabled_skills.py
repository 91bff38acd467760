"""Skill health: a failed skill is not chosen again in its turn, and one that cannot recover not in its session.

A skill is a tool, or several that say they belong together. Its health is part of the session.
"""
# 000 §13.6.

from __future__ import annotations

from typing import Any, Final, Literal

from narratoria.errors import INVALID_ARGUMENTS, NOT_EXECUTABLE, REFUSED, TOOL_NOT_FOUND, PlanRejected
from narratoria.events import SkillHealth
from narratoria.run.plan import CallResult, PlanDocument, tool_name
from narratoria.run.resolve import ToolRefused, ToolResolver
from narratoria.session import Session
from narratoria.tools.tool import Tool

# What will be so in the next turn as well.
_PERMANENT: Final = frozenset({TOOL_NOT_FOUND, NOT_EXECUTABLE})
_REASON: Final = 200  # characters of a failure that a refusal repeats

Health = Literal["healthy", "degraded", "temporaryFailure", "permanentFailure"]


class Skills:
    """The skills at the start of a turn: those disabled then, and those that fail during it."""

    def __init__(self, session: Session, resolver: ToolResolver, switched_off: frozenset[str]) -> None:
        self.session = session
        self.resolver = resolver
        self.switched_off = switched_off
        self.disabled = set(switched_off) | {
            skill for skill, known in session.health.items() if known.health == "permanentFailure"
        }
        self._avoided: set[str] = set()

    @property
    def failed(self) -> set[str]:
        """The skills found broken, which a plan must list; those the player switched off are not included."""
        # 000 §13.3: `disabledSkills`.
        return self.disabled - self.switched_off

    def is_disabled(self, tool: Tool[Any, Any]) -> bool:
        return tool.name in self.disabled or tool.skill in self.disabled

    @property
    def withheld(self) -> frozenset[str]:
        """The skills that narrators are told not to choose: the disabled ones, and those to avoid."""
        return frozenset(self.disabled | self._avoided)

    def offers(self, tool: Tool[Any, Any]) -> bool:
        return not self.is_disabled(tool) and _skill(tool) not in self._avoided

    def avoid(self, tool_path: str) -> None:
        """Offer a skill no more in this turn. It works: a plan that chooses it is not refused."""
        if (tool := self._find(tool_path)) is not None:
            self._avoided.add(_skill(tool))

    def check(self, plan: PlanDocument) -> None:
        """Refuse a plan that selects a disabled skill."""
        # 000 §13.3: the generator MUST NOT select disabled skills.
        problems = []
        for index, call in enumerate(plan.tools):
            tool = self._find(call.tool_path)
            if tool is not None and self.is_disabled(tool):
                name = f"$.tools[{index}].toolPath: {tool.name}"
                problems.append(f"{name} is disabled{self._why(tool)}; choose another")
        if problems:
            raise PlanRejected(problems)

    def _why(self, tool: Tool[Any, Any]) -> str:
        known = self.session.health.get(_skill(tool))
        return f" ({known.reason[:_REASON]})" if known is not None and known.reason else ""

    def note(self, tool_path: str, result: CallResult) -> None:
        """Update a skill's health after a call; a change is recorded.

        Wrong arguments say nothing about the skill: the plan made them, and the next one may correct them. Nor does a
        person's refusal.
        """
        if result.state == "skipped" or result.verdict in (INVALID_ARGUMENTS, REFUSED):
            return
        tool = self._find(tool_path)
        skill = _skill(tool) if tool else tool_name(tool_path)
        before = self.session.health.get(skill)
        failures = 0 if result.ok else (before.failures if before else 0) + 1
        now = SkillHealth(skill=skill, health=_health(result), failures=failures, reason=result.error or "")
        if not result.ok:
            self.disabled.add(skill)
        if before is None or before.health != now.health or before.failures != now.failures:
            self.session.health[skill] = now
            self.session.record(now)

    def _find(self, tool_path: str) -> Tool[Any, Any] | None:
        try:
            return self.resolver.resolve(tool_path)
        except ToolRefused:
            return None


def _skill(tool: Tool[Any, Any]) -> str:
    return tool.skill or tool.name


def _health(result: CallResult) -> Health:
    if result.ok:
        return "degraded" if result.retry_count else "healthy"
    return "permanentFailure" if result.verdict in _PERMANENT else "temporaryFailure"
