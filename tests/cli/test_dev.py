"""`narratoria dev`: what is saved is played at once, and a mistake is told without ending the game."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import warm_start

from narratoria.play.game import Game
from narratoria.play.story import Story
from narratoria.play.story_watch import FileWatch

STORY = """
id = "yard"
title = "The Yard"
premise = "A yard."
narrator = ["rules", "template"]
refusal = ["No."]
[opening]
narrative = "You stand in a yard."
choices = ["Look"]
[state]
place = "yard"
"""
RULES = """
[[rule]]
id = "look"
patterns = ["look"]
narrative = "A wall, and a gate."

[[rule]]
id = "where"
patterns = ["where am i"]
narrative = "In the {state.place}."
"""


class Running:
    """A command that goes on: lines are written to it and read from it."""

    def __init__(self, home: Path, *arguments: object) -> None:
        self.process = subprocess.Popen(
            warm_start.command("dev", *arguments, kind="commands"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
            env={**os.environ, "NARRATORIA_HOME": str(home), "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
        )
        self.lines: queue.Queue[str] = queue.Queue()
        self.seen: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)

    def say(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def until(self, words: str, seconds: float = 60) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                line = self.lines.get(timeout=0.5)
            except queue.Empty:
                continue
            self.seen.append(line)
            if words in line:
                return line
        raise AssertionError(f"{words!r} did not come; there was:\n{''.join(self.seen)}")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.reader.join(10)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


@pytest.fixture
def story(tmp_path: Path) -> Path:
    root = tmp_path / "yard"
    root.mkdir()
    (root / "story.toml").write_text(STORY)
    (root / "narrator.toml").write_text(RULES)
    return root


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Any]:
    started: list[Running] = []

    def start(*arguments: object) -> Running:
        started.append(Running(tmp_path / "home", *arguments))
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_saved_rules_speak_in_the_open_session_and_a_mistake_does_not_end_it(story: Path, dev: Any) -> None:
    running = dev(story, "--terminal", "--narrator", "rules")
    running.until("You stand in a yard.")
    running.say("look")
    running.until("A wall, and a gate.")
    rules = story / "narrator.toml"
    rules.write_text(RULES.replace("A wall, and a gate.", "A wall with a hole in it."))
    running.until("narrator.toml saved; the story goes on with it")
    running.say("look")
    running.until("A wall with a hole in it.")
    rules.write_text(RULES.replace("patterns =", "paterns =", 1))
    assert "narrator.toml:4" in running.until("the story goes on as it was")
    running.say("look")
    running.until("A wall with a hole in it.")


def test_a_new_tool_is_there_at_once_and_its_events_are_shown(story: Path, dev: Any) -> None:
    running = dev(story, "--terminal", "--narrator", "rules")
    running.until("You stand in a yard.")
    tools = story / "tools"
    tools.mkdir()
    (tools / "bell.tool.json").write_text(
        json.dumps({"name": "bell", "description": "Ring.", "parameters": {"type": "object"}})
    )
    bell = tools / "bell"
    bell.write_text(
        "#!/bin/sh\ncat >/dev/null\n"
        """echo '{"version":"0","type":"log","level":"info","message":"ding"}'\n"""
        """echo '{"version":"0","type":"done","ok":true}'\n"""
    )
    bell.chmod(0o755)
    ring = (
        '\n[[rule]]\nid = "ring"\npatterns = ["ring"]\nnarrative = "You ring."\ncalls = [{ tool = "bell" }]\n'
    )
    (story / "narrator.toml").write_text(RULES + ring)
    running.until("saved; the story goes on with it")
    time.sleep(1)  # a look may have come between two of the files
    running.say("ring")
    running.until("call bell {}")
    running.until("bell info ding")
    running.until("✓ bell")


def test_it_starts_with_a_state_or_after_a_turn(story: Path, dev: Any, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    state.write_text('{"place": "cellar", "plaec": "attic"}')
    running = dev(story, "--terminal", "--narrator", "rules", "--at", state)
    running.until(
        "warning: --at: plaec: no rule reads it, and no rule or tool writes it; did you mean 'place'?"
    )
    running.say("where am i")
    running.until("In the cellar.")
    running.say("look")
    running.until("A wall, and a gate.")
    running.close()
    env = {**os.environ, "NARRATORIA_HOME": str(tmp_path / "home")}
    listed = json.loads(warm_start.run("sessions", "list", "--json", env=env).stdout)
    session = (listed[0] if isinstance(listed, list) else listed["sessions"][0])["id"]
    again = dev(story, "--terminal", "--narrator", "rules", "--session", session, "--turn", "1")
    again.until("In the cellar.")
    again.say("where am i")
    again.until("turn 2 where am i")


def test_a_tool_is_checked_and_called_after_each_save(dev: Any, tmp_path: Path) -> None:
    tool = tmp_path / "greet"
    source = (
        '#!/bin/sh\ncat >/dev/null\necho \'{"version":"0","type":"done","ok":true,"summary":"Hello."}\'\n'
    )
    tool.write_text(source)
    tool.chmod(0o755)
    state = tmp_path / "state.json"
    state.write_text('{"bell": 3}')
    (tmp_path / "greet.tool.json").write_text(  # called with its example
        '{"name": "greet", "description": "Greets.", "wantsState": true, "examples": [{"description": "Ann",'
        ' "input": {"name": "Ann"}}], "parameters": {"type": "object", "required": ["name"],'
        ' "properties": {"name": {"type": "string"}}}}'
    )
    running = dev(tool, "--state", state, "--operation", "wave", "--dependencies", '{"a": 1}')
    running.until("Hello.")
    running.until('state {"bell":3}')
    running.until("greet conforms")
    running.until("watching")
    assert len(running.seen) <= 5, running.seen
    tool.write_text(source.replace("Hello.", "Good evening."))
    running.until("greet saved")
    running.until("Good evening.")
    tool.write_text(source.replace("echo", "echoo"))
    running.until("does not conform")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["yard", "--turn", "1"], "--turn needs the --session"),
        (["yard", "--at", "{}", "--session", "x"], "give --at or --session"),
        (["yard", "--input", "{}"], "is a story; --input is for tools"),
        (["yard", "--state", "{}"], "--at gives a story its state"),
        (["yard", "--at", "gone.json"], "there is no gone.json here"),
        (["tool.sh", "--terminal"], "is a tool"),
        (["nowhere"], "nowhere"),
    ],
)
def test_wrong_use_is_said_so(story: Path, tmp_path: Path, arguments: list[str], says: str) -> None:
    (tmp_path / "tool.sh").write_text("#!/bin/sh\n")
    env = {**os.environ, "NARRATORIA_HOME": str(tmp_path / "home")}
    ended = warm_start.run("dev", *arguments, env=env, cwd=tmp_path)
    assert ended.returncode in (1, 2)
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_a_narrator_that_can_speak_no_more_is_told_of_and_the_game_goes_on(story: Path) -> None:
    game = Game.new(Story.load(story), narrators=["rules"], watched=True)
    try:
        game.begin()
        (story / "story.toml").write_text(STORY.replace('["rules", "template"]', '["template"]'))
        (story / "narrator.toml").unlink()
        assert (await game.prompt("look")).narrative == "A wall, and a gate."
        assert not await game.look_at_story()
        (story / "story.toml").write_text(STORY)
        (story / "narrator.toml").write_text(RULES.replace("a gate", "a door"))
        assert (await game.prompt("look")).narrative == "A wall, and a door."
    finally:
        await game.close()


def test_a_watch_names_what_was_made_saved_and_removed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b").write_text("1")
    watch = FileWatch(tmp_path)
    assert watch.changed() == []
    (tmp_path / "a").write_text("22")
    (tmp_path / "c").write_text("3")
    (tmp_path / ".hidden").write_text("4")
    shutil.rmtree(tmp_path / "sub")
    assert watch.changed() == ["a", "c", "sub/b"]
    assert watch.changed() == []
