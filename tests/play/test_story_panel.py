"""`[[panel]]` of story.toml: read, checked, and declared by the stories we ship."""

from __future__ import annotations

from pathlib import Path

import pytest

from narratoria.errors import StoryInvalid
from narratoria.play.story import Story

ROOT = Path(__file__).parents[2]
RULES = """
[[rule]]
id = "light"
patterns = ["light [lamp]"]
narrative = "It burns."
set = { lamp = { lit = true }, ending = { id = "lit", title = "Lit" } }
"""


def story(folder: Path, panel: str) -> Story:
    (folder / "story.toml").write_text(
        'title = "A"\npremise = "B"\nnarrator = ["rules"]\n[opening]\nnarrative = "C"\n'
        f"[state]\nlamp = {{ lit = false }}\n{panel}"
    )
    (folder / "narrator.toml").write_text(RULES)
    return Story.load(folder)


def test_the_parts_of_a_panel_are_read_in_their_order(tmp_path: Path) -> None:
    told = story(
        tmp_path,
        """
        [[panel]]
        kind = "facts"
        label = "What you know"
        facts = [{ label = "It burns.", when = { lamp.lit = true } }]
        [[panel]]
        kind = "endings"
        label = "Endings"
        endings = { lit = "Lit" }
        """,
    )
    assert [part.kind for part in told.panel] == ["facts", "endings"]
    assert told.panel[0].facts[0].when == {"lamp": {"lit": True}}
    assert told.warnings == ()


@pytest.mark.parametrize(
    ("panel", "said"),
    [
        ('[[panel]]\nkind = "map"\nlabel = "A"', "panel[0].kind"),
        ('[[panel]]\nkind = "place"\nlabel = "A"', "needs 'path'"),
        ('[[panel]]\nkind = "place"\nlabel = "A"\npaht = "x"', "did you mean 'path'?"),
        (
            '[[panel]]\nkind = "facts"\nlabel = "A"\nfacts = [{ label = "B", when = { lamp = [1] } }]',
            "a list",
        ),
        ("[panel]\nkind = 1", "[[panel]]"),
    ],
)
def test_a_mistake_in_a_panel_is_told_with_its_place(tmp_path: Path, panel: str, said: str) -> None:
    with pytest.raises(StoryInvalid) as told:
        story(tmp_path, panel)
    assert said in str(told.value)
    assert "story.toml:" in str(told.value)


def test_a_path_that_nothing_writes_and_an_ending_no_rule_comes_to_are_warnings(tmp_path: Path) -> None:
    told = story(
        tmp_path,
        """
        [[panel]]
        kind = "place"
        label = "Where"
        path = "lamp.lid"
        [[panel]]
        kind = "endings"
        label = "Endings"
        endings = { lost = "Lost" }
        """,
    )
    messages = [one.message for one in told.warnings]
    assert "no tool and no rule ever writes lamp.lid; did you mean 'lamp.lit'?" in messages[0]
    assert "no rule comes to this ending" in messages[1]


@pytest.mark.parametrize("name", ["lighthouse", "torch"])
def test_the_stories_we_ship_have_a_panel(name: str) -> None:
    told = Story.load(ROOT / "stories" / name)
    kinds = [part.kind for part in told.panel]
    assert {"things", "facts", "moments", "endings"} <= set(kinds)
    assert told.warnings == ()
