"""The options of `narratoria serve` about its players."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from narratoria.web.player_limits import PlayerRates


@dataclass(frozen=True, slots=True)
class PlayerOptions:
    """The options as they were given."""

    requests: float
    megabytes: float
    largest: float

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
)


def player_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, and hand them over as `players`."""

    @wraps(command)
    def with_players(
        *args: Any, player_requests: float, player_megabytes: float, largest_upload: float, **rest: Any
    ) -> Any:
        return command(
            *args, players=PlayerOptions(player_requests, player_megabytes, largest_upload), **rest
        )

    made: Callable[..., Any] = with_players
    for option in reversed(_OPTIONS):
        made = option(made)
    return made
