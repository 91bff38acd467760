"""The narrator that is a language model: what it is told, and how its reply becomes a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from narratoria.agent import chosen_model
from narratoria.extras import absent, needed
from narratoria.narrator.withheld_tools import Withheld

if TYPE_CHECKING:
    from narratoria.narrator.llm.llm_narrator import LLMNarrator
    from narratoria.play.casting import Cast
    from narratoria.play.story import Story


def missing(story: Story, environment: Mapping[str, str]) -> str:
    return needed("llm") if absent("llm") else chosen_model.missing(environment)


def make(cast: Cast) -> LLMNarrator:
    from narratoria.narrator.llm.llm_narrator import LLMNarrator

    withheld = Withheld.by(cast.story, beside_rules=cast.reads_rules)
    found, adapter = chosen_model.environment(), chosen_model.adapter()
    return LLMNarrator.from_environment(found, adapter=adapter, withheld=withheld)
