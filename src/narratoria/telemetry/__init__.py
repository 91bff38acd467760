"""OpenTelemetry: spans and metrics of requests, turns, plans, calls, processes and models.

The names are those of the semantic conventions for generative AI; they stand in `names`. Each function returns an
operation for a `with` block: its span is current while the block runs, and its duration is measured. Nothing is
imported or made before the program has loaded the OpenTelemetry SDK: till then a call pays for `SDK in sys.modules`.
A program that has loaded it and set up no provider gets no spans of calls either: `live` looks for one.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from narratoria.telemetry.names import ATTRIBUTES
from narratoria.telemetry.provider import SDK, api, live

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable that allows arguments, results, messages and error texts on spans: `true`."""

MAX_CONTENT: Final = 16_384  # characters of one argument list, result or message list
OTHER: Final = "_OTHER"

_FUNCTIONS: Final = frozenset({"function", "composition"})  # other kinds run elsewhere: extensions
_CODE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}|[1-5][0-9]{2}")
_TRUE: Final = frozenset({"1", "true", "span_only", "span_and_event"})
_captures: bool | None = None


def capture_content(allowed: bool | None = True) -> None:
    """Put arguments, results, messages and error texts on spans, or do not. None: as the environment says."""
    global _captures
    _captures = allowed


def captures() -> bool:
    """Tell if content may be put on spans."""
    global _captures
    if _captures is None:
        _captures = os.environ.get(CAPTURE, "").strip().lower() in _TRUE
    return _captures


# --- operations -------------------------------------------------------------------------------------------


class Operation:
    """A request, a turn, a plan, a call, a process, for the time it takes. This one is measured by nobody."""

    __slots__ = ()

    def __enter__(self) -> Operation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def note(self, **values: Any) -> None:
        """Set attributes, by the names in `ATTRIBUTES`. None is left out."""

    def rename(self, name: str) -> None:
        """Give the span another name."""

    def made_by(self, agent: str) -> None:
        """Name the agent at the end of the span's name, and in its attributes."""

    def keep(self, **values: Any) -> None:
        """Set attributes that hold content, as JSON, where that is allowed."""

    def failed(self, code: str, message: str = "") -> None:
        """Say that it failed. The first code stands; the text is kept only where content is allowed."""

    def end(self) -> None:
        """End the span before its block ends."""

    def environment(self) -> Mapping[bytes, bytes]:
        """The variables that hand the trace on to a process."""
        return _NOTHING


class _Live(Operation):
    """An operation with a span."""

    __slots__ = (
        "_attributes",
        "_error",
        "_labels",
        "_message",
        "_metric",
        "_name",
        "_parent",
        "_span",
        "_started",
        "_token",
        "kind",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        metric: str | None = None,
        labels: tuple[str, ...] = (),
        *,
        client: bool = False,
        parent: Context | None = None,
        made: dict[str, Any] | None = None,
        **values: Any,
    ) -> None:
        """`made` are attributes by their own names, in place of `values`."""
        self._name = name
        self._metric = metric
        self._labels = labels
        self.kind = api().client if client else api().internal
        self._parent = parent
        self._attributes = _attributes(values) if made is None else made
        self._error: str | None = None
        self._message = ""
        self._span: Span | None = None
        self._token: Any = None
        self._started = 0.0

    def __enter__(self) -> Operation:
        otel = api()
        self._started = perf_counter()
        self._span = span = otel.tracer.start_span(self._name, self._parent, self.kind, self._attributes)
        self._token = otel.attach(otel.with_span(span, self._parent))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.failed(_code_of(error), str(error))
        self.end()
        if kind is not GeneratorExit:  # a coroutine that is thrown away ends in somebody else's context
            api().detach(self._token)

    def note(self, **values: Any) -> None:
        span = self._span
        recording = span is not None and span.is_recording()
        for name, value in values.items():
            if value is not None:
                named = ATTRIBUTES[name]
                self._attributes[named] = value
                if recording:
                    span.set_attribute(named, value)  # type: ignore[union-attr]

    def rename(self, name: str) -> None:
        if self._span is not None:
            self._span.update_name(name)

    def made_by(self, agent: str) -> None:
        self.rename(f"{self._name} {agent}")
        self.note(agent=agent)

    def keep(self, **values: Any) -> None:
        if captures() and self._span is not None and self._span.is_recording():
            self.note(**{name: _as_json(value) for name, value in values.items() if value is not None})

    def failed(self, code: str, message: str = "") -> None:
        if self._error is None:
            self._error = code if _CODE.fullmatch(code) else OTHER
            self._message = message

    def end(self) -> None:
        span, otel = self._span, api()
        if span is None:
            return
        self._span = None
        if self._error is not None:
            span.set_attribute(ATTRIBUTES["error"], self._error)
            text = self._message[:MAX_CONTENT] if captures() else None
            span.set_status(otel.wrong, text)
        if self._metric is not None:
            told = self._attributes
            labels = {name: told[name] for one in self._labels if (name := ATTRIBUTES[one]) in told}
            if self._error is not None:
                labels[ATTRIBUTES["error"]] = self._error
            otel.histograms[self._metric].record(perf_counter() - self._started, labels)
        span.end()

    def environment(self) -> Mapping[bytes, bytes]:
        carrier: dict[str, str] = {}
        api().inject(carrier)
        return {name.upper().encode(): value.encode() for name, value in carrier.items()}


