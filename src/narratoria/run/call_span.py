"""A call in an OpenTelemetry span of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from narratoria import telemetry
from narratoria.telemetry.provider import live
from narratoria.tools.tool import Tool, ToolResult

if TYPE_CHECKING:
    from narratoria.run.call_record import Call
    from narratoria.run.executor import ToolExecutor
    from narratoria.session import Draft, Session


def tell_refused(asked: str, call_id: str, code: str, reason: str) -> None:
    """Leave the span of a call for which no tool was found."""
    if live():
        with telemetry.tool_call(None, asked, call_id, "") as span:
            span.failed(code, reason)


async def execute_in_span(
    executor: ToolExecutor,
    name: str | Tool[Any, Any],
    args: Mapping[str, Any],
    session: Session | Draft,
    call: Call | None,
) -> ToolResult[Any]:
    """Run one tool in a span that tells its outcome."""
    tool = name if isinstance(name, Tool) else executor.registry.get(name) if isinstance(name, str) else None
    call_id = (call.call_id if call is not None else None) or f"{session.root.id}:{session.root.calls + 1}"
    found, kind = (None, "") if tool is None else (tool.name, tool.kind.name)
    with telemetry.tool_call(found, str(name), call_id, kind) as span:
        span.keep(arguments=args)
        result: ToolResult[Any] = await executor.execute(
            tool or name, args, session=session, call=call, in_span=True
        )
        if result.metadata is not None:
            span.note(attempts=result.metadata.attempts)
        if result.failure is None:
            span.keep(result=result.value)
        else:
            span.failed(result.failure.code, result.failure.message)
    return result
