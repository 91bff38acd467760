"""The narrative of a turn, put together from the narrator's words and the summaries of its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from narratoria.events import Done, ToolEvent
from narratoria.narrator.invocation import readable
from narratoria.narrator.protocol import Declaration
from narratoria.run.plan import CallResult, PlanDocument


def narrative_of(
    completed: Sequence[CallResult],
    declared: Declaration,
    *,
    said: Sequence[str],
    told: Mapping[str, str],
    plans: Sequence[PlanDocument],
    name_of: Callable[[str], str],
    list_calls: Callable[[Sequence[str]], str],
) -> str:
    """The narrator's words, the summaries of the calls, and a plain line of calls that nobody told of.

    `told` has, by id of a call, the narrator's words in place of its summary.
    """
    summaries = [(one.tool_id, told.get(one.tool_id, _summary(one.events))) for one in completed]
    parts = [text for text in (*said, *(text for _, text in summaries)) if text.strip()]
    if declared.lists_calls == "always" or (declared.lists_calls == "if_silent" and not parts):
        paths = {call.tool_id: call.tool_path for plan in plans for call in plan.tools}
        untold = [one for one, text in summaries if not text and one not in declared.narrated_calls]
        parts.append(list_calls([name_of(paths[one]) for one in untold if one in paths]))
    return readable("\n\n".join(text for text in parts if text))


def _summary(events: Sequence[ToolEvent]) -> str:
    done = next((event for event in reversed(events) if isinstance(event, Done) and event.ok), None)
    return (done.summary or "") if done else ""