OFF: Final = Operation()
_NOTHING: Final[Mapping[bytes, bytes]] = {}


def http_request(method: str, path: str, scheme: str, headers: Mapping[str, str]) -> Operation:
    """An HTTP request that came in; the caller's trace goes on if it names one. Say `route` and `status` before the
    end."""
    if SDK not in sys.modules:
        return OFF
    labels = ("method", "route", "scheme", "status")
    made = _Live(
        method, "http.server.request.duration", labels, parent=api().extract(headers),
        method=method, path=path, scheme=scheme,
    )  # fmt: skip
    made.kind = api().server
    return made


def turn(story: str, session: str, number: int) -> Operation:
    """One turn of a story."""
    if not live():
        return OFF
    return _agent(story, session, turn=number)


def evaluation(prompt: str, session: str) -> Operation:
    """The agent loop over one prompt."""
    return _agent(prompt, session) if live() else OFF


def _agent(name: str, session: str, **values: Any) -> Operation:
    return _Live(
        f"invoke_agent {name}".rstrip(), "gen_ai.invoke_agent.duration", ("agent",),
        operation="invoke_agent", agent=name or None, conversation=session, **values,
    )  # fmt: skip


def generation(attempt: int) -> Operation:
    """The making of a plan. Who of several narrators made it is known, and told, at the end."""
    return _Live("plan", operation="plan", attempt=attempt) if live() else OFF


def plan(name: str, calls: int) -> Operation:
    """The execution of a plan."""
    if not live():
        return OFF
    return _Live(
        "invoke_workflow", "gen_ai.workflow.duration", operation="invoke_workflow", plan=name, calls=calls
    )


def tool_call(tool: str | None, asked: str, call: str, kind: str) -> Operation:
    """One call of a tool, with its retries. `tool` is None where no tool has the name that was asked for."""
    name, known = _known(tool, kind)
    made = {**known, ATTRIBUTES["call"]: call}
    if not tool:
        made[ATTRIBUTES["asked"]] = asked[:200]
    return _Live(name, "gen_ai.execute_tool.duration", ("tool", "tool_type"), made=made)


@lru_cache(maxsize=4_096)
def _known(tool: str | None, kind: str) -> tuple[str, dict[str, Any]]:
    """The name of a span and the attributes that all calls of a tool share."""
    return f"execute_tool {tool or ''}".rstrip(), _attributes(
        {
            "operation": "execute_tool",
            "tool": tool or OTHER,
            "kind": kind or None,
            "tool_type": "function" if kind in _FUNCTIONS else "extension" if kind else None,
        }
    )


def retried(tool: str, attempt: int, delay: float, code: str) -> None:
    """A failed attempt after which the current call is tried again."""
    code = code if _CODE.fullmatch(code) else OTHER
    api().retries.add(1, _attributes({"tool": tool, "error": code}))
    told = _attributes({"attempt": attempt, "delay": delay, "error": code})
    api().current().add_event("narratoria.call.retry", told)


def process(path: str) -> Operation:
    """A process, from its launch to its exit."""
    if SDK not in sys.modules:
        return OFF
    name = path.rpartition("/")[2]
    return _Live(name, client=True, executable=name, executable_path=path)


def chat(provider: str, model: str | None, address: str, max_tokens: int) -> Operation:
    """One request to a model."""
    if not live():
        return OFF
    url = urlsplit(address)
    port = url.port or {"http": 80, "https": 443}.get(url.scheme)
    return _Live(
        f"chat {model or ''}".rstrip(), "gen_ai.client.operation.duration",
        ("operation", "provider", "model", "answered_by", "server", "port"), client=True,
        operation="chat", provider=provider, model=model, max_tokens=max_tokens, server=url.hostname,
        port=port if url.hostname else None,
    )  # fmt: skip


def tokens(provider: str, model: str | None, asked: int, answered: int) -> None:
    """The tokens of a request, as the model's server counted them."""
    if not live():
        return
    for kind, number in (("input", asked), ("output", answered)):
        labels = {"operation": "chat", "provider": provider, "model": model, "token_type": kind}
        api().histograms["gen_ai.client.token.usage"].record(number, _attributes(labels))


def message(one: Mapping[str, Any]) -> dict[str, Any]:
    """A chat message in the form of the conventions: its role, and its parts."""
    role, text = one.get("role", ""), one.get("content")
    parts: list[dict[str, Any]] = []
    if role == "tool":
        return {
            "role": role,
            "parts": [{"type": "tool_call_response", "id": one.get("tool_call_id"), "result": text}],
        }
    if text:
        parts.append({"type": "text", "content": text})
    for call in one.get("tool_calls") or ():
        asked = call["function"]
        parts.append(
            {"type": "tool_call", "id": call["id"], "name": asked["name"], "arguments": asked["arguments"]}
        )
    return {"role": role, "parts": parts}


def _attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    return {ATTRIBUTES[name]: value for name, value in values.items() if value is not None}


def _code_of(error: BaseException) -> str:
    name = type(error).__name__
    return "CANCELLED" if name in ("CancelledError", "GeneratorExit") else name


def _as_json(value: Any) -> str:
    try:
        text = msgspec.json.encode(value, enc_hook=repr).decode()
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= MAX_CONTENT else f"{text[:MAX_CONTENT]}…"
