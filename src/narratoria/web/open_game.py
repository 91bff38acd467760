"""An open game and its player's settings: its narrators, its skills, its permissions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from narratoria.errors import NarratoriaError, NarratorUnavailable
from narratoria.events import MemoryChange
from narratoria.narrator.roster import NARRATORS
from narratoria.play.casting import what_it_lacks
from narratoria.play.game import Game
from narratoria.play.game_lore import SETTINGS_KEY
from narratoria.play.stage import stage
from narratoria.session import Session
from narratoria.web.documents import Permission, Settings, SettingsChange, Skill
from narratoria.web.feed import Feed
from narratoria.web.skill_forms import change_skill, skill_fields

if TYPE_CHECKING:
    from narratoria.store.journal import Journal

logger = logging.getLogger("narratoria")

OWN_CHAIN: Final = "story"  # the narrators in the order the story names them


@dataclass(slots=True)
class OpenGame:
    """One writer and any number of viewers of a game."""

    game: Game
    journal: Journal
    feed: Feed
    chain: Sequence[str] | None = None  # the narrators this server was started with, in place of the story's
    narrator: str = OWN_CHAIN
    disabled: set[str] = field(default_factory=set)
    turn: asyncio.Task[None] | None = None

    @property
    def session(self) -> Session:
        return self.game.session

    def settings(self) -> Settings:
        skills: dict[str, str] = {
            one.name: " ".join(one.description.split()) for one in self.game.skills.skills if not one.is_guide
        }
        asked: set[str] = set(self.game.story.permissions)
        for tool in self.game.registry:
            if tool is not stage:  # the rules' own: a story without it could not go on
                skills.setdefault(tool.skill or tool.name, tool.description)
            asked.update(tool.permissions)
        granted = self.session.permissions
        health = self.session.health
        return Settings(
            narrator=self.narrator,
            narrators=[OWN_CHAIN, *NARRATORS],
            missing={name: what for name in NARRATORS if (what := self._lack(name))},
            skills=[
                Skill(
                    name=name,
                    description=description,
                    enabled=name not in self.disabled,
                    health=health[name].health if name in health else "healthy",
                    settings=skill_fields(self.game.skills, name),
                )
                for name, description in sorted(skills.items())
            ],
            permissions=[Permission(name=name, granted=name in granted) for name in sorted(asked | granted)],
        )

    async def change(self, change: SettingsChange) -> None:
        """Change the given settings, between two turns, and record them with the session."""
        async with self.session.turn_lock:
            for name, values in change.skill_settings.items():
                await asyncio.to_thread(change_skill, self.game.skills, name, values)
            if change.narrator is not None:
                self._use_narrator(change.narrator)
            self._switch_skills(change.skills)
            self.session.grant(*[name for name, granted in change.permissions.items() if granted])
            self.session.revoke(*[name for name, granted in change.permissions.items() if not granted])
            kept = {"narrator": self.narrator, "disabled": sorted(self.disabled)}
            self.session.commit("", [MemoryChange("long-term", "write", SETTINGS_KEY, kept)])

    async def recast(self) -> None:
        """Cast the narrators anew, between two turns: a person has chosen another model, or none."""
        async with self.session.turn_lock:
            for name in (self.narrator, OWN_CHAIN):
                try:
                    self._use_narrator(name)
                    return
                except NarratoriaError as error:
                    logger.warning("session %s: %s", self.session.id, error)

    def restore(self) -> None:
        """Restore the settings of the last time it was played."""
        kept: Any = self.session.memory.read("long-term", SETTINGS_KEY)
        if not isinstance(kept, dict):
            return
        disabled, narrator = kept.get("disabled"), kept.get("narrator")
        if isinstance(disabled, list):  # it may come from a file that somebody made
            self._switch_skills({name: False for name in disabled if isinstance(name, str)})
        try:
            self._use_narrator(narrator if isinstance(narrator, str) else OWN_CHAIN)
        except NarratoriaError as error:  # installed then, not now: the story's own chain speaks
            logger.warning("session %s: %s", self.session.id, error)

    def _lack(self, name: str) -> str:
        """Return what a narrator lacks to tell this story, or ""."""
        tools = [tool.name for tool in self.game.registry if tool is not stage]
        return what_it_lacks(self.game.story, name, tools)

    def _use_narrator(self, name: str) -> None:
        if name not in (OWN_CHAIN, self.narrator) and (why := self._lack(name)):
            raise NarratorUnavailable(f"the narrator {name!r}: {why}")
        self.game.use_narrators(self.chain if name == OWN_CHAIN else [name])
        self.narrator = name

    def _switch_skills(self, skills: Mapping[str, bool]) -> None:
        for name, enabled in skills.items():
            (self.disabled.discard if enabled else self.disabled.add)(name)
        self.game.settings = replace(self.game.settings, disabled_skills=frozenset(self.disabled))
