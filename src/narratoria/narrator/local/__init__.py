"""The narrator that serves any catalogue of tools by meaning, without a model server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from narratoria.narrator.embedding.loading import load_embedder, missing_packages
from narratoria.narrator.roster import RULES
from narratoria.narrator.withheld_tools import WithoutTools

if TYPE_CHECKING:
    from narratoria.narrator.protocol import Narrator
    from narratoria.play.casting import Cast
    from narratoria.play.story import Story


def missing(story: Story, environment: Mapping[str, str]) -> str:
    return missing_packages()


def make(cast: Cast) -> Narrator:
    """The narrator without the tools kept for rules; behind rules it does what they leave of a prompt."""
    from narratoria.narrator.local.local_narrator import LocalNarrator  # needs the extra `local`
    from narratoria.narrator.shared_prompt import BehindRules

    narrator: Narrator = LocalNarrator(load_embedder()[1])
    if cast.reads_rules and cast.story.reserved_tools:
        narrator = WithoutTools(narrator, cast.story.reserved_tools)
    return BehindRules(narrator, cast.story.scripted_narrator()) if RULES in cast.in_front else narrator
