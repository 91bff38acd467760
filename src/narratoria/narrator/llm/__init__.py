"""The narrator that is a language model: what it is told, and how its reply becomes a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from narratoria.extras import absent, needed
from narratoria.narrator.withheld_tools import Withheld

if TYPE_CHECKING:
    from narratoria.narrator.llm.llm_narrator import LLMNarrator
    from narratoria.play.casting import Cast
    from narratoria.play.story import Story

_MODEL_SERVER: Final = ("NARRATORIA_LLM_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")


def missing(story: Story, environment: Mapping[str, str]) -> str:
    if absent("llm"):
        return needed("llm")
    if not any(environment.get(variable) for variable in _MODEL_SERVER):
        return "no language model is configured: set NARRATORIA_LLM_URL or OPENAI_API_KEY, and start again"
    return ""


def make(cast: Cast) -> LLMNarrator:
    from narratoria.narrator.llm.llm_narrator import LLMNarrator

    withheld = Withheld.by(cast.story, beside_rules=cast.reads_rules)
    return LLMNarrator.from_environment(withheld=withheld)
