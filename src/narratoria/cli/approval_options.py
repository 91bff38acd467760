"""Questions to the person at the terminal, and the options `--yes` and `--approve`, which answer them beforehand."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, TypeVar

import click
import msgspec
from rich.console import Console

from narratoria.cli.output import console, styled
from narratoria.cli.stdin_lines import answer_to
from narratoria.errors import ArgumentsInvalid
from narratoria.session.approvals import NOBODY, ApprovalAnswer, ApprovalRequest
from narratoria.strict_json import decode

Command = TypeVar("Command", bound=Callable[..., Any])
BY: Final = "terminal"


def approve_option(command: Command) -> Command:
    """Let a person approve the calls of a tool before they are asked about."""
    return click.option("--approve", multiple=True, metavar="TOOL", help="Approve the calls of this tool.")(
        command
    )


def approval_options(command: Command) -> Command:
    """Let a person answer questions before they are asked."""
    command = click.option("--yes", is_flag=True, help="Approve every call that asks for approval.")(command)
    return approve_option(command)


class TerminalApprover:
    """Asks at the terminal, one question after the other. `quiet` stops the displays that are drawn again and again.

    Where there is no terminal it refuses, and says what to do.
    """

    def __init__(
        self,
        *,
        yes: bool = False,
        approve: tuple[str, ...] = (),
        quiet: Callable[[], AbstractContextManager[object]] = nullcontext,
        says_refusals: bool = False,
    ) -> None:
        self.yes = yes
        self.approve = approve
        self.quiet = quiet
        self.says_refusals = says_refusals  # in a game nobody else says that it refused
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer:
        if self.yes:
            return ApprovalAnswer.approve(by="--yes")
        if request.tool.name in self.approve:
            return ApprovalAnswer.approve(by="--approve")
        out = _terminal()
        if out is None:
            name = request.tool.name
            reason = (
                "nobody can be asked, since this is no terminal; to approve such calls, add "
                f"--approve {name} or --yes"
            )
            if self.says_refusals:
                click.echo(f"{name} was refused: {reason}", err=True)
            return ApprovalAnswer.refuse(reason, by=NOBODY)
        async with self._one_at_a_time:
            with self.quiet():
                return await _ask(out, request)


def _terminal() -> Console | None:
    """Return the console on which a person sees a question and can answer it."""
    if sys.stdin is None or not sys.stdin.isatty():
        return None
    return next((one for one in (console(stderr=True), console()) if one.is_terminal), None)


async def _ask(out: Console, request: ApprovalRequest) -> ApprovalAnswer:
    shown = msgspec.json.encode(request.input).decode()
    out.print(styled(("? ", "bold yellow"), (request.tool.name, "bold"), (f"  {request.reason}", "dim")))
    out.print(styled((f"  {shown}", "")))
    while True:
        said = await _read(out, "  approve, edit or refuse? [a/e/r] ")
        if said is None:
            return ApprovalAnswer.refuse("nobody answered", by=BY)
        word = said.strip().lower()
        if word in ("a", "y", "yes", "approve"):
            return ApprovalAnswer.approve(by=BY)
        if word in ("r", "n", "no", "refuse"):
            reason = await _read(out, "  why? ")
            return ApprovalAnswer.refuse((reason or "").strip(), by=BY)
        if word in ("e", "edit"):
            edited = await _edited(out, request, shown)
            if edited is not None:
                return ApprovalAnswer.edit(edited, by=BY)


async def _edited(out: Console, request: ApprovalRequest, shown: str) -> dict[str, Any] | None:
    """Read another input; None if the person leaves the line empty."""
    while True:
        said = await _read(out, f"  the input as JSON, for example {shown}\n  > ")
        if said is None or not said.strip():
            return None
        try:
            edited = decode(said)
            if not isinstance(edited, dict):
                raise ValueError("it must be an object")
            request.check(edited)
            return edited
        except (ArgumentsInvalid, ValueError, RecursionError) as error:
            out.print(styled((f"  {error}", "yellow")))


async def _read(out: Console, question: str) -> str | None:
    return await answer_to(lambda: out.print(styled((question, "cyan")), end=""))
