"""`narratoria serve`: a server for many players, one of several over one PostgreSQL database."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from narratoria.cli.engine_option import engine_option
from narratoria.cli.env_option import env_option
from narratoria.cli.narrators_option import narrators_option
from narratoria.cli.player_options import PlayerOptions, player_options
from narratoria.cli.serve_tokens import token
from narratoria.cli.skills_option import skills_option
from narratoria.cli.source_options import source_options
from narratoria.errors import NarratoriaError
from narratoria.extras import needed
from narratoria.kinds.foreign_sources import ToolSources

if TYPE_CHECKING:
    from narratoria.kinds.shares.shares import Shares


@click.group(invoke_without_command=True)
@click.option(
    "--store", metavar="ADDRESS", envvar="NARRATORIA_STORE", help="postgresql://… [NARRATORIA_STORE]"
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8321, show_default=True, help="0 picks any.")
@click.option(
    "--public-host", "hosts", multiple=True, metavar="NAME", help="A name that players call this server by."
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The operator's token, the same for all servers; else NARRATORIA_TOKEN, else, without accounts, one that is "
    "printed.",
)
@click.option(
    "--drain-seconds",
    type=click.FloatRange(0, 3600),
    default=20.0,
    show_default=True,
    help="For how long running turns may go on after SIGTERM; another server finishes the others.",
)
@click.option(
    "--idle-seconds",
    type=click.FloatRange(1, 86400),
    default=60.0,
    show_default=True,
    help="After how long without a request a session is closed; its viewers stay.",
)
@player_options
@click.option(
    "--shares",
    "shares_file",
    metavar="FILE",
    envvar="NARRATORIA_SHARES",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Limits of players, sessions and tools, in TOML. [NARRATORIA_SHARES]",
)
@narrators_option()
@engine_option
@env_option
@source_options
@skills_option
@click.pass_context
def serve(
    context: click.Context,
    store: str | None,
    host: str,
    port: int,
    hosts: tuple[str, ...],
    token_file: Path | None,
    drain_seconds: float,
    idle_seconds: float,
    players: PlayerOptions,
    shares_file: Path | None,
    narrators: tuple[str, ...],
    sources: ToolSources | None,
    skill_folders: tuple[Path, ...],
) -> int:
    """Serve stories to many players, beside other such servers over one PostgreSQL database."""
    context.obj = store
    if context.invoked_subcommand is not None:
        return 0
    try:
        from narratoria.web.accounts import Accounts
        from narratoria.web.shared_server import SharedServer, serve_shared, shared_store
        from narratoria.web.shared_token import SharedToken
    except ImportError:
        raise NarratoriaError(f"the server {needed('web')}") from None
    from narratoria.store.store import data_home

    home = data_home()
    database = shared_store(store or "", home)
    provider = players.provider()
    operator = _token(token_file, needed=lambda: provider is None and not database.players.any_token())
    return serve_shared(
        SharedServer(
            database,
            Accounts(database.players, SharedToken(operator) if operator else None, provider=provider),
            home,
            host=host,
            port=port,
            hosts={name.lower() for name in hosts} | players.hosts,
            drain_seconds=drain_seconds,
            idle_seconds=idle_seconds,
            narrators=narrators,
            sources=sources,
            skills=skill_folders,
            rates=players.rates(),
            shares=_shares(shares_file),
        )
    )


serve.add_command(token)


def _shares(file: Path | None) -> Shares:
    from narratoria.kinds.shares.limits import default_limits, read_limits
    from narratoria.kinds.shares.shares import Shares
    from narratoria.run.cores import usable_cores

    cores = usable_cores()
    return Shares(default_limits(cores) if file is None else read_limits(file, cores))


def _token(file: Path | None, *, needed: Callable[[], bool]) -> str:
    """Return the operator's token; one is made if there is no other way in."""
    token = file.read_text().strip() if file is not None else os.environ.get("NARRATORIA_TOKEN", "").strip()
    if file is not None and not token:
        raise NarratoriaError(f"{file} is empty; write a long random token into it")
    if not token and needed():
        token = secrets.token_urlsafe(24)
        click.echo(
            f"The token of this server alone is {token}; open its address with ?token={token}. "
            "Give all servers one token, with --token-file or NARRATORIA_TOKEN.",
            err=True,
        )
    return token
