"""The options of `narratoria serve` about its players."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click

if TYPE_CHECKING:
    from narratoria.web.openid import Provider
    from narratoria.web.player_limits import PlayerRates


@dataclass(frozen=True, slots=True)
class PlayerOptions:
    """The options as they were given."""

    requests: float
    megabytes: float
    largest: float
    issuer: str | None
    client: str | None
    secret_file: Path | None
    roles: str | None
    public_url: str | None

    def provider(self) -> Provider | None:
        """Return the OpenID Connect provider that the options name."""
        if self.issuer is None:
            return None
        if self.client is None or self.public_url is None:
            raise click.UsageError("--openid-issuer needs --openid-client and --public-url too")
        from narratoria.web.openid import Provider, ProviderSettings

        file = self.secret_file
        secret = file.read_text() if file is not None else os.environ.get("NARRATORIA_OPENID_SECRET", "")
        settings = ProviderSettings(
            self.issuer, self.client, self.public_url, secret.strip() or None, self.roles
        )
        return Provider(settings)

    @property
    def hosts(self) -> set[str]:
        """The host of the public address."""
        found = urlsplit(self.public_url).hostname if self.public_url else None
        return {found.lower()} if found else set()

    def rates(self) -> PlayerRates:
        from narratoria.web.player_limits import MEGABYTE, PlayerRates

        return PlayerRates(self.requests, self.megabytes * MEGABYTE, int(self.largest * MEGABYTE))


_OPTIONS: Final = (
    click.option(
        "--player-requests",
        type=click.FloatRange(1),
        default=600,
        show_default=True,
        help="Requests of one player in a minute; more are answered 429.",
    ),
    click.option(
        "--player-megabytes",
        type=click.FloatRange(0.001),
        default=64,
        show_default=True,
        help="Megabytes that one player may send in a minute.",
    ),
    click.option(
        "--largest-upload",
        type=click.FloatRange(0.001),
        default=32,
        show_default=True,
        help="Megabytes of one request of a player.",
    ),
    click.option(
        "--public-url", metavar="URL", help="The address that players know, as https://stories.example."
    ),
    click.option(
        "--openid-issuer", metavar="URL", help="An OpenID Connect provider by which players sign in."
    ),
    click.option("--openid-client", metavar="ID", help="Our id at the provider."),
    click.option(
        "--openid-secret-file",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Our secret at the provider; else NARRATORIA_OPENID_SECRET, else none.",
    ),
    click.option(
        "--openid-roles", metavar="CLAIM", help="A claim with the roles of a player: author, operator."
    ),
)


_NAMES: Final = (
    "player_requests", "player_megabytes", "largest_upload", "openid_issuer", "openid_client", "openid_secret_file",
    "openid_roles", "public_url",
)  # fmt: skip


def player_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, and hand them over as `players`."""

    @wraps(command)
    def with_players(*args: Any, **rest: Any) -> Any:
        return command(*args, players=PlayerOptions(*[rest.pop(name) for name in _NAMES]), **rest)

    made: Callable[..., Any] = with_players
    for option in reversed(_OPTIONS):
        made = option(made)
    return made
