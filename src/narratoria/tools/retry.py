"""Retry policies: which failed calls are tried again, and after how long.

The presets are in seconds; `backoff` and `backoff_kinds` have the waits. `plan_policy` is the formula of plans.
"""
# The presets are 004's; the formula is 000 §13.4's.

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import msgspec

from narratoria.errors import (
    CANCELLED,
    DEADLINE_EXCEEDED,
    EFFECT_FAILED,
    INVALID_ARGUMENTS,
    MISSING_DONE,
    NODE_LOST,
    NON_ZERO_EXIT,
    NOT_EXECUTABLE,
    OUTPUT_LIMIT,
    OVERLOADED,
    PRECONDITION_FAILED,
    PROTOCOL_ERROR,
    QUOTA_EXCEEDED,
    TIMEOUT,
    TOOL_NOT_FOUND,
    ToolValidationError,
)
from narratoria.spelling import StructSpelled, spelled
from narratoria.tools import backoff as backoffs
from narratoria.tools import schema
from narratoria.tools.backoff import Backoff
from narratoria.tools.backoff_kinds import (
    ExponentialBackoff,
    FixedBackoff,
    JitteredBackoff,
    LinearBackoff,
    NoBackoff,
)
from narratoria.tools.deadline import LONGEST_DELAY
from narratoria.typed_values import convert

if TYPE_CHECKING:
    from narratoria.tools.tool import ToolError

__all__ = [
    "HOPELESS",
    "LONGEST_DELAY",
    "MAX_RETRIES",
    "Backoff",
    "ExponentialBackoff",
    "FixedBackoff",
    "JitteredBackoff",
    "LinearBackoff",
    "NoBackoff",
    "RetryData",
    "RetryPolicies",
    "RetryPolicy",
    "check_waits",
    "may_have_acted",
    "no_waiting",
    "pause",
    "plan_policy",
    "policy_from_data",
]

MAX_RETRIES: Final = 100

# --- whether to try again ------------------------------------------------------------------------------


@spelled()
class RetryPolicy(msgspec.Struct, metaclass=StructSpelled, frozen=True):
    """The retries of a tool. `retryable_errors=None` allows every code; an empty set allows none."""

    # 004 `RetryPolicy`.

    max_retries: int = 0
    backoff: Backoff = NoBackoff()
    retryable_errors: frozenset[str] | None = None
    non_retryable_errors: frozenset[str] = frozenset()
    should_retry: Callable[[ToolError, int], bool] | None = None
    retry_unrecoverable: bool = False  # 000 §13.4 rule 5: a plan retries whatever the tool says of its error
    final_verdicts: frozenset[str] = frozenset()  # codes of the runtime; a tool's own are not meant
    general: bool = (
        False  # nobody wrote it for this tool: calls that may have been carried out are not its business
    )

    def __post_init__(self) -> None:
        retries = self.max_retries
        if not isinstance(retries, int) or isinstance(retries, bool) or not 0 <= retries <= MAX_RETRIES:
            raise ToolValidationError(f"retry: max_retries must be 0 to {MAX_RETRIES}, got {retries!r}")
        if not isinstance(self.backoff, Backoff):
            raise ToolValidationError(
                f"retry: backoff must be a strategy such as FixedBackoff(1.0), got {self.backoff!r}"
            )
        if inspect.iscoroutinefunction(self.should_retry):
            raise ToolValidationError(
                "retry: should_retry is async, and is not awaited; make it a plain function"
            )
        if self.retryable_errors is not None:
            msgspec.structs.force_setattr(
                self, "retryable_errors", _codes("retryable_errors", self.retryable_errors)
            )
        msgspec.structs.force_setattr(
            self, "non_retryable_errors", _codes("non_retryable_errors", self.non_retryable_errors)
        )

    def allows(self, error: ToolError, attempt: int) -> bool:
        """Tell if a failed call may be retried; `attempt` counts the retries done so far, 0 at first.

        If an effect failed, the handler has done its work: it is run again only by a policy that names
        `EFFECT_FAILED`.
        """
        # 004 `isRetryable`, in its order; 004 never runs the handler again for a failed effect.
        if attempt >= self.max_retries:
            return False
        if self.should_retry is not None and not self.should_retry(error, attempt):
            return False
        if self.retryable_errors is not None and error.code not in self.retryable_errors:
            return False
        if self.retryable_errors is None and error.verdict == EFFECT_FAILED:
            return False
        if error.code in self.non_retryable_errors or error.verdict in self.final_verdicts:
            return False
        return error.recoverable or self.retry_unrecoverable


def check_waits(where: str, policy: RetryPolicy) -> None:
    """Refuse waits of a tool's policy that can only be meant in milliseconds. Those of a plan are in milliseconds,
    and are not checked.
    """
    backoffs.check_waits(where, policy.backoff, policy.max_retries)


