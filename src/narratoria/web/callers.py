"""The caller of a request: the player, and the role, that the access policy of a shared server has found.

A server of one person knows no callers; there, everything is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request

from narratoria.errors import NarratoriaError
from narratoria.store.postgres_players import ROLES, Role

CALLER: Final = "narratoria.caller"
"""In the scope: what the access policy knows of the sender of a request, for the server that answers it: `player`,
`name` and `role`.
"""
OPERATOR: Final[Mapping[str, str]] = {"player": "operator", "name": "operator", "role": "operator"}
"""The caller who has the token that the servers share."""


class Forbidden(NarratoriaError):
    """The caller may see this, and may not do that."""


def caller_of(scope: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the caller of a request; nothing in a server of one person."""
    found: Mapping[str, str] = scope.get(CALLER, {})
    return found


def player_of(request: Request) -> str | None:
    """Return the player to whom new sessions belong."""
    return caller_of(request.scope).get("player")


def sees_only_own(request: Request) -> str | None:
    """Return the player whose sessions alone the caller may see; None for one who may see all."""
    caller = caller_of(request.scope)
    return None if caller.get("role", "operator") == "operator" else caller["player"]


def has_role(scope: Mapping[str, Any], role: Role) -> bool:
    """Tell if the caller of a request has a role, or one that may do more."""
    return ROLES.index(caller_of(scope).get("role", "operator")) >= ROLES.index(role)


def check_role(request: Request, role: Role) -> None:
    """Refuse what a caller may not do."""
    if not has_role(request.scope, role):
        raise Forbidden(f"this is for the role {role}; the operator of this server gives roles")
