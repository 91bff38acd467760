"""The agent loop: a prompt, a model, and the tools of the prompt's sections, until there is an answer.

Tools run through the pipeline and nowhere else; failures go back to the model as `role: "tool"`. Only an error that
ends the whole evaluation is raised: `PromptEvaluationError`.
"""
# 002, "Runtime Dispatch" and "Failure Semantics".

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from narratoria import telemetry
from narratoria.agent.adapters.adapter import (
    Adapter,
    ContextOverflow,
    FormatRefused,
    ModelBusy,
    ModelCall,
    ModelFailed,
    ModelRefused,
    ModelReply,
    ModelRequest,
    ModelUsage,
    complete,
    unheard,
)
from narratoria.agent.adapters.answers import json_in
from narratoria.agent.adapters.function_names import function_name
from narratoria.agent.prompt import BoundPrompt, Prompt, RenderedPrompt
from narratoria.errors import (
    INVALID_ARGUMENTS,
    ArgumentsInvalid,
    BudgetExceededError,
    DeadlineExceededError,
    PromptEvaluationError,
    PromptValidationError,
    VisibilityExpansionRequired,
)
from narratoria.events import JsonObject
from narratoria.run.approval import ApprovalPolicy
from narratoria.run.executor import ToolExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.strict_json import decode
from narratoria.tools import schema
from narratoria.tools.deadline import BudgetTracker, Deadline
from narratoria.tools.retry import ExponentialBackoff, pause
from narratoria.tools.tool import ToolResult

T = TypeVar("T")
MAX_ROUNDS: Final = 16
REPLY_TIMEOUT: Final = 120.0  # seconds for one reply; a whole evaluation is bounded by its deadline
MAX_TOOL_TEXT: Final = 32_000  # characters of one result that are put into the conversation
_PROVIDER_FAILURES: Final = 3  # in a row
_BACKOFF: Final = ExponentialBackoff(0.1, 2.0)
_LONGEST_PAUSE: Final = 60.0  # a provider that asks for more is not waited for


@dataclass(frozen=True, slots=True)
class CallMade:
    """A tool call of the model and its result."""

    call: ModelCall
    result: ToolResult[Any] | None  # None where the call opened sections instead


@dataclass(frozen=True, slots=True)
class Evaluation(Generic[T]):
    """The answer of an evaluation, with the calls, tokens and cost it took."""

    text: str
    output: T | None
    rounds: int
    usage: ModelUsage
    calls: tuple[CallMade, ...]
    messages: tuple[JsonObject, ...]
    rendered: RenderedPrompt


async def evaluate(
    prompt: Prompt | BoundPrompt,
    adapter: Adapter,
    session: Session,
    *,
    request: str = "",
    output: type[T] | None = None,
    history: Sequence[JsonObject] = (),
    deadline: Deadline | None = None,
    budget_tracker: BudgetTracker | None = None,
    max_rounds: int = MAX_ROUNDS,
    max_tokens: int = 1024,
    time_limit: float = REPLY_TIMEOUT,
    tool_choice: str | None = None,
    on_text: Callable[[str], None] = unheard,
    config: Mapping[str, Any] | None = None,
    approval: ApprovalPolicy | None = None,
) -> Evaluation[T]:
    """Ask until the model answers without calling a tool, at most `max_rounds` times.

    The rendered prompt is the system message and `request` the user's; without a request the prompt is the user's
    message. `history` (few-shot examples, earlier exchanges) stands between them. With `output`, a dataclass, the
    answer is parsed strictly, and the model is told of every problem. `approval` tells which calls a person must
    approve first, beside the rules of the tools themselves; who is asked is the session's `approvals.approver`.
    """
    bound = prompt.bind() if isinstance(prompt, Prompt) else prompt
    if not isinstance(bound, BoundPrompt):
        raise PromptValidationError(
            f"evaluate takes a Prompt, not {type(prompt).__name__}; for plain text write "
            f'Prompt(ns="app", key="ask", sections=[MarkdownSection(title="Ask", key="ask", template="…")])'
        )
    loop = _Loop(bound, adapter, session, output, deadline, budget_tracker, max_tokens, on_text, config or {})
    loop.tool_choice, loop.time_limit, loop.approval = tool_choice, time_limit, approval
    with telemetry.evaluation(f"{bound.prompt.ns}/{bound.prompt.key}", session.id) as span:
        loop.begin(request, history)
        answer = await loop.rounds(max_rounds)
        if answer.usage.counted:
            span.note(input_tokens=answer.usage.input_tokens, output_tokens=answer.usage.output_tokens)
    return answer


