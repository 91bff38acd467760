"""The narrator of a story's own rules, `narrator.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from narratoria.narrator.roster import RULES

if TYPE_CHECKING:
    from narratoria.narrator.rules.scripted import ScriptedNarrator
    from narratoria.play.casting import Cast
    from narratoria.play.story import Story


def missing(story: Story, environment: Mapping[str, str]) -> str:
    return "this story has no rules" if story.rules is None else ""


def make(cast: Cast) -> ScriptedNarrator:
    """The rules; in front of others they leave to them what they understand in part only."""
    others = set(cast.behind) - {RULES}
    # The paraphrase narrator asks the rules again, their last resorts included.
    return cast.story.scripted_narrator(whole=bool(others), defers="paraphrase" in others)
