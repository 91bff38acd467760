"""The exceptions of the package, and the codes of failures that travel as data.

Most failures are data: a `ToolResult` with an `error`. The classes here are for what must interrupt: a
mistake in a definition, a document that cannot be used, a deadline that ends an evaluation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeAlias

TOOL_NOT_FOUND: Final = "TOOL_NOT_FOUND"
INVALID_ARGUMENTS: Final = "INVALID_ARGUMENTS"
PRECONDITION_FAILED: Final = "PRECONDITION_FAILED"
DEADLINE_EXCEEDED: Final = "DEADLINE_EXCEEDED"
TIMEOUT: Final = "TIMEOUT"
EXECUTION_FAILED: Final = "EXECUTION_FAILED"
EFFECT_FAILED: Final = "EFFECT_FAILED"
CANCELLED: Final = "CANCELLED"
NO_BRANCH_MATCHED: Final = "NO_BRANCH_MATCHED"
PROTOCOL_ERROR: Final = "PROTOCOL_ERROR"
MISSING_DONE: Final = "MISSING_DONE"
NON_ZERO_EXIT: Final = "NON_ZERO_EXIT"
NOT_EXECUTABLE: Final = "NOT_EXECUTABLE"
OUTPUT_LIMIT: Final = "OUTPUT_LIMIT"
NODE_LOST: Final = "NODE_LOST"
REFUSED: Final = "REFUSED"
QUOTA_EXCEEDED: Final = "QUOTA_EXCEEDED"
OVERLOADED: Final = "OVERLOADED"

# Who says why a call failed. A tool's own `errorCode` may read like one of the codes above and means none of them.
ErrorSource: TypeAlias = Literal["runtime", "tool"]


def describe(error: BaseException) -> str:
    """Return an exception as text, even if its own `__str__` raises."""
    try:
        text = str(error)
    except Exception as another:  # foreign code again: its __str__ may raise anything
        text = f"its text cannot be read, {type(another).__name__}"
    return f"{type(error).__name__}: {text}{advice(error)}" if text else type(error).__name__


def unwritten(owner: object, method: str) -> NotImplementedError:
    """Return the error for a method that a subclass must write and did not."""
    return NotImplementedError(f"{type(owner).__name__} has no {method}(): write it in the class")


def advice(error: object) -> str:
    """Return a hint for an exception of foreign code whose text lacks one, or ""."""
    # 004 awaits its memory, so a handler written from it fails with "can't be used in 'await' expression".
    if isinstance(error, TypeError) and _AWAITED.search(str(error)):
        return "; memory, state and resources are read and written without await"
    return ""


_AWAITED: Final = re.compile(r"can't be (used in 'await' expression|awaited)")


class NarratoriaError(Exception):
    """The root of all exceptions this package raises on purpose."""


class NarratorUnavailable(NarratoriaError):
    """A narrator cannot be made here: a package, a file or a setting is missing."""


class ToolValidationError(NarratoriaError):
    """A handler found its arguments unusable, or a tool is defined wrongly."""


class ApprovalNotOpen(NarratoriaError):
    """An answer to a question that is not open; `known` if it was asked in this session."""

    def __init__(self, id: str, *, known: bool) -> None:  # noqa: A002 - of the question
        self.known = known
        why = (
            "is not open: it was answered, or its turn has ended"
            if known
            else "was not asked in this session"
        )
        super().__init__(f"the question {id!r} {why}; the open ones are listed as pending")


class ArgumentsInvalid(ToolValidationError):
    """Arguments do not fit the tool's parameters; `problems` names each path."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class ToolFailure(NarratoriaError):
    """Raised inside a handler to fail the call with a code of the tool's own."""

    source: ClassVar[ErrorSource] = "tool"

    def __init__(
        self,
        code: str,
        message: str,
        *,
        recoverable: bool = True,
        suggestions: Sequence[str] = (),
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.recoverable = recoverable
        self.suggestions = (suggestions,) if isinstance(suggestions, str) else tuple(suggestions)
        self.details = dict(details) if details else None

    def __reduce__(self) -> tuple[Any, ...]:
        """It is pickled where a function fails on another machine."""
        more = {"recoverable": self.recoverable, "suggestions": self.suggestions, "details": self.details}
        return _unpickled, (type(self), self.code, self.message, more)


def _unpickled(kind: type[ToolFailure], code: str, message: str, more: Mapping[str, Any]) -> ToolFailure:
    return kind(code, message, **more)


class CallFailure(ToolFailure):
    """The runtime's own verdict on a call. A code that a tool chose itself travels in a plain `ToolFailure`."""

    source = "runtime"


class PromptError(NarratoriaError):
    """The root of errors about prompts."""


class PromptValidationError(PromptError):
    """A prompt is built wrongly: duplicate tools, a bad template, an unknown key."""


class PromptEvaluationError(PromptError):
    """An evaluation cannot go on. The pipeline re-raises it."""

    # 002, failure table.


class VisibilityExpansionRequired(PromptError):
    """The model asked to see sections that were summarised. The pipeline re-raises it."""

    # 002, failure table.

    def __init__(self, message: str, *, section_keys: Sequence[str] = (), reason: str = "") -> None:
        super().__init__(message)
        self.section_keys = tuple(section_keys)
        self.reason = reason


class DeadlineExceededError(NarratoriaError):
    """The deadline of the whole evaluation has passed."""


class BudgetExceededError(NarratoriaError):
    """A budget of tokens, calls or cost is used up."""


class AssetRefused(NarratoriaError):
    """An asset cannot be registered; the call that offered it goes on."""


class PlanRejected(NarratoriaError):
    """A plan cannot be run. `problems` lists every reason with its JSON path; `plan_id` is its `requestId`, if any,
    and `plan` the `PlanDocument`, where it could be read at all.
    """

    def __init__(
        self, problems: Sequence[str], *, plan_id: str | None = None, plan: object | None = None
    ) -> None:
        self.problems = tuple(problems)
        self.plan_id = plan_id
        self.plan = plan
        super().__init__("plan rejected: " + "; ".join(self.problems))


@dataclass(frozen=True, slots=True)
class StoryProblem:
    """A mistake in a file of a story. A warning leaves the story playable, an error does not."""

    file: Path
    line: int | None
    message: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        return f"{self.place()}: {self.message}"

    def place(self, root: Path | None = None) -> str:
        """Return the file and the line; the file as seen from the folder `root`, if it lies there."""
        file = self.file.relative_to(root) if root and self.file.is_relative_to(root) else self.file
        return f"{file}:{self.line}" if self.line else f"{file}"


class StoryInvalid(NarratoriaError):
    """A story cannot be played. The message is the first mistake, with its file, line and key."""

    def __init__(self, message: str, problems: Sequence[StoryProblem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)
        """Every mistake that was found, in the files or folders that were read."""

    @classmethod
    def of(cls, problems: Sequence[StoryProblem]) -> StoryInvalid:
        """Return the error for these mistakes, the first of which is an error."""
        more = sum(one.severity == "error" for one in problems) - 1
        rest = f" (and {more} more mistake{'s' if more > 1 else ''}: narratoria check)" if more > 0 else ""
        return cls(f"{problems[0]}{rest}", problems)


class JournalError(NarratoriaError):
    """The journal cannot be read or written; the message says what was kept."""


class SessionBusy(NarratoriaError):
    """Another turn of the same session is running."""


class SessionElsewhere(SessionBusy):
    """Another server has the session; `server` is its id in the database."""

    def __init__(self, message: str, server: str) -> None:
        super().__init__(message)
        self.server = server


class LeaseLost(JournalError):
    """Another process has taken the session over: this one writes nothing more to it."""
