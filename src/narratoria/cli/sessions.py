"""`narratoria sessions`: list, show, export, import and delete saved sessions."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from narratoria.cli import session_moves as moves
from narratoria.cli.completion import SESSION
from narratoria.cli.output import console, print_json, printable, styled
from narratoria.cli.session_call import call_
from narratoria.cli.session_options import as_json_option, ask, counted, opened_store, yes_option
from narratoria.cli.store_move import move
from narratoria.errors import JournalError
from narratoria.store.fold import fold
from narratoria.store.portable import SUFFIX, export_session, import_session, replacing
from narratoria.store.retention import prune, select
from narratoria.store.salvage.salvage import Fate, SavedSession, salvage
from narratoria.store.salvage.verification import CheckedSession, verify
from narratoria.store.session_views import SessionView
from narratoria.store.store import SessionMeta, is_plain_id
from narratoria.store.transcripts import TRANSCRIPTS

_FATES: Final[dict[Fate, str]] = {"whole": "saved whole", "partly": "saved in part", "lost": "lost"}


@click.group()
def sessions() -> None:
    """Saved sessions: list, show, export, import, undo and more."""


for _command in (call_, move, moves.undo_, moves.redo_, moves.retry_, moves.branch, moves.checkpoint_):
    sessions.add_command(_command)


@sessions.command(name="list")
@as_json_option
def list_(as_json: bool) -> None:
    """List all sessions, the one played last first."""
    with opened_store() as store:
        metas = [meta for meta in store.list() if meta.begun]
    if as_json:
        print_json(metas)
        return
    out = console()
    if not metas:
        out.print("no sessions yet; `narratoria play` begins one")
    for meta in metas:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(meta.updated))
        title = meta.title or meta.story or "untitled"
        branched = f"  from {meta.parent[:8]} at turn {meta.parent_turn}" if meta.parent else ""
        turns = counted(meta.turns, "turn")
        damaged = "  damaged: `narratoria sessions verify` says what" if meta.damaged else ""
        out.print(
            styled(
                (meta.id[:12], "cyan"),
                (f"  {when}  ", "dim"),
                (title, ""),
                (f"  {turns}{branched}", "dim"),
                (damaged, "yellow"),
            )
        )


@sessions.command()
@click.argument("session", type=SESSION)
@as_json_option
def show(session: str, as_json: bool) -> None:
    """Show the prompts, calls and narration of SESSION (an id, or the beginning of one)."""
    with opened_store() as store:
        meta = store.find(session)
        view = fold(store.read(meta.id))
        world = store.restore(meta.id)
    if as_json:
        print_json(session_document(meta, view, world.snapshot()))
        return
    out = console()
    out.print(styled((meta.title or meta.story or meta.id, "bold magenta"), (f"  {meta.id}", "dim")))
    if view.lost:
        out.print(styled((f"  {counted(view.lost, 'record')} of it were lost to damage", "yellow")))
    for turn in view.turns:
        mark = " (undone)" if turn.undone else " (not finished)" if turn.outcome == "open" else ""
        out.print(styled((f"\n{turn.turn} ", "cyan"), (turn.prompt or turn.origin, "bold"), (mark, "yellow")))
        for call in turn.calls:
            tries = f" after {len(call.attempts)} attempts" if len(call.attempts) > 1 else ""
            why = f" {call.error}" if call.error else ""
            out.print(styled((f"  · {call.tool} {call.state}{tries}", "dim"), (why, "red")))
        out.print(printable(turn.narrative))
        if view.told and turn is view.told[-1]:  # what was undone after it offers nothing any more
            for number, choice in enumerate(world.choices, 1):
                out.print(styled((f"  {number} ", "cyan"), (choice, "")))


def session_document(meta: SessionMeta, view: SessionView, state: dict[str, Any]) -> dict[str, Any]:
    """Return the document that `show --json` prints: `turns` are those that count, `undone` those taken back."""
    turns: list[dict[str, Any]] = msgspec.to_builtins(view.told)
    return {
        **msgspec.to_builtins(meta),
        "state": state,
        "turns": turns,
        "undone": msgspec.to_builtins([turn for turn in view.turns if turn.undone]),
        "open": next((turn.turn for turn in view.turns if turn.outcome == "open"), None),
        "calls": msgspec.to_builtins(view.calls),
        "checkpoints": view.checkpoints,
        "lost": view.lost,
        "assets": list(dict.fromkeys(asset.hash for asset in view.assets)),
    }


@sessions.command()
@click.argument("session", type=SESSION)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--format",
    "kind",
    type=click.Choice(["narratoria", *TRANSCRIPTS]),
    help="A file to import again (the default), or a transcript. FILE's ending decides if not given.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@as_json_option
def export(session: str, file: Path | None, kind: str | None, force: bool, as_json: bool) -> None:
    """Write SESSION to FILE: everything, or a transcript to read (.md, .html, .epub). `-` is standard output."""
    with opened_store() as store:
        meta = store.find(session)
        endings = {one.ending: name for name, one in TRANSCRIPTS.items()}
        kind = kind or endings.get(file.suffix if file else "", "narratoria")
        ending = TRANSCRIPTS[kind].ending if kind in TRANSCRIPTS else SUFFIX
        target = file or Path(f"{_file_name(meta)}{ending}")
        if str(target) != "-" and target.exists() and not force:
            raise JournalError(f"{target} exists already; --force overwrites it")
        missing: list[str] = []
        if kind == "narratoria":
            missing = export_session(
                store, meta.id, sys.stdout.buffer if str(target) == "-" else target
            ).missing
        else:
            view = fold(store.read(meta.id))
            _write(target, TRANSCRIPTS[kind].make(view, store.assets))
    for digest in missing:
        click.echo(f"asset {digest} is gone or damaged in the store, and is not in the file", err=True)
    if as_json:
        print_json({"session": meta.id, "file": str(target), "format": kind, "missing": missing})
    elif str(target) != "-":
        console().print(styled(("✓ ", "green"), (str(target), "")))


def _file_name(meta: SessionMeta) -> str:
    """Return a file name for an export. A story's id may come from an imported file and must not choose the folder."""
    story = meta.story if meta.story and is_plain_id(meta.story) else "session"
    return f"{story}-{meta.id[:8]}" if is_plain_id(meta.id) else story


