"""Playtesting: players made of chance play a story and report what they ran into.

Half of the players choose at random, among the choices and commands made from the rules' own patterns. The other half
are greedy, and share what they find out: each tries first what has answered none of them, and looks for a way to a
state in which something new may answer. They take their turns in rounds, so that the seed decides all they type.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from narratoria.authoring.explored_story import ExploredStory
from narratoria.authoring.players import GreedyPlayer, Player
from narratoria.authoring.playtest_report import Ending, Fault, Report
from narratoria.errors import StoryInvalid
from narratoria.play.story import Story

__all__ = ["Fault", "Report", "Settings", "playtest"]

_TOGETHER: Final = 16  # players who play at the same time; the next ones know what these have found
_REFUSALS_SHOWN: Final = 20


class Settings(msgspec.Struct, frozen=True):
    """The size of a playtest, and the seed that decides it."""

    players: int = 8
    turns: int = 40
    seed: int = 0
    at_once: int = max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)


async def playtest(
    story: Story, settings: Settings, *, told: Callable[[int], None] = lambda done: None
) -> Report:
    """Let players play; `told` hears how many are done. Tools run for real, sessions are kept nowhere."""
    if story.rules is None:
        raise StoryInvalid(f"{story.root}: there is no narrator.toml; playtesting needs rules to go by")
    started = time.perf_counter()
    explored = ExploredStory(story.scripted_narrator(), dict(story.state))
    done: list[Player] = []
    for first in range(0, settings.players, _TOGETHER):
        numbers = range(first, min(first + _TOGETHER, settings.players))
        players = [_player(story, explored, number, settings.seed) for number in numbers]
        try:
            await _play(players, explored, settings, told, first)
        finally:
            for player in players:
                await player.close()
        done += players
    report = Report(story=story.id, players=settings.players, seed=settings.seed)
    report.seconds = round(time.perf_counter() - started, 3)
    return _summed_up(report, explored, done)


def _player(story: Story, explored: ExploredStory, number: int, seed: int) -> Player:
    chance = random.Random(f"{seed}/{number}")  # noqa: S311 - a game, no secret
    if number % 2 == 0:
        return Player(story, explored, number, chance)
    return GreedyPlayer(story, explored, number, chance, ends_first=number % 4 == 3)


async def _play(
    players: Sequence[Player],
    explored: ExploredStory,
    settings: Settings,
    told: Callable[[int], None],
    earlier: int,
) -> None:
    """Play in rounds: all choose, one after the other; all take their turns; what they found is known to all then."""
    places = asyncio.Semaphore(settings.at_once)

    async def one(player: Player) -> None:
        async with places:
            await player.take_turn()

    while playing := [one for one in players if one.turns < settings.turns and not one.is_lost]:
        told(earlier + len(players) - len(playing))
        for player in playing:
            player.choose()
        async with asyncio.TaskGroup() as group:
            for player in playing:
                group.create_task(one(player))
        for player in playing:
            explored.learn(player.answered, player.before, player.after)
    told(earlier + len(players))


def _summed_up(report: Report, explored: ExploredStory, players: Sequence[Player]) -> Report:
    reached = set(explored.reached)
    for player in players:
        report.turns += player.turns
        report.refusals += len(player.refused)
        report.refused += player.refused
        for name, title, turns, state in player.endings:
            report.add_ending(name, Ending(title=title, count=1, shortest=turns, state=state))
        for fault in player.faults:
            report.add_fault(fault)
    report.refused = list(dict.fromkeys(report.refused))[:_REFUSALS_SHOWN]
    for rule in explored.rules.values():
        missed = [number for number in range(len(rule.cases)) if (rule.id, number) not in reached]
        if len(missed) == len(rule.cases):
            report.unreached_rules.append(rule.id)
        elif missed:
            report.unreached_cases.append(f"{rule.id}: {' '.join(str(number + 1) for number in missed)}")
    return report
