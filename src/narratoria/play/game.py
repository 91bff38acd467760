"""A game: a story, a session and narrators, put together. The terminal, the page and scripts all play through it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from narratoria.errors import JournalError, NarratoriaError, StoryInvalid
from narratoria.events import Choices, Narration, Notice, SessionStarted, TurnCommitted, TurnStarted
from narratoria.factcheck.fact_checked import FactChecked
from narratoria.kinds.foreign_sources import ToolSources, joined
from narratoria.kinds.load import load_tool
from narratoria.narrator.protocol import Narrator
from narratoria.narrator.rules.fillable import fill_state
from narratoria.play.casting import granted_time, make_narrator, turn_settings, warm_up
from narratoria.play.game_lore import NO_LORE, GameLore
from narratoria.play.game_sources import GameSources
from narratoria.play.history import finish_undo
from narratoria.play.offering import ending_of
from narratoria.play.recollection import Recollection
from narratoria.play.resume import open_turn
from narratoria.play.session_past import SessionPast, journal_of
from narratoria.play.stage import stage
from narratoria.play.story import Story
from narratoria.play.story_file import Opening
from narratoria.play.story_lore import StoryLore, answers, author_note, situation
from narratoria.play.story_skills import story_skills
from narratoria.play.story_watch import FileWatch
from narratoria.play.turn import take_turn
from narratoria.play.turn_types import Interrupted, Origin, Outcome, TurnResult
from narratoria.run.plan_executor import PlanExecutor
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.session.assets import AssetStore
from narratoria.skills.skill_library import SkillLibrary
from narratoria.store.fold import fold_turn
from narratoria.store.journal import Journal
from narratoria.tools.tool import Tool

# Codes of notices about the files of a watched story; the first two outdate all before them.
STORY_SAVED: Final = "STORY_SAVED"
STORY_MISTAKE: Final = "STORY_MISTAKE"
STORY_WARNING: Final = "STORY_WARNING"


class Game:
    """One player's run through one story."""

    def __init__(
        self,
        story: Story,
        session: Session,
        *,
        narrator: Narrator | None = None,
        narrators: Sequence[str] | None = None,
        generation_timeout: float | None = None,
        sources: ToolSources | None = None,
        skills: Sequence[Path] = (),
        watched: bool = False,
    ) -> None:
        self.story = story
        self.session = session
        session.grants.trust(story.permissions)
        self.skills = story_skills(story, skills)
        self.registry = story_registry(story, self.skills)
        self._sources = GameSources(joined([story.sources, sources]), self.registry)
        self._own_time = generation_timeout is None
        if generation_timeout is None:
            generation_timeout = granted_time()
        self._cast = None if narrator is not None else (narrators, generation_timeout)
        self.narrator = narrator or make_narrator(story, narrators, time_limit=generation_timeout)
        self.executor = PlanExecutor(self.registry, session, roots=[story.root])
        self.settings = turn_settings(story, generation_timeout)
        self.story_lore = StoryLore(story)
        self.unused_lore = self.story_lore.complaints()
        self._told_of_skills = frozenset[str]()
        self.past = SessionPast(session)
        self._lore = -1, NO_LORE
        self._recollection = Recollection(
            story, self.narrator, chronicle=self.past.chronicle, lore=self.story_lore
        )
        self._turns: list[asyncio.Task[TurnResult]] = []  # the one being taken, and those that wait for it
        self._watch = FileWatch(story.root) if watched else None

    @classmethod
    def new(
        cls,
        story: Story,
        session: Session | None = None,
        *,
        assets: AssetStore | None = None,
        **options: object,
    ) -> Game:
        """Make a new game. The opening is turn 0, so that it too can be replayed."""
        if session is None:
            session = Session(state=story.state, permissions=story.permissions, assets=assets)
        return cls(story, session, **options)  # type: ignore[arg-type]  # the options of __init__

    def begin(self) -> TurnResult:
        """Record the opening: the text before the first prompt, while the narrators and servers start."""
        warm_up(self.narrator)
        self._sources.start()
        session, opening = self.session, self._opening()
        if session.seq == 0:  # a store records it itself when it takes the session
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
        for complaint in (*self.unused_lore, *self._news_of_skills()):
            session.notice(Notice(level="warn", message=complaint))
        session.record(Narration(text=opening.narrative, narrator="opening"))
        session.record(Choices(choices=list(opening.choices)))
        session.record(TurnCommitted(turn=0))
        session.turn = None
        session.choices = list(opening.choices)
        return TurnResult(0, "", opening.narrative, list(opening.choices), narrator="opening")

    def _opening(self) -> Opening:
        """Return the story's opening with the values of the state in it."""
        opening, state = self.story.opening, self.session.state
        return Opening(
            fill_state(opening.narrative, state), tuple(fill_state(one, state) for one in opening.choices)
        )

    async def prompt(
        self, text: str, *, origin: Origin = "player", resume: Interrupted | None = None
    ) -> TurnResult:
        """Take a turn. `cancel()` ends it early; calls that had completed by then stay."""
        turn = asyncio.create_task(self._take(text, origin, resume))
        self._turns.append(turn)
        try:
            result = await asyncio.shield(turn)
        except asyncio.CancelledError:
            if not turn.cancelled():  # we are the one being cancelled: take the turn down with us
                turn.cancel()
                await asyncio.gather(turn, return_exceptions=True)
                raise
            return TurnResult(
                self.session.turn_count, text, outcome="cancelled", choices=list(self.session.choices)
            )
        finally:
            self._turns.remove(turn)
        return result

    async def go_on(self) -> TurnResult:
        """Take a turn without words of the player: the narrator goes on."""
        return await self.prompt("", origin="continue")

    async def equipped(self) -> None:
        """Wait until the tools of MCP servers and OpenAPI documents are there; problems become notices."""
        await self._sources.wait(lambda line: self.session.notice(Notice(level="warn", message=line)))

    async def close(self) -> None:
        """End what the game started: MCP servers. It can be played on, and they start again."""
        await self._sources.close()

    def _news_of_skills(self) -> list[str]:
        """Return the problems of skills that were not told yet."""
        told, self._told_of_skills = self._told_of_skills, frozenset(self.skills.problems)
        return [problem for problem in self.skills.problems if problem not in told]

    def _look_at_skills(self) -> None:
        """Pick up skills that changed since the last turn."""
        self.skills.refresh()
        for problem in self._news_of_skills():
            self.session.notice(Notice(level="warn", message=problem))

    def use_narrators(self, names: Sequence[str] | None) -> None:
        """Let others narrate from the next turn on: those named, or the story's own. They get the time that a person
        grants a model now.
        """
        seconds = granted_time() if self._own_time else self.settings.generation_timeout
        self.narrator = make_narrator(self.story, names, time_limit=seconds)
        if self._cast is not None:
            self._cast = names, seconds
        self.settings = replace(self.settings, generation_timeout=seconds)
        self._recollection = Recollection(
            self.story, self.narrator, chronicle=self.past.chronicle, lore=self.story_lore
        )

    async def look_at_story(self) -> bool:
        """Read a watched story anew if its files were saved; tell if they were. The open game goes on with it.

        A story with a mistake is told of in a notice, and the game goes on with what it had.
        """
        if self._watch is None or not (saved := await asyncio.to_thread(self._watch.news)):
            return False
        try:
            story = await asyncio.to_thread(Story.load, self.story.root)
            tools = {tool.name: tool for tool in await asyncio.to_thread(_story_tools, story)}
            narrator = self._recast(story)  # may be refused: nothing is exchanged before
        except NarratoriaError as error:
            message = f"{saved}, and the story goes on as it was: {error}"
            self.session.notice(Notice(level="warn", code=STORY_MISTAKE, message=message))
            return True
        self._go_on_with(story, tools, narrator)
        message = f"{saved}; the story goes on with it"
        self.session.notice(Notice(level="info", code=STORY_SAVED, message=message))
        for line in story.warn():
            self.session.notice(Notice(level="warn", code=STORY_WARNING, message=line))
        return True

    async def look_between_turns(self) -> None:
        """Look at the files of the story unless a turn is being taken: its author hears of a mistake on saving."""
        if not self.busy:
            async with self.session.turn_lock:
                await self.look_at_story()

    def _recast(self, story: Story) -> Narrator:
        """Return the narrator for the story as it is now; one that the program brought stays."""
        if self._cast is None:
            return self.narrator
        return make_narrator(story, self._cast[0], time_limit=self._cast[1])

    def _go_on_with(self, story: Story, tools: Mapping[str, Tool[Any, Any]], narrator: Narrator) -> None:
        for old in {one.name for one in self.story.tools} - tools.keys():
            self.registry.unregister(old)
        self.registry.tools.update(tools)
        self.registry.approval = story.approval if story.approval.rules else None
        self.executor = PlanExecutor(self.registry, self.session, roots=[story.root])
        self.session.grants.trust(story.permissions)
        self.story = story
        disabled = self.settings.disabled_skills
        timeout = self.settings.generation_timeout
        self.settings = replace(turn_settings(story, timeout), disabled_skills=disabled)
        self.narrator = narrator
        warm_up(narrator)
        self.story_lore = StoryLore(story)
        self._recollection = Recollection(
            story, self.narrator, chronicle=self.past.chronicle, lore=self.story_lore
        )

    async def _take(self, text: str, origin: Origin, resume: Interrupted | None) -> TurnResult:
        if len(self._turns) == 1:  # else another turn is being taken, with the story as it was
            await self.look_at_story()
        session, memory = self.session, self._recollection
        await self.equipped()
        self._look_at_skills()
        ledger = await self.past.open()
        now = situation(session, text, await self.lore(), self.past.chronicle.stands)
        recalled = await memory.recall(now)
        return await take_turn(
            session,
            text,
            narrator=FactChecked(self.narrator, ledger, self.settings.last_resort),
            registry=self.registry,
            executor=self.executor,
            origin=origin,
            settings=replace(
                self.settings,
                story=self.story.id,
                memories=[one.text for one in recalled] if memory.wanted else (),
                recall=lambda prompt, state: memory.remind(replace(now, prompt=prompt, state=state)),
                recalled=[*(author_note(now.lore) if memory.wanted else ()), *recalled],
                authors_note=now.lore.note,
                lore=answers(recalled, now.lore),
                skills=tuple(self.skills.skills),
            ),
            resume=resume,
        )

    @property
    def reads_memories(self) -> bool:
        """True if a narrator of the game gets what is recalled."""
        return self._recollection.wanted

    async def lore(self) -> GameLore:
        """Return the player's lore, read anew only after a change: it may be large."""
        edits = self.session.memory.lore_edits
        if self._lore[0] != edits:
            self._lore = edits, await asyncio.to_thread(GameLore.of, self.session.memory)
        return self._lore[1]

    async def told(self) -> Mapping[int, str]:
        """Return the turns that stand, each as the story remembers it."""
        await self.past.open()
        return self.past.chronicle.standing()

    async def resume(self) -> TurnResult | None:
        """Finish a turn or an undo that a crash left open: completed calls are kept, only the rest runs.

        Return the turn, if it was one. A game that was cut short before its opening begins now.
        """
        warm_up(self.narrator)
        journal = self.journal
        if journal is None:
            return None
        begun = self.session.turn_count > 0 or journal.timeline.open is not None
        if journal.timeline.last is None and not begun:
            return self.begin()
        self._sources.start()
        left = open_turn(journal)
        if left is None:
            if journal.timeline.undoing is not None:
                await self.equipped()
            await finish_undo(journal, self.registry)
            return None
        return await self.prompt(left.prompt, origin=left.origin, resume=left)

    def where_we_are(self) -> TurnResult:
        """The newest turn that counts, as it was told; before the first, the story's opening."""
        session, journal = self.session, self.journal
        if journal is None or journal.timeline.last is None:
            return TurnResult(session.turn_count, "", self._opening().narrative, list(session.choices))
        try:
            told = fold_turn(journal.store.read_turn(session.id, journal.timeline.last))
        except JournalError:  # its records were lost to damage; how things stood after it is known
            return TurnResult(journal.timeline.last, "", "", list(session.choices))
        narrative = journal.timeline.edited.get(told.turn, told.narrative)
        result = TurnResult(told.turn, told.prompt, narrative, list(session.choices))
        result.narrator, result.outcome = (
            told.narrator,
            cast(Outcome, told.outcome),
        )  # it is not open: it counts
        return result

    @property
    def journal(self) -> Journal | None:
        """The journal of a saved game."""
        return journal_of(self.session)

    @property
    def busy(self) -> bool:
        """True while a turn runs."""
        return bool(self._turns)

    def cancel(self) -> bool:
        """Stop the running turn, if there is one."""
        return bool(self._turns) and self._turns[0].cancel()

    @property
    def ending(self) -> tuple[str, str] | None:
        """The story's ending, once there is one."""
        return ending_of(self.session.state)


def story_registry(story: Story, skills: SkillLibrary | None = None) -> ToolRegistry:
    """The story's tools, each made from its executable and manifest, the scripts of its skills, and the stage."""
    approval = story.approval if story.approval.rules else None
    registry = ToolRegistry(_story_tools(story), approval=approval)
    (skills or story_skills(story)).follow(registry)
    return registry


def _story_tools(story: Story) -> list[Tool[Any, Any]]:
    tools: list[Tool[Any, Any]] = [stage] if story.needs_stage else []
    for one in story.tools:
        try:
            tool = load_tool(one.path)
            tool.resources = story.resources.get(tool.name, tool.resources)
            tools.append(tool)
        except StoryInvalid:
            raise
        except NarratoriaError as error:
            raise StoryInvalid(f"{one.path}: {error}") from error
    return tools
