"""Deletion of old sessions on request, and of assets that no session refers to."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from narratoria.errors import SessionBusy
from narratoria.store.store import SessionMeta, SessionUnknown, Store

DAY: Final = 86_400.0
SETTLING: Final = 3600.0  # a file this young may belong to a turn that has not recorded it yet


@dataclass(slots=True)
class Pruned:
    sessions: list[SessionMeta] = field(default_factory=list)
    busy: list[SessionMeta] = field(default_factory=list)  # being played, so spared
    assets: int = 0
    bytes: int = 0
    settling: int = 0  # assets nobody refers to, too young to be collected
    shared: int = 0  # assets no session here refers to, in a folder that others use too
    others: list[Path] = field(default_factory=list)  # the databases that use it


def select(
    store: Store, *, older_than: float | None = None, keep: int | None = None, now: float | None = None
) -> list[SessionMeta]:
    """Return the sessions not touched for `older_than` days, beyond the newest `keep`. Neither given: none."""
    if older_than is None and keep is None:
        return []
    now = time.time() if now is None else now
    candidates = store.list()[keep or 0 :]
    if older_than is None:
        return candidates
    return [meta for meta in candidates if meta.updated < now - older_than * DAY]


def prune(
    store: Store, sessions: Collection[SessionMeta] = (), *, now: float | None = None, dry_run: bool = False
) -> Pruned:
    """Delete these sessions but those being played, then the assets that no session refers to. Where other databases
    keep theirs in the same folder, no asset goes: it may be theirs.
    """
    done = Pruned(list(sessions) if dry_run else [])
    now = time.time() if now is None else now
    if not dry_run:
        _delete(store, sessions, done)
        _delete(
            store, [one for one in store.list() if not one.begun and one.updated < now - SETTLING], Pruned()
        )
        store.sweep()
        store.assets.sweep(now - SETTLING)
    referred = store.asset_hashes()
    if dry_run:
        gone = {digest for meta in sessions for digest in store.asset_hashes(meta.id)}
        kept = {meta.id for meta in store.list()} - {meta.id for meta in sessions}
        referred -= gone - {digest for one in kept for digest in store.asset_hashes(one)}
    done.others = store.assets.other_users()
    for digest, size, came in list(store.assets.held()):
        if digest in referred:
            continue
        if came > now - SETTLING:
            done.settling += 1
            continue
        if done.others:
            done.shared += 1
            continue
        done.assets += 1
        done.bytes += size
        if not dry_run:
            store.assets.discard(digest)
    return done


def _delete(store: Store, sessions: Collection[SessionMeta], done: Pruned) -> None:
    for meta in sessions:
        try:
            store.delete(meta.id)
        except SessionBusy:
            done.busy.append(meta)
        except SessionUnknown:
            continue  # somebody else deleted it
        else:
            done.sessions.append(meta)
