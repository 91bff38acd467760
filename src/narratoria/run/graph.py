"""A plan as a picture: Mermaid text, or SVG drawn here."""

from __future__ import annotations

from html import escape
from typing import Final

from narratoria.run.plan import PlanDocument, PlannedCall, levels, tool_name

_WIDTH: Final = 190
_HEIGHT: Final = 54
_GAP_X: Final = 70
_GAP_Y: Final = 26
_MARGIN: Final = 24


def direct_needs(plan: PlanDocument) -> dict[str, list[str]]:
    """Return, by toolId, the calls right before each: without those that a longer way implies already."""
    needs = {call.tool_id: call.all_dependencies for call in plan.tools}
    above: dict[str, set[str]] = {}
    direct: dict[str, list[str]] = {}
    for tool_id in (one for level in levels(plan) for one in level):
        far = {other for one in needs[tool_id] for other in above[one]}
        direct[tool_id] = [one for one in needs[tool_id] if one not in far]
        above[tool_id] = far.union(needs[tool_id])
    return {call.tool_id: direct[call.tool_id] for call in plan.tools}


def mermaid(plan: PlanDocument) -> str:
    """Return the calls from left to right as Mermaid text; a dashed box is a call whose failure does not stop the
    others.
    """
    numbers = {call.tool_id: f"n{index}" for index, call in enumerate(plan.tools)}
    lines = ["flowchart LR"]
    for call in plan.tools:
        label = f"{_mermaid_text(call.tool_id)}<br/><small>{_mermaid_text(tool_name(call.tool_path))}</small>"
        lines.append(f'  {numbers[call.tool_id]}["{label}"]')
    for tool_id, needs in direct_needs(plan).items():
        lines.extend(f"  {numbers[one]} --> {numbers[tool_id]}" for one in needs)
    optional = [numbers[call.tool_id] for call in plan.tools if not call.required]
    if optional:
        lines += ["  classDef optional stroke-dasharray: 5 4", f"  class {','.join(optional)} optional"]
    return "\n".join(lines)


def svg(plan: PlanDocument) -> str:
    """Return the same as an SVG picture, light text on a dark ground, with no outside reference."""
    place = {
        tool_id: (_MARGIN + column * (_WIDTH + _GAP_X), _MARGIN + row * (_HEIGHT + _GAP_Y))
        for column, level in enumerate(levels(plan))
        for row, tool_id in enumerate(level)
    }
    width = max((x for x, _ in place.values()), default=0) + _WIDTH + _MARGIN
    height = max((y for _, y in place.values()), default=0) + _HEIGHT + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="Plan with {len(plan.tools)} calls" font-family="Roboto, system-ui, sans-serif">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#cbbfe4"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#151218"/>',
    ]
    for tool_id, needs in direct_needs(plan).items():
        parts.extend(_edge(place[one], place[tool_id]) for one in needs)
    parts.extend(_node(call, *place[call.tool_id]) for call in plan.tools)
    return "\n".join([*parts, "</svg>"])


def _edge(start: tuple[int, int], end: tuple[int, int]) -> str:
    x1, y1 = start[0] + _WIDTH, start[1] + _HEIGHT // 2
    x2, y2 = end[0] - 3, end[1] + _HEIGHT // 2
    bend = (x2 - x1) // 2
    path = f"M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
    return f'<path d="{path}" fill="none" stroke="#958da3" stroke-width="1.5" marker-end="url(#tip)"/>'


def _node(call: PlannedCall, x: int, y: int) -> str:
    tool = escape(_short(tool_name(call.tool_path), 26))
    dashed = "" if call.required else ' stroke-dasharray="5 4"'
    return (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="12" fill="#2c2831" stroke="#cfbdfe"{dashed}/>'
        f'<text x="{x + 14}" y="{y + 23}" font-size="14" fill="#e7e0e8">{escape(_short(call.tool_id, 22))}</text>'
        f'<text x="{x + 14}" y="{y + 41}" font-size="12" fill="#cbc4cf">{tool}</text>'
    )


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _mermaid_text(text: str) -> str:
    return "".join(
        char if char.isalnum() or char in " _-./" else f"#{ord(char)};" for char in _short(text, 60)
    )