def _write(target: Path, content: bytes) -> None:
    if str(target) == "-":
        click.echo(content, nl=False)
        return
    with replacing(target) as file:
        file.write(content)


@sessions.command(name="import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@as_json_option
def import_(file: Path, as_json: bool) -> None:
    """Take in a FILE that `export` wrote. Every hash in it is checked."""
    with opened_store() as store:
        meta = import_session(store, file)
    if as_json:
        print_json(meta)
    else:
        console().print(styled(("✓ ", "green"), (meta.title or "session", ""), (f"  {meta.id}", "cyan")))


@sessions.command()
@click.argument("session", type=SESSION)
@yes_option
@as_json_option
def delete(session: str, yes: bool, as_json: bool) -> None:
    """Forget SESSION. Branches made from it keep the past they share."""
    with opened_store() as store:
        meta = store.find(session)
        if not yes:
            ask(
                f"Delete {meta.title or meta.id!r} ({counted(meta.turns, 'turn')})? This cannot be undone",
                "nothing was deleted",
            )
        store.delete(meta.id)
    if as_json:
        print_json({"deleted": meta.id})
    else:
        console().print(styled(("✓ ", "green"), (f"deleted {meta.id}", "")))


@sessions.command(name="prune")
@click.option(
    "--older-than", type=click.FloatRange(0), metavar="DAYS", help="Sessions not played for so many days."
)
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Spare the newest N.")
@click.option("--dry-run", is_flag=True, help="List what would be deleted, and delete nothing.")
@yes_option
@as_json_option
def prune_(older_than: float | None, keep: int | None, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Delete old sessions, and assets no session refers to. Without options only such assets go."""
    with opened_store() as store:
        chosen = select(store, older_than=older_than, keep=keep)
        if chosen and not yes and not dry_run:
            for meta in chosen:
                click.echo(f"{meta.id[:12]}  {meta.title or meta.story or 'untitled'}", err=True)
            ask(f"Delete {counted(len(chosen), 'session')}? This cannot be undone", "nothing was deleted")
        done = prune(store, chosen, dry_run=dry_run)
    if as_json:
        print_json({"sessions": [one.id for one in done.sessions], "busy": [one.id for one in done.busy],
                    "assets": done.assets, "bytes": done.bytes, "settling": done.settling,
                    "shared": done.shared, "sharedWith": [str(one) for one in done.others],
                    "dryRun": dry_run})  # fmt: skip
    else:
        for meta in done.busy:
            click.echo(f"{meta.id[:12]} is being played and was spared", err=True)
        verb = "would go" if dry_run else "deleted"
        console().print(
            f"{counted(len(done.sessions), 'session')}, {counted(done.assets, 'asset')} ({done.bytes:,} bytes) {verb}"
        )
        if done.shared:
            others = ", ".join(str(one) for one in done.others)
            console().print(
                f"{counted(done.shared, 'asset')} more that no session here refers to stay: {others} has its assets in "
                f"the same folder, and they may be its own"
            )
        if done.settling:
            console().print(
                f"{counted(done.settling, 'asset')} more that no session refers to: those written in the last hour "
                f"stay, since a turn that is being taken may be about to refer to them"
            )


@sessions.command(name="verify")
@click.argument("session", type=SESSION, required=False)
@as_json_option
def verify_(session: str | None, as_json: bool) -> None:
    """Read every record, snapshot and asset of SESSION, or of all, and check it against its checksum."""
    with opened_store() as store:
        faults = [] if session is not None else store.table_faults()
        metas = store.list() if session is None else [store.find(session)]
        found = list(verify(store, metas))
        remedy = store.remedy
    sound = not faults and all(one.sound for one in found)
    if as_json:
        print_json({"sound": sound, "faults": faults, "sessions": [_check_document(one) for one in found]})
    else:
        for fault in faults:
            click.echo(f"the database: {fault}", err=True)
        for one in found:
            _say_what_is_checked(one)
        if sound:
            console().print(f"{counted(len(found), 'session')}: everything is as it was written")
        else:
            click.echo(f"damage was found. {remedy}", err=True)
    if not sound:
        raise SystemExit(1)


def _check_document(one: CheckedSession) -> dict[str, Any]:
    return {
        "id": one.meta.id,
        "sound": one.sound,
        "records": one.records,
        "unchecked": one.unchecked,
        "lost": one.lost,
        "faults": one.faults,
        "missingAssets": one.missing,
        "alteredAssets": one.altered,
    }


def _say_what_is_checked(one: CheckedSession) -> None:
    mark = ("✓ ", "green") if one.sound else ("✗ ", "red")
    notes = [counted(one.records, "record")]
    if one.unchecked:
        notes.append(f"{one.unchecked} of them from before there were checksums")
    if one.lost:
        notes.append(f"{one.lost} were lost to damage before")
    if one.missing:
        notes.append(f"{counted(len(one.missing), 'asset')} without content")
    title = one.meta.title or one.meta.story or "untitled"
    console().print(styled(mark, (one.meta.id[:12], "cyan"), (f"  {title}: {', '.join(notes)}", "")))
    for fault in (*one.faults, *(f"asset {digest} is not what was stored" for digest in one.altered)):
        click.echo(f"  {fault}", err=True)


@sessions.command(name="salvage")
@as_json_option
def salvage_(as_json: bool) -> None:
    """Replace a damaged database by a new one with everything that can be read; the damaged one is kept."""
    with opened_store() as store:
        path = store.database_file
        if path is None:
            raise JournalError(
                "only a database file can be salvaged; for a database server use its own backups"
            )
    outcome = salvage(path)
    if as_json:
        print_json(
            {
                "damaged": str(outcome.damaged) if outcome.damaged is not None else None,
                "sessions": [
                    {
                        "id": one.id,
                        "fate": one.fate,
                        "turns": one.turns,
                        "records": one.records,
                        "expected": one.expected,
                        "lostBefore": one.lost_before,
                        "doubtful": one.doubtful,
                        "whole": one.whole,
                    }
                    for one in outcome.sessions
                ],
            }
        )
        return
    out = console()
    if outcome.damaged is None:
        cut = [one for one in outcome.sessions if not one.whole]
        for one in cut:
            _say_what_is_saved(one)
        whole = counted(len(outcome.sessions) - len(cut), "session")
        out.print(f"nothing is damaged: {whole} can be read whole; {path} stays as it is")
        return
    for one in outcome.sessions:
        _say_what_is_saved(one)
    fates = [one.fate for one in outcome.sessions]
    told = ", ".join(f"{fates.count(fate)} {words}" for fate, words in _FATES.items() if fate in fates)
    out.print(f"of {counted(len(fates), 'session')} {told}; the damaged file is {outcome.damaged}")


def _say_what_is_saved(one: SavedSession) -> None:
    cut = f", {one.records} of {one.expected} records" if not one.readable else ""
    before = f"; {counted(one.lost_before, 'record')} were lost before" if one.lost_before else ""
    doubt = "; something in it differs from its checksum" if one.doubtful and one.readable else ""
    how = {
        "whole": "whole",
        "partly": f"{counted(one.turns, 'turn')}{cut}{before}{doubt}",
        "lost": "lost: no turn of it can be read",
    }[one.fate]
    console().print(styled((one.id[:12], "cyan"), (f"  {one.title or 'untitled'}: {how}", "")))
