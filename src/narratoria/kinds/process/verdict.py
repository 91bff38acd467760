"""The verdict on a process that has ended: the result of its call, or the failure."""

from __future__ import annotations

import re
from typing import Final

from narratoria.errors import NON_ZERO_EXIT, TIMEOUT, CallFailure
from narratoria.events import JsonObject, ToolErrorEvent
from narratoria.kinds.conversation import LAYOUT, Conversation
from narratoria.kinds.process.crash_lines import last_words
from narratoria.kinds.process.supervisor import ProcessOutcome
from narratoria.kinds.sandbox import Profile
from narratoria.tools.tool import ToolContext, ToolResult
from narratoria.unicode_text import escaped

_REFUSED: Final = re.compile(r"(?i)permission denied|operation not permitted|\beacces\b|\beperm\b")
_CLOSED: Final = "it had closed its standard output, and lived on"


def judge(
    name: str, outcome: ProcessOutcome, conversation: Conversation, context: ToolContext, profile: Profile
) -> ToolResult[JsonObject]:
    """Return the result of a process that has ended; a `CallFailure` says what is wrong with its ending."""
    conversation.report_after_done(name, outcome.after_done_line, outcome.after_done, outcome.after_done_head)
    details: JsonObject = {"exitCode": outcome.exit_code, "signal": outcome.signal}
    if outcome.stderr:
        details["stderr"] = outcome.stderr
    if outcome.failure is not None:
        raise CallFailure(outcome.failure.code, str(outcome.failure), details=details)
    if outcome.timed_out:
        raise CallFailure(
            TIMEOUT,
            f"{name}: no result within {context.time_limit:g} s; the process and its children were ended"
            + (f"; {_CLOSED}" if outcome.closed_stdout else ""),
            suggestions=[
                "allow more time: `timeout` in the manifest, `call --timeout`, `run --call-timeout`"
            ],
            details=details,
        )
    # 001 §5.3: a non-zero exit is a protocol-level failure, regardless of any emitted events, done included. A
    # process that had to be ended after `done` did not choose its exit status: `done` stands.
    if not outcome.lingered and (outcome.exit_code or outcome.signal is not None):
        text = _exit_text(name, outcome, conversation.error) + at_a_wall(profile, outcome.stderr)
        raise CallFailure(NON_ZERO_EXIT, text, details=details)
    return conversation.result(
        name,
        outcome.done,
        ended="the process ended",
        note=f"; {_CLOSED}" if outcome.closed_stdout else "",
        details=details,
    )


def at_a_wall(profile: Profile, stderr: str) -> str:
    """Say which walls a process had around it, if it failed for want of a permission."""
    if not profile.confines or not _REFUSED.search(stderr):
        return ""
    network = (
        "and the network, if its manifest has that permission" if profile.network == "asked" else "no network"
    )
    return (
        f"; it ran in the sandbox {profile.name!r}: its own files to read, TMPDIR to write, {network}. "
        f"`--sandbox trusted` takes the walls down"
    )


def _exit_text(name: str, outcome: ProcessOutcome, error: ToolErrorEvent | None) -> str:
    how = (
        f"was ended by signal {outcome.signal}"
        if outcome.signal
        else f"exited with status {outcome.exit_code}"
    )
    text = f"{name}: the process {how}"
    if outcome.done is not None:
        text += f" after `done` with ok: {str(outcome.done.ok).lower()}; exit 0 when the protocol was kept"
    if error is not None:
        text += f"; it reported {error.error_code}: {error.error_message}"
    last = last_words(outcome.stderr)
    return escaped(f"{text}; {last}" if last else text, keep=LAYOUT)
