"""Skills in a prompt for the agent loop: description first, instructions and tools when opened, then pages."""

from __future__ import annotations

from narratoria.agent.prompt import Prompt
from narratoria.agent.prompt.skill_sections import skill_sections
from narratoria.skills.skill_library import SkillLibrary, found_places


def test_a_skill_is_opened_step_by_step() -> None:
    library = SkillLibrary(found_places(["dice", "choices"]))
    bound = Prompt(ns="tests", key="skills", sections=skill_sections(library)).bind()
    closed = bound.render()
    assert "Rolls dice such as 2d6+1" in closed.text and "Roll only when" not in closed.text
    assert [one.name for one in closed.tools] == ["open_sections"]
    opened = bound.open("skill-dice").render()
    assert "Roll only when the outcome is open" in opened.text and "Each +1 on" not in opened.text
    assert {one.name for one in opened.tools} == {"dice.roll", "open_sections"}
    page = bound.open("skill-dice.page-odds_md").render()
    assert "Each +1 on `2d6`" in page.text
