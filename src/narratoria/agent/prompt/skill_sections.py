"""Skills as sections of a prompt: shown by their description, opened with their tools when the model asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from narratoria.agent.prompt.section import Section, SectionVisibility
from narratoria.kinds.foreign_names import our_name, our_names
from narratoria.skills.skill import Skill, SkillInvalid
from narratoria.skills.skill_library import SkillLibrary
from narratoria.tools.tool import Tool


def skill_sections(library: SkillLibrary) -> list[Section[Any]]:
    """Return a section for each skill. Its scripts come with it when it is opened, its pages are sections in it."""
    return [
        _SkillSection(skill, [tool for tool in library if tool.skill == skill.name])
        for skill in library.skills
        if not skill.is_guide
    ]


class _SkillSection(Section[Any]):
    """A skill: its instructions."""

    def __init__(self, skill: Skill, tools: Sequence[Tool[Any, Any]]) -> None:
        super().__init__(
            title=skill.name,
            key=f"skill-{our_name(skill.name)}"[:64],
            tools=tools,
            children=[
                _PageSection(skill, path, key)
                for path, key in our_names(
                    [one.removeprefix("references/") for one in skill.references]
                ).items()
            ],
            summary=_plain(skill.description),
            visibility=SectionVisibility.SUMMARY,
        )
        self.skill = skill

    def body(self, values: dict[str, Any]) -> str:
        return self.skill.body


class _PageSection(Section[Any]):
    """A page under `references/`, read when it is shown."""

    def __init__(self, skill: Skill, path: str, key: str) -> None:
        super().__init__(
            title=path,
            key=f"page-{key}"[:64],
            summary=_plain(f"A page of the skill {skill.name}."),
            visibility=SectionVisibility.SUMMARY,
        )
        self.skill = skill
        self.path = f"references/{path}"

    def body(self, values: dict[str, Any]) -> str:
        try:
            return self.skill.read_reference(self.path)
        except SkillInvalid as error:
            return f"It cannot be read: {error}"


def _plain(text: str) -> str:
    """Return a text in which a dollar sign stands for nothing else."""
    return text.replace("$", "$$")
