"""`narratoria serve token`: the tokens of the players of a shared server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from narratoria.errors import NarratoriaError
from narratoria.extras import needed
from narratoria.unicode_text import as_one_line

if TYPE_CHECKING:
    from narratoria.store.postgres_players import Players, Role

DAY: Final = 24 * 3600
LONGEST_NAME: Final = 80
_store = click.option(
    "--store", metavar="ADDRESS", envvar="NARRATORIA_STORE", help="postgresql://… [NARRATORIA_STORE]"
)


@click.group()
def token() -> None:
    """Make, list and revoke the tokens by which players sign in."""


@token.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(["player", "author", "operator"]),
    default="player",
    show_default=True,
    help="An author may also run calls again and change what tools may do; an operator may do everything.",
)
@click.option("--days", type=click.FloatRange(0, min_open=True), help="End it after so many days.")
@_store
@click.pass_context
def make(context: click.Context, name: str, role: Role, days: float | None, store: str | None) -> int:
    """Make a token for the player NAME and print it. It is shown this once.

    A name is one player: a second token for it is another way in for the same.
    """
    name = as_one_line(name)
    if not name or len(name) > LONGEST_NAME:
        raise click.UsageError(f"a name has 1 to {LONGEST_NAME} letters in one line")
    with _players(context, store) as players:
        click.echo(players.make_token(name, role, None if days is None else days * DAY))
    click.echo(f"The token of {name} ({role}), shown this once. Open the server with ?token=…", err=True)
    return 0


@token.command(name="list")
@_store
@click.pass_context
def list_tokens(context: click.Context, store: str | None) -> int:
    """List the tokens: id, role, when each was made and ends (UTC), and the name."""
    with _players(context, store) as players:
        for one in players.tokens():
            click.echo(f"{one.id}  {one.role:8}  {one.made}  {one.expires or 'never ends':16}  {one.name}")
    return 0


@token.command()
@click.argument("token_id", metavar="ID")
@_store
@click.pass_context
def revoke(context: click.Context, token_id: str, store: str | None) -> int:
    """End a token and every browser that came in by it, within seconds. The player's sessions stay."""
    with _players(context, store) as players:
        players.revoke_token(token_id)
    return 0


@contextlib.contextmanager
def _players(context: click.Context, store: str | None) -> Iterator[Players]:
    try:
        from narratoria.web.shared_server import shared_store
    except ImportError:
        raise NarratoriaError(f"the server {needed('web')}") from None
    from narratoria.store.store import data_home

    with contextlib.closing(shared_store(store or context.obj or "", data_home())) as opened:
        yield opened.players
