"""Who narrates, and what they remember: the chain a story asks for, made of what is installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from narratoria.errors import NarratoriaError, StoryInvalid
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.protocol import Narrator
from narratoria.narrator.template import TemplateNarrator
from narratoria.session.store import data_home
from narratoria.story import Story

if TYPE_CHECKING:
    from narratoria.narrator.embedding import CachedEmbedder, MiniLM
    from narratoria.narrator.lore import StoryMemory

GENERATION_TIMEOUT: Final = 5.0
NARRATORS: Final = ("rules", "local", "llm", "template")
_MODEL_SERVER: Final = ("NARRATORIA_LLM_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")
_IMPORTED_LORE: Final = (".json", ".png")


def make_narrator(
    story: Story, names: Sequence[str] | None = None, *, time_limit: float = 5.0
) -> ChainNarrator:
    """The chain a story asks for, or the one named. A narrator whose parts are missing is left out, unless it was
    named."""
    makers: dict[str, Callable[[], Narrator | None]] = {
        "rules": lambda: story.scripted_narrator() if story.rules is not None else None,
        "local": lambda: _local_narrator(required=names is not None),
        "llm": lambda: _llm_narrator(required=names is not None),
        "template": lambda: None,  # the chain's last resort
    }
    chosen: list[Narrator] = []
    for name in names or story.narrators:
        if name not in makers:
            raise StoryInvalid(f"no narrator is called {name!r}; use some of: {', '.join(NARRATORS)}")
        narrator = makers[name]()
        if narrator is not None:
            chosen.append(narrator)
    return ChainNarrator(chosen, last_resort=TemplateNarrator(), time_limit=time_limit)


def granted_time(environment: Mapping[str, str] = os.environ) -> float:
    """Seconds for one generation: five (000 §13.6), or more where NARRATORIA_LLM_TIMEOUT grants a model more.

    A chain keeps a part of the time for the narrators behind the model, hence the quarter on top.
    """
    try:
        granted = float(environment.get("NARRATORIA_LLM_TIMEOUT") or 0)
    except ValueError:
        return GENERATION_TIMEOUT  # the LLM narrator itself says what is wrong with it
    return max(GENERATION_TIMEOUT, granted * 1.25)


def _local_narrator(*, required: bool) -> Narrator | None:
    found = _embedder(required=required)
    if found is None:
        return None
    from narratoria.narrator.local import LocalNarrator  # needs the extra `local`, as the embedder does

    return LocalNarrator(found[1])


def _llm_narrator(*, required: bool) -> Narrator | None:
    if not required and not any(os.environ.get(name) for name in _MODEL_SERVER):
        return None
    try:
        from narratoria.narrator.llm import LLMNarrator

        return LLMNarrator.from_environment()  # needs the extra `llm`
    except ImportError as error:
        if required:
            raise NarratoriaError(f"the LLM narrator needs the extra 'llm' ({error})") from None
        return None


def _embedder(*, required: bool = False) -> tuple[MiniLM, CachedEmbedder] | None:
    """The embedding model, loaded once for everybody; None where it is not installed."""
    try:
        return _load_embedder()
    except ImportError as error:
        if required:
            raise NarratoriaError(f"the local narrator needs the extra 'local' ({error})") from None
        return None
    except NarratoriaError:  # the weights are missing; the message says how to get them
        if required:
            raise
        return None


@cache
def _load_embedder() -> tuple[MiniLM, CachedEmbedder]:
    from narratoria.narrator.embedding import CachedEmbedder, MiniLM  # needs the extra `local`

    model = MiniLM()
    return model, CachedEmbedder(model, data_home() / "cache" / "embeddings")


def recollect(story: Story, past: Sequence[tuple[str, str]]) -> StoryMemory | None:
    """What a story remembers: its lore, its characters (also from world-info files and character cards in `lore/`),
    and the turns so far. None where the embedding model is not installed."""
    found = _embedder()
    if found is None:
        return None
    from narratoria.narrator.lore import StoryMemory, summaries
    from narratoria.narrator.worldinfo import import_file

    model, embedder = found
    memory = StoryMemory(embedder, model.count_tokens)
    memory.add_lore(story.lore)
    for path in sorted((story.root / "lore").glob("*")):
        if path.suffix.lower() in _IMPORTED_LORE:
            imported = import_file(path)
            memory.add_entries(imported.entries)
            for character in imported.characters:
                memory.add_character(character.name, character.sheet)
    for number, summary in enumerate(summaries(past), 1):
        memory.add_turn(number, summary)
    return memory
