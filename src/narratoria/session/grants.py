"""The permissions of a session: those granted here, and those that an imported file claims."""

from __future__ import annotations

from collections.abc import Iterable

from narratoria.events import Change, PermissionChange


class Grants:
    """The permissions held here, those claimed by a file, and `granted`, those that count."""

    def __init__(self, held: Iterable[str] = ()) -> None:
        self.held = frozenset(held)
        self.claimed: frozenset[str] = frozenset()
        self.trusted: frozenset[str] = frozenset()  # the claims that count
        self.granted = self.held

    def trust(self, permissions: Iterable[str]) -> None:
        """Accept those claimed permissions that are among these: the story's grants."""
        self.trusted = frozenset(permissions)
        self.granted = self.held | (self.claimed & self.trusted)

    def change(self, change: PermissionChange) -> list[Change]:
        """Change a permission; return the inverse. One taken away here is gone, granted or claimed; an imported record
        changes claims only.
        """
        only = frozenset({change.permission})
        inverse: list[Change] = []
        if not change.claimed:
            inverse.append(PermissionChange(change.permission, bool(only & self.held)))
            self.held = self.held | only if change.granted else self.held - only
        if change.claimed or (not change.granted and only & self.claimed):
            inverse.append(PermissionChange(change.permission, bool(only & self.claimed), claimed=True))
            self.claimed = self.claimed | only if change.granted else self.claimed - only
        self.granted = self.held | (self.claimed & self.trusted)
        return inverse
