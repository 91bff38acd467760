"""The account of a turn for `/why`: who told it, who was passed over and why, and what its calls came to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from narratoria.cli.narration_view import clipped
from narratoria.events import ModelAsked, NarratorChosen, RecalledMemory
from narratoria.session import Record
from narratoria.store.fold import fold_turn
from narratoria.store.session_views import CallView
from narratoria.unicode_text import escaped


def account(records: Sequence[Record]) -> tuple[list[str], dict[str, Any]]:
    """Return the account as lines for a person, and as data."""
    turn = fold_turn(records)
    passed = {
        name: why
        for record in records
        if isinstance(record.event, NarratorChosen)
        for name, why in record.event.passed_over.items()
    }
    lines = [f"turn {turn.turn}: {turn.prompt}" if turn.prompt else f"turn {turn.turn}"]
    lines.append(f"  told by {turn.narrator}" if turn.narrator else "  told by nobody")
    lines += [f"  {name} passed: {clipped(why)}" for name, why in passed.items() if name != turn.narrator]
    lines += [f"  asked {_asked(one)}" for one in turn.asked]
    lines += [f"  recalled {_recalled(one)}" for one in turn.recalled]
    for call in turn.calls:
        lines += _call(call)
    lines += [f"  problem: {clipped(one)}" for one in dict.fromkeys(turn.problems)]
    lines += [f"  notice: {one.message}" for one in turn.notices if one.level != "info"]
    calls = [
        {"tool": one.tool, "state": one.state, "seconds": one.duration, "error": one.error}
        for one in turn.calls
    ]
    data = {
        "turn": turn.turn,
        "narrator": turn.narrator,
        "passedOver": passed,
        "problems": turn.problems,
        "asked": msgspec.to_builtins(turn.asked),
        "recalled": msgspec.to_builtins(turn.recalled),
        "calls": calls,
    }
    return lines, data


def _asked(one: ModelAsked) -> str:
    about = "about " if one.estimated else ""
    cost = f", ${one.cost:.2g}" if one.cost else ""
    tokens = f"{about}{one.input_tokens:,} tokens read, {one.output_tokens:,} written"
    return f"{escaped(one.model) or 'a model'}: {tokens}{cost}, {one.seconds:.1f} s"


def _recalled(one: RecalledMemory) -> str:
    whys = {"note": "the author's note", "pinned": "pinned", "always": "always", "state": "as things stand"}
    why = whys.get(one.why, "near in meaning")
    if one.why == "keyword":
        why = f"“{escaped(one.word)}” in {'the narration before' if one.earlier else 'the prompt'}"
    return f"({why}) {clipped(one.text)}"


def _call(call: CallView) -> list[str]:
    tries = f", attempt {len(call.attempts)}" if len(call.attempts) > 1 else ""
    lines = [f"  called {call.tool}: {call.state}{tries}, {call.duration * 1000:.0f} ms"]
    errors = dict.fromkeys(one.error for one in call.attempts if one.error)
    if call.error:
        errors.setdefault(call.error)
    return lines + [f"    {clipped(str(error))}" for error in errors]
