"""The skills of a story: its own, those it names, and those a person adds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from narratoria.skills.skill_library import Place, SkillLibrary, found_places, given_places

if TYPE_CHECKING:
    from narratoria.play.story import Story


def story_skills(story: Story, added: Sequence[Path] = ()) -> SkillLibrary:
    """Return the skills a game of this story uses.

    All of `skills/` in the story's folder and of the folders `added`; of the project's, the person's and ours only
    those that the story names: a skill that somebody installed for another purpose has no part in a story.
    """
    own = Place(story.root / "skills", "story", asked=True, guides=True)
    found = found_places(story.skills) if story.skills else []
    return SkillLibrary([own, *given_places(added), *found], wanted=story.skills)
