"""The names of attributes and metrics, as the semantic conventions for generative AI have them."""
# github.com/open-telemetry/semantic-conventions-genai; the token metric is that of the last release before it.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

ATTRIBUTES: Final[Mapping[str, str]] = {
    "operation": "gen_ai.operation.name",
    "agent": "gen_ai.agent.name",
    "conversation": "gen_ai.conversation.id",
    "tool": "gen_ai.tool.name",
    "tool_type": "gen_ai.tool.type",
    "call": "gen_ai.tool.call.id",
    "arguments": "gen_ai.tool.call.arguments",
    "result": "gen_ai.tool.call.result",
    "provider": "gen_ai.provider.name",
    "model": "gen_ai.request.model",
    "max_tokens": "gen_ai.request.max_tokens",
    "answered_by": "gen_ai.response.model",
    "finish_reasons": "gen_ai.response.finish_reasons",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "token_type": "gen_ai.token.type",
    "input_messages": "gen_ai.input.messages",
    "output_messages": "gen_ai.output.messages",
    "error": "error.type",
    "method": "http.request.method",
    "path": "url.path",
    "scheme": "url.scheme",
    "route": "http.route",
    "status": "http.response.status_code",
    "server": "server.address",
    "port": "server.port",
    "executable": "process.executable.name",
    "executable_path": "process.executable.path",
    "pid": "process.pid",
    "exit_code": "process.exit.code",
    "signal": "narratoria.process.signal",
    "kind": "narratoria.tool.kind",
    "asked": "narratoria.tool.asked",
    "attempt": "narratoria.attempt",
    "attempts": "narratoria.call.attempts",
    "delay": "narratoria.call.retry_delay",
    "plan": "narratoria.plan.id",
    "calls": "narratoria.plan.calls",
    "failed_calls": "narratoria.plan.failed_calls",
    "turn": "narratoria.turn",
    "outcome": "narratoria.turn.outcome",
    "narrator": "narratoria.narrator",
}
"""Our short name → the attribute's."""

_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_LONG: Final = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6)
_WORKFLOW: Final = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600)
_HTTP: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
_TOKENS: Final = tuple(4**power for power in range(14))

HISTOGRAMS: Final[Mapping[str, tuple[str, str, Sequence[float]]]] = {
    "gen_ai.execute_tool.duration": ("s", "Duration of a tool call, with its retries.", _SECONDS),
    "gen_ai.invoke_agent.duration": ("s", "Duration of a turn, or of an evaluation of a prompt.", _LONG),
    "gen_ai.workflow.duration": ("s", "Duration of the execution of a plan.", _WORKFLOW),
    "gen_ai.client.operation.duration": ("s", "Duration of a request to a model.", _SECONDS),
    "gen_ai.client.token.usage": ("{token}", "Tokens of a request to a model.", _TOKENS),
    "http.server.request.duration": ("s", "Duration of an HTTP request.", _HTTP),
}
"""Name → unit, description, boundaries of the buckets."""
RETRIES: Final = "narratoria.call.retries"