class _Loop(Generic[T]):
    def __init__(
        self,
        bound: BoundPrompt,
        adapter: Adapter,
        session: Session,
        output: type[T] | None,
        deadline: Deadline | None,
        tracker: BudgetTracker | None,
        max_tokens: int,
        on_text: Callable[[str], None],
        config: Mapping[str, Any],
    ) -> None:
        self.bound = bound
        self.adapter = adapter
        self.session = session
        self.output = output
        self.parse = None if output is None else schema.parser_for(output, name=output.__name__)
        self.answer_schema: JsonObject | None = None if output is None else dict(schema.schema_for(output))
        self.deadline = deadline
        self.tracker = tracker
        self.max_tokens = max_tokens
        self.on_text = on_text
        self.config = config
        self.tool_choice: str | None = None
        self.time_limit = REPLY_TIMEOUT
        self.approval: ApprovalPolicy | None = None
        self.concluding = False  # the model has called its tools: now only the form of its answer matters
        self.failures = 0
        self.objection = ""  # what was wrong with the last answer
        self.usage = ModelUsage()
        self.made: list[CallMade] = []
        self.messages: list[JsonObject] = []

    def begin(self, request: str, history: Sequence[JsonObject]) -> None:
        self.role = "system" if request or history else "user"
        self.messages = [{"role": self.role, "content": ""}, *history]
        if request:
            self.messages.append({"role": "user", "content": request})
        self._render()

    def _render(self) -> None:
        """Render the prompt into the first message, and offer its tools."""
        self.rendered = self.bound.render()
        self.messages[0] = {"role": self.role, "content": self.rendered.text}
        scope = self.rendered.scope(
            adapter=self.adapter,
            deadline=self.deadline,
            budget_tracker=self.tracker,
            config=self.config,
        )
        self.executor = ToolExecutor(ToolRegistry(self.rendered.tools, approval=self.approval), scope=scope)
        self.names = {function_name(tool.name): tool.name for tool in self.rendered.tools}

    async def rounds(self, most: int) -> Evaluation[T]:
        for number in range(1, most + 1):
            answer = await self.round(number)
            if answer is not None:
                return answer
        wrong = f"; the last answer did not do: {self.objection}" if self.objection else ""
        raise PromptEvaluationError(
            f"prompt {self.bound.prompt.ns}/{self.bound.prompt.key}: no answer after {most} rounds and "
            f"{len(self.made)} tool calls{wrong}; raise max_rounds or make the instructions clearer"
        )

    async def round(self, number: int) -> Evaluation[T] | None:
        reply = await self._ask()
        if reply is None:
            return None
        if reply.calls and not self.concluding:
            await self._call(reply)
            return None
        if self.parse is None:
            if reply.text.strip():
                return self._answer(reply, None, number)
            self._object(reply, "Your answer was empty.")
            return None
        try:
            return self._answer(reply, self.parse(json_in(reply.text)), number)
        except ArgumentsInvalid as error:
            self.concluding = True
            self._object(reply, f"That is not the answer asked for: {error}")
            return None

    # --- the model -----------------------------------------------------------------------------------------

    async def _ask(self) -> ModelReply | None:
        """Return one reply; None where the provider failed and may be asked again."""
        try:
            if self.deadline is not None:
                self.deadline.check("the next round")
            if self.tracker is not None:
                self.tracker.check()
        except (DeadlineExceededError, BudgetExceededError) as error:
            raise PromptEvaluationError(str(error)) from error
        tools = () if self.concluding else self.rendered.tools
        request = ModelRequest(
            messages=list(self.messages),
            tools=tools,
            tool_choice=self.tool_choice if tools and not self.made else None,
            # Servers take a schema or tools, not both: the schema comes when the tools are done with.
            schema=None if tools else self.answer_schema,
            max_tokens=self.max_tokens,
            timeout=self._at_most(self.time_limit),
        )
        try:
            reply = await complete(self.adapter, request, self.on_text)
        except ModelFailed as error:
            await self._failed(error)
            return None
        self.failures = 0
        self._spend(reply.usage)
        return reply

    async def _failed(self, error: ModelFailed) -> None:
        self.failures += 1
        if isinstance(error, FormatRefused) and self.answer_schema is not None:
            self.answer_schema = None  # the answer is still parsed strictly; the server only helps less
            return
        delay = _BACKOFF.delay(self.failures)
        if isinstance(error, ModelBusy):
            delay = max(delay, error.retry_after or 0.0)
        patience = self._at_most(_LONGEST_PAUSE)
        hopeless = isinstance(error, ContextOverflow | ModelRefused) or self.failures >= _PROVIDER_FAILURES
        if hopeless or delay >= patience:
            raise PromptEvaluationError(f"the model gave no answer: {error}") from error
        await pause(delay)

    def _at_most(self, seconds: float) -> float:
        return seconds if self.deadline is None else min(seconds, self.deadline.remaining())

    def _spend(self, usage: ModelUsage) -> None:
        self.usage = self.usage + usage
        if self.tracker is None:
            return
        try:
            self.tracker.spend(
                input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost=usage.cost
            )
        except BudgetExceededError as error:
            raise PromptEvaluationError(str(error)) from error

    def _object(self, reply: ModelReply, problem: str) -> None:
        self.objection = problem.rstrip(".")
        self.messages.append({"role": "assistant", "content": reply.text or "…"})
        asked = (
            "Answer again" if self.output is None else "Answer again, with one JSON object and nothing else"
        )
        self.messages.append({"role": "user", "content": f"{problem} {asked}."})

    def _answer(self, reply: ModelReply, output: T | None, number: int) -> Evaluation[T]:
        self.messages.append({"role": "assistant", "content": reply.text})
        return Evaluation(
            reply.text, output, number, self.usage, tuple(self.made), tuple(self.messages), self.rendered
        )

    # --- its tools -----------------------------------------------------------------------------------------

    async def _call(self, reply: ModelReply) -> None:
        """Run the calls of one reply concurrently, and answer them in their order."""
        self.messages.append(
            {
                "role": "assistant",
                "content": reply.text or None,
                "tool_calls": [_as_written(call) for call in reply.calls],
            }
        )
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._run(call)) for call in reply.calls]
        outcomes = [task.result() for task in tasks]
        for outcome in outcomes:
            if isinstance(outcome, PromptEvaluationError):
                raise outcome
        opened: list[str] = []
        for call, outcome in zip(reply.calls, outcomes, strict=True):
            if isinstance(outcome, VisibilityExpansionRequired):
                opened.extend(outcome.section_keys)
                text = f"Now shown in full: {', '.join(outcome.section_keys)}."
                self.made.append(CallMade(call, None))
            else:
                assert isinstance(outcome, ToolResult)  # noqa: S101 - the errors are handled above
                text = _told(outcome)
                self.made.append(CallMade(call, outcome))
            self.messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        if opened:
            self.bound = self.bound.open(*opened)
            self._render()

    async def _run(
        self, call: ModelCall
    ) -> ToolResult[Any] | VisibilityExpansionRequired | PromptEvaluationError:
        try:
            arguments = decode(call.arguments or "{}")
        except (ValueError, RecursionError) as error:  # a repeated key too
            return ToolResult.failed(
                f"{call.name}: the arguments are not JSON: {error}", code=INVALID_ARGUMENTS
            )
        try:
            name = self.names.get(call.name, call.name)
            return await self.executor.execute(name, arguments, session=self.session)
        except (VisibilityExpansionRequired, PromptEvaluationError) as error:
            return error  # its siblings finish first


def _told(result: ToolResult[Any]) -> str:
    """Return the text a model is shown for a result: its `render()`, and for a failure the suggestions."""
    text = result.render()
    if not result.success and result.failure is not None:
        suggestions = "; ".join(one for one in result.failure.suggestions if one not in text)
        text = f"FAILED ({result.failure.code}): {text}" + (f"\nTry: {suggestions}" if suggestions else "")
    if len(text) > MAX_TOOL_TEXT:
        text = f"{text[:MAX_TOOL_TEXT]}\n… cut off: the result has {len(text):,} characters"
    return text


def _as_written(call: ModelCall) -> JsonObject:
    """Return the call as a message; arguments that are not JSON would make some servers refuse the whole history."""
    try:
        msgspec.json.decode(call.arguments)
        arguments = call.arguments
    except (msgspec.DecodeError, RecursionError):
        arguments = msgspec.json.encode({"unreadable": call.arguments[:500]}).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
