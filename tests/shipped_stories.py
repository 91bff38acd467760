"""The shipped stories, read once per process of the tests: reading and checking one takes most of a second."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from narratoria.play.story import Story

ROOT = Path(__file__).parents[1] / "stories"


@cache
def shipped_story(name: str) -> Story:
    """A shipped story. Nobody changes it: a game copies its state."""
    return Story.load(ROOT / name)
