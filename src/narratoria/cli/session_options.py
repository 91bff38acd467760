"""Sessions that commands open by name, and the options such commands share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import click

from narratoria.cli.completion import STORY
from narratoria.errors import NarratoriaError
from narratoria.session import Session
from narratoria.store.default_store import default_store
from narratoria.store.store import Store

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
story_option = click.option(
    "--story", type=STORY, metavar="STORY", help="Where the session's story is, if it moved."
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@contextmanager
def opened_store() -> Iterator[Store]:
    store = default_store()
    try:
        yield store
    finally:
        store.close()


def ask(question: str, refused: str) -> None:
    """Ask a yes/no question; anything but yes ends the command with `refused`."""
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):  # click makes the same of both
            raise
        click.echo(err=True)  # the question's line is still open
        raise NarratoriaError(f"{refused}, since nobody answered; --yes does not ask") from None
    if not agreed:
        raise NarratoriaError(refused)


@asynccontextmanager
async def saved_session(session_id: str | None) -> AsyncIterator[Session]:
    """Open the saved session of this id, made if there is none; without an id, one that is not saved."""
    if session_id is None:
        yield Session()
        return
    store = await asyncio.to_thread(default_store)
    try:
        known = {meta.id for meta in await asyncio.to_thread(store.list)}
        if session_id in known:
            journal = await asyncio.to_thread(store.open, session_id)
        else:
            journal = await asyncio.to_thread(store.create, Session(session_id, assets=store.assets))
        try:
            yield journal.session
        finally:
            await journal.close()
    finally:
        store.close()
