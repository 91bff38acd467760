"""A game: a story, a session and narrators, put together. The terminal, the page and scripts all play through it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from narratoria.errors import NarratoriaError, StoryInvalid
from narratoria.events import Choices, Narration, SessionStarted, TurnCommitted, TurnStarted
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.protocol import Narrator
from narratoria.narrator.template import TemplateNarrator
from narratoria.plan_executor import PlanExecutor
from narratoria.registry import ToolRegistry
from narratoria.resume import open_turn
from narratoria.session import Session
from narratoria.session.assets import AssetStore
from narratoria.session.journal import Journal
from narratoria.story import Story, ending_of, home
from narratoria.tools.process import process_tool
from narratoria.turn import Interrupted, Origin, TurnResult, TurnSettings, take_turn

NARRATORS = ("rules", "local", "llm", "template")


class Game:
    """One player's run through one story."""

    def __init__(
        self,
        story: Story,
        session: Session,
        *,
        narrator: Narrator | None = None,
        narrators: Sequence[str] | None = None,
        generation_timeout: float = 5.0,
    ) -> None:
        self.story = story
        self.session = session
        self.registry = story_registry(story)
        self.narrator = narrator or make_narrator(story, narrators, time_limit=generation_timeout)
        self.executor = PlanExecutor(self.registry, session, roots=[story.root])
        self.settings = TurnSettings(premise=story.premise, generation_timeout=generation_timeout)
        self._running: asyncio.Task[TurnResult] | None = None

    @classmethod
    def new(
        cls,
        story: Story,
        session: Session | None = None,
        *,
        assets: AssetStore | None = None,
        **options: object,
    ) -> Game:
        """A fresh game. The opening is turn 0, so that it too can be replayed."""
        if session is None:
            session = Session(state=story.state, permissions=story.permissions, assets=assets)
        return cls(story, session, **options)  # type: ignore[arg-type]  # the options of __init__

    def begin(self) -> TurnResult:
        """Record the opening: what the player reads before the first prompt."""
        session, opening = self.session, self.story.opening
        session.record(
            SessionStarted(
                session=session.id,
                story=self.story.id,
                title=self.story.title,
                state=session.snapshot(),
                permissions=sorted(session.permissions),
            )
        )
        session.turn = 0
        session.record(TurnStarted(turn=0, prompt="", origin="opening"))
        session.record(Narration(text=opening.narrative, narrator="opening"))
        session.record(Choices(choices=list(opening.choices)))
        session.record(TurnCommitted(turn=0))
        session.turn = None
        session.choices = list(opening.choices)
        return TurnResult(0, "", opening.narrative, list(opening.choices), narrator="opening")

    async def prompt(
        self, text: str, *, origin: Origin = "player", resume: Interrupted | None = None
    ) -> TurnResult:
        """Take a turn. `cancel()` ends it early; what had completed by then stays."""
        self._running = asyncio.create_task(
            take_turn(
                self.session,
                text,
                narrator=self.narrator,
                registry=self.registry,
                executor=self.executor,
                origin=origin,
                settings=self.settings,
                resume=resume,
            )
        )
        try:
            return await asyncio.shield(self._running)
        except asyncio.CancelledError:
            if not self._running.cancelled():  # we are the one being cancelled: take the turn down with us
                self._running.cancel()
                await asyncio.gather(self._running, return_exceptions=True)
                raise
            return TurnResult(
                self.session.turn_count, text, outcome="cancelled", choices=list(self.session.choices)
            )

    async def resume(self) -> TurnResult | None:
        """Finish the turn that a crash left open: what completed is kept, only the rest runs."""
        journal = self.session.journal
        left = open_turn(journal) if isinstance(journal, Journal) else None
        if left is None:
            return None
        return await self.prompt(left.prompt, origin=left.origin, resume=left)

    @property
    def busy(self) -> bool:
        return self._running is not None and not self._running.done()

    def cancel(self) -> bool:
        """Stop the running turn, if there is one."""
        return self._running is not None and self._running.cancel()

    @property
    def ending(self) -> tuple[str, str] | None:
        return ending_of(self.session.state)


def story_registry(story: Story) -> ToolRegistry:
    """The story's tools, each made from its executable and manifest."""
    registry = ToolRegistry()
    for one in story.tools:
        try:
            registry.register(process_tool(one.path))
        except StoryInvalid:
            raise
        except NarratoriaError as error:
            raise StoryInvalid(f"{one.path}: {error}") from error
    return registry


def make_narrator(
    story: Story, names: Sequence[str] | None = None, *, time_limit: float = 5.0
) -> ChainNarrator:
    """The chain a story asks for, or the one named. A narrator whose parts are not installed is left out, unless
    it was named."""
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


def cache_folder() -> Path:
    return home() / "cache"


def _local_narrator(*, required: bool) -> Narrator | None:
    try:
        from narratoria.narrator.embedding import CachedEmbedder, MiniLM, ModelMissing
        from narratoria.narrator.local import LocalNarrator
    except ImportError as error:
        if required:
            raise NarratoriaError(f"the local narrator needs the extra 'local' ({error})") from None
        return None
    try:
        return LocalNarrator(CachedEmbedder(MiniLM(), cache_folder() / "embeddings"))
    except ModelMissing:
        if required:
            raise
        return None


def _llm_narrator(*, required: bool) -> Narrator | None:
    if not required and not any(
        os.environ.get(name) for name in ("NARRATORIA_LLM_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")
    ):
        return None
    try:
        from narratoria.narrator.llm import LLMNarrator
    except ImportError as error:
        if required:
            raise NarratoriaError(f"the LLM narrator needs the extra 'llm' ({error})") from None
        return None
    return LLMNarrator.from_environment()
