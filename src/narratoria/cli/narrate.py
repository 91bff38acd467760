"""`narratoria narrate`: show the plan a narrator would make. Nothing is executed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click
import msgspec

from narratoria.cli.completion import STORY
from narratoria.cli.narrators_option import narrators_option, say_missing_words
from narratoria.cli.output import Seconds, console, print_json, read_object, styled
from narratoria.cli.skills_option import say_problems, skills_option
from narratoria.cli.source_options import opened_sources, source_options
from narratoria.cli.stdin_lines import in_daemon_thread, read_line
from narratoria.errors import PlanRejected
from narratoria.events import JsonObject
from narratoria.factcheck.fact_checked import FactChecked
from narratoria.kinds.foreign_sources import ToolSources, joined
from narratoria.narrator.chain import ChainNarrator
from narratoria.narrator.protocol import NarratorRequest, ToolCard, card
from narratoria.narrator.roster import LAST_RESORT
from narratoria.play.casting import granted_time, make_narrator, ready
from narratoria.play.game import story_registry
from narratoria.play.recollection import Recollection
from narratoria.play.story import Story
from narratoria.play.story_file import Opening
from narratoria.play.story_library import open_story
from narratoria.play.story_lore import Situation, check_lore
from narratoria.play.story_skills import story_skills
from narratoria.run.plan import PlanDocument
from narratoria.run.plan_executor import MAX_GENERATIONS
from narratoria.run.tool_folder import folder_tools
from narratoria.skills.skill import Skill
from narratoria.skills.skill_library import SkillLibrary, given_places

DEFAULT_STORY = "lighthouse"
_WARM_UP = 60.0  # seconds for a model to make ready: nobody is reading


timeout_option = click.option(
    "--timeout",
    type=Seconds(),
    default=granted_time,
    show_default="5, or what NARRATORIA_LLM_TIMEOUT grants",
    help="Seconds for one plan.",
)


@click.command()
@click.argument("prompt")
@click.option("--story", type=STORY, metavar="STORY", help="A name from the library, or a folder.")
@click.option(
    "--tools",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="A folder with tools in it or below it, no story.",
)
@click.option(
    "--state", metavar="JSON", help="The world as it is: an object, or a file; else the story's beginning."
)
@narrators_option()
@timeout_option
@source_options
@skills_option
@click.option(
    "--json", "as_json", is_flag=True, help="Print the plan as JSON, with its narrator and its choices."
)
def narrate(
    prompt: str,
    story: str | None,
    tools: Path | None,
    state: str | None,
    narrators: tuple[str, ...],
    timeout: float,
    sources: ToolSources | None,
    skill_folders: tuple[Path, ...],
    as_json: bool,
) -> int:
    """Show the plan a turn would make for PROMPT, and run nothing.

    With - as the prompt, one prompt is read from each line of standard input and one plan printed per line.
    """
    if prompt == state == "-":
        raise click.UsageError("the prompts and the state cannot both come from standard input")
    if story is not None and tools is not None:
        raise click.UsageError("--story and --tools exclude each other")
    say_missing_words()
    loaded = bare_story(tools) if tools is not None else open_story(story or DEFAULT_STORY)
    skills = (
        SkillLibrary(given_places(skill_folders))
        if tools is not None
        else story_skills(loaded, skill_folders)
    )
    say_problems(skills)
    paths: dict[str, str] = {}
    if tools is not None:
        folder = folder_tools(tools)
        paths = {tool.name: path.relative_to(tools).as_posix() for path, tool in folder.items()}
        cards = [card(tool) for tool in (*folder.values(), *skills)]
    else:
        cards = [card(tool) for tool in story_registry(loaded, skills)]
    for complaint in check_lore(loaded) if tools is None else ():
        console(stderr=True).print(styled((complaint, "yellow")))
    world = dict(loaded.state) if state is None else read_object("--state", state)
    chain = make_narrator(loaded, narrators or None, time_limit=timeout)
    scene = _Scene(loaded, world, cards, paths, skills.skills, chain)
    return asyncio.run(_narrate(scene, joined([loaded.sources, sources]), prompt, as_json))


@dataclass
class _Scene:
    """The story, its state and its tools, and the narrators that are asked."""

    story: Story
    world: JsonObject
    cards: list[ToolCard]
    paths: dict[str, str]  # where `lint` and `run` find the tools of a folder with the same --tools
    skills: list[Skill]
    chain: ChainNarrator

    def runnable(self, plan: PlanDocument) -> PlanDocument:
        """Return the plan with tools of the folder by their paths."""
        calls = [
            msgspec.structs.replace(call, tool_path=self.paths.get(call.tool_path, call.tool_path))
            for call in plan.tools
        ]
        return msgspec.structs.replace(plan, tools=calls)


async def _narrate(scene: _Scene, found: ToolSources, prompt: str, as_json: bool) -> int:
    by_line = prompt == "-"
    memory, chain = Recollection(scene.story, scene.chain), scene.chain
    async with opened_sources(found) as opened:
        cards = [*scene.cards, *(card(tool) for tool in opened)]
        await ready(chain, _WARM_UP)
        async for one in _lines() if by_line else _only(prompt):
            now = Situation(one, scene.world)
            request = NarratorRequest(
                one,
                state=scene.world,
                tools=cards,
                skills=scene.skills,
                premise=scene.story.premise,
                memories=[found.text for found in await memory.recall(now)] if memory.wanted else (),
                recall=partial(memory.remind, now),
                generations=MAX_GENERATIONS,
            )
            plan = scene.runnable(await _generate(chain, request))
            if by_line or as_json:
                print_json(
                    {**plan.to_data(), "narrator": chain.last_speaker, "choices": list(chain.last_choices)}
                )
                _say_who(chain)
            else:
                _show(plan, chain)
    return 0


async def _generate(chain: ChainNarrator, request: NarratorRequest) -> PlanDocument:
    """Generate a plan as a turn does: with retries of a refused plan, and the last one by another narrator."""
    checked = FactChecked(chain)
    for attempt in range(1, request.generations):
        try:
            return await checked.plan(replace(request, attempt=attempt))
        except PlanRejected as error:
            again = f"{chain.last_speaker}, attempt {attempt}: {'; '.join(error.problems)}"
            console(stderr=True).print(styled((again, "dim")))
    return await checked.plan(replace(request, attempt=request.generations))


async def _only(prompt: str) -> AsyncIterator[str]:
    yield os.fsencode(prompt).decode("utf-8", "replace")  # a shell may give us any bytes


async def _lines() -> AsyncIterator[str]:
    while (line := await in_daemon_thread(read_line)) is not None:
        yield line


def bare_story(folder: Path) -> Story:
    """Return a story that has only the tools of a folder."""
    return Story(
        root=folder.resolve(),
        id="tools",
        title=folder.name,
        premise="",
        opening=Opening(""),
        rules=None,
        narrators=("local", "llm", LAST_RESORT),
    )


def _say_who(chain: ChainNarrator) -> None:
    err = console(stderr=True)
    for name, why in chain.passed_over.items():
        if name != chain.last_speaker:  # its refusal is the answer
            err.print(styled((f"{name} passed: {why}", "dim")))
    err.print(styled((f"{chain.last_speaker} speaks", "dim")))


def _show(plan: PlanDocument, chain: ChainNarrator) -> None:
    out = console()
    _say_who(chain)
    if plan.narrative:
        out.print(styled((plan.narrative, "")))
    for number, call in enumerate(plan.tools, 1):
        after = f"  after {', '.join(call.dependencies)}" if call.dependencies else ""
        given = ", ".join(f"{name}={value!r}" for name, value in call.input.items())
        out.print(
            styled((f"  {number} ", "dim"), (call.tool_path, "bold cyan"), (f"({given})", ""), (after, "dim"))
        )
    if not plan.tools:
        out.print(styled(("  no calls", "dim")))
    for choice in chain.last_choices:
        out.print(styled(("  → ", "cyan"), (choice, "")))