def _codes(field: str, codes: Iterable[str]) -> frozenset[str]:
    if isinstance(codes, str):  # a lone string would become a set of letters
        raise ToolValidationError(f"retry: {field} is a set of error codes; write {{{codes!r}}}")
    return frozenset(codes)


class RetryPolicies:
    """The presets."""

    # 004.

    NONE: ClassVar = RetryPolicy()
    QUICK: ClassVar = RetryPolicy(3, FixedBackoff(1.0), frozenset({"TIMEOUT", "RATE_LIMIT", "NETWORK"}))
    STANDARD: ClassVar = RetryPolicy(
        3,
        ExponentialBackoff(1.0, max_delay=30.0, multiplier=2.0),
        frozenset({"TIMEOUT", "RATE_LIMIT", "NETWORK", "SERVER_ERROR"}),
    )
    AGGRESSIVE: ClassVar = RetryPolicy(
        5,
        JitteredBackoff(ExponentialBackoff(0.5, max_delay=60.0, multiplier=2.0), 0.1),
        frozenset({"TIMEOUT", "RATE_LIMIT", "NETWORK", "SERVER_ERROR", "LOCK"}),
    )

    @staticmethod
    def CUSTOM(policy: RetryPolicy) -> RetryPolicy:  # noqa: N802 - 004's name
        """Return the policy itself: the name of the specifications for one of your own."""
        return policy


# Verdicts of the runtime that another attempt with the same input cannot make better.
HOPELESS: Final = frozenset(
    {
        TOOL_NOT_FOUND,
        INVALID_ARGUMENTS,
        NOT_EXECUTABLE,
        PRECONDITION_FAILED,
        CANCELLED,
        DEADLINE_EXCEEDED,
        QUOTA_EXCEEDED,
        OVERLOADED,
    }
)


# Verdicts after which nobody knows what a call has done.
UNANSWERED: Final = frozenset({TIMEOUT, MISSING_DONE, NON_ZERO_EXIT, OUTPUT_LIMIT, PROTOCOL_ERROR, NODE_LOST})


def may_have_acted(error: ToolError) -> bool:
    """Tell if a failed call may have been carried out all the same: no answer came that says the contrary."""
    return not error.recoverable or error.verdict in UNANSWERED


def plan_policy(max_retries: int, backoff_ms: int, *, general: bool = False) -> RetryPolicy:
    """Return the policy of a plan: `maxRetries` retries, after `backoffMs × 2^(attempt-1)` each. It is `general` where
    the plan has none for the call.

    A wait is at most an hour, so that a plan cannot ask for a wait of years.
    """
    # 000 §13.4 rule 5, which sets no cap.
    base = backoff_ms / 1000
    return RetryPolicy(
        max_retries,
        ExponentialBackoff(base, max_delay=max(base, LONGEST_DELAY), multiplier=2.0),
        final_verdicts=HOPELESS,
        retry_unrecoverable=True,
        general=general,
    )


class RetryData(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The `retry` of a manifest. Waits are in seconds there too."""

    max_retries: Annotated[int, msgspec.Meta(ge=0, le=MAX_RETRIES)] = 0
    backoff: backoffs.AnyBackoff = NoBackoff()
    retryable_errors: list[str] | None = None
    non_retryable_errors: list[str] = []


def policy_from_data(data: Mapping[str, Any], *, name: str = "") -> RetryPolicy:
    """Return the policy a manifest describes; a `ToolValidationError` names the key that is wrong."""
    where = f"tool {name!r}: retry" if name else "retry"
    try:
        _check_seconds(data)
        parsed: RetryData = _parser()(data)
        return RetryPolicy(
            parsed.max_retries,
            parsed.backoff,
            None if parsed.retryable_errors is None else frozenset(parsed.retryable_errors),
            frozenset(parsed.non_retryable_errors),
        )
    except ToolValidationError as error:
        raise ToolValidationError(f"{where}: {error}") from None


def _check_seconds(data: Any) -> None:
    """Refuse milliseconds in their own words, before the schema says only that a number is too large."""
    try:
        given = convert(data, RetryData)
    except (msgspec.ValidationError, ToolValidationError):
        return  # the parser says what is wrong
    backoffs.check_waits("backoff", given.backoff, given.max_retries)


@functools.cache
def _parser() -> Callable[[Mapping[str, Any]], Any]:
    return schema.parser_for(RetryData)


# --- waiting -------------------------------------------------------------------------------------------

_waiting: contextvars.ContextVar[bool] = contextvars.ContextVar("narratoria_waiting", default=True)


@contextlib.contextmanager
def no_waiting() -> Iterator[None]:
    """Make `pause` return at once inside this block, and in tasks started there. For tests."""
    token = _waiting.set(False)
    try:
        yield
    finally:
        _waiting.reset(token)


async def pause(seconds: float) -> None:
    """Wait before a retry. Cancelling the task ends the wait at once."""
    # 004 `sleep(delay, signal)`.
    await asyncio.sleep(seconds if seconds > 0 and _waiting.get() else 0)
