"""The narrator that leads other words to a story's own rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from narratoria.narrator.embedding.loading import load_embedder, missing_packages
from narratoria.narrator.lazy_narrator import LazyNarrator
from narratoria.narrator.protocol import Declaration

if TYPE_CHECKING:
    from narratoria.narrator.paraphrase.paraphrase_narrator import ParaphraseNarrator
    from narratoria.play.casting import Cast
    from narratoria.play.story import Story


def missing(story: Story, environment: Mapping[str, str]) -> str:
    return "this story has no rules" if story.rules is None else missing_packages()


def make(cast: Cast) -> LazyNarrator[ParaphraseNarrator]:
    story = cast.story

    def load() -> ParaphraseNarrator:
        from narratoria.narrator.paraphrase.paraphrase_narrator import ParaphraseNarrator  # needs `local`

        made = story.scripted_narrator(), load_embedder()[1]
        return ParaphraseNarrator(*made, refusal=story.refusal, yields="llm" in cast.behind)

    declared = Declaration(lists_calls="never")
    return LazyNarrator("paraphrase", load, lambda made: made.embed_all(story.state), declared)
