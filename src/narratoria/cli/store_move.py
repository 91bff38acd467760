"""`narratoria sessions move`: all sessions to another store, checked."""

from __future__ import annotations

import os
from contextlib import closing

import click

from narratoria.cli.output import console, print_json, styled
from narratoria.cli.session_options import as_json_option, counted
from narratoria.store.default_store import STORES, open_store
from narratoria.store.moving import MovedSession, move_store


@click.command(name="move")
@click.option("--to", "target", required=True, metavar="STORE", help="postgresql://…, or a file.")
@click.option(
    "--from",
    "source",
    metavar="STORE",
    help="The store they are in: NARRATORIA_STORE if that is a file, else the home's.",
)
@as_json_option
def move(target: str, source: str | None, as_json: bool) -> None:
    """Copy all sessions and their assets to another store, and compare them there; the first store stays as it is."""
    if source is None:
        named = os.environ.get("NARRATORIA_STORE", "")
        source = "" if named.partition("://")[0] in STORES else named
    if source == target:
        raise click.UsageError("--to and --from name the same store")
    with closing(open_store(source)) as old, closing(open_store(target)) as new:
        moved = move_store(old, new, lambda one: None if as_json else _say(one))
    if as_json:
        print_json(moved)
        return
    records = sum(one.records for one in moved)
    console().print(
        styled(
            ("✓ ", "green"),
            (f"{counted(len(moved), 'session')} of {records:,} records are the same in both. ", ""),
            ("Set NARRATORIA_STORE to the new store; the old one was not changed.", "dim"),
        )
    )


def _say(one: MovedSession) -> None:
    lost = f", {counted(one.missing, 'asset')} missing before" if one.missing else ""
    was = "" if one.copied else "  was there already"
    console().print(
        styled(
            (one.id[:12], "cyan"),
            (f"  {counted(one.records, 'record')}, {counted(one.assets, 'asset')}{lost}{was}", ""),
            (f"  sha256 {one.sha256[:16]}…", "dim"),
        )
    )
