"""Trials: each request that is offered to a player is understood first, to see that it does what it says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from narratoria.narrator.english.words import content_stems
from narratoria.narrator.local.comprehension import Comprehension
from narratoria.narrator.local.suggestions import Offer


class Trials:
    """Offers made beside one prompt, in the scene it was typed in."""

    def __init__(self, heard: Comprehension) -> None:
        self._heard = heard
        self._tried: dict[str, Comprehension] = {}

    def prepare(self, offers: Iterable[Offer]) -> None:
        """Embeds at once what trying these will need: many texts cost little more than one."""
        fresh = {offer.text: self._listen(offer.text) for offer in offers if not self._is_known(offer.text)}
        sense = self._heard.embed(reading for trial in fresh.values() for reading in trial.readings.values())
        for trial in fresh.values():
            trial.sense = sense
        self._tried = fresh

    def works(self, offer: Offer) -> bool:
        """Tells if it leads to its tool alone, and to the things it names.

        That is found out once per catalogue and things it may speak of.
        """

        def find() -> bool:
            trial = self._tried.get(offer.text) or self._listen(offer.text)
            return trial.reaches(offer.tool.card, offer.values)

        return self._heard.knowledge.remember(self._key(offer.text), find)

    def _is_known(self, text: str) -> bool:
        return self._heard.knowledge.remembers(self._key(text))

    def _key(self, text: str) -> tuple[bytes, frozenset[str], str]:
        words = content_stems(text)
        meant = (one.value for one in self._heard.scene.finder.entities if words.intersection(one.stems))
        return self._heard.scene.index.key, frozenset(meant), text

    def _listen(self, text: str) -> Comprehension:
        request = replace(self._heard.request, prompt=text, history=())
        return Comprehension(self._heard.knowledge, request, self._heard.scene)
