"""Faults at every boundary of a runtime, drawn by lot, while it plays a drawn game; afterwards nothing may be lost.

The runtime is a real process (`player.py`). It is killed, stopped, its guardian or a tool is killed, its disk is full
or read-only, its clock jumps, its database restarts. At the end the game must be as if nothing had happened.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tests.chaos.database import postgres_server
from tests.chaos.games import SESSION, Broken, expect
from tests.chaos.leaks import eventually, processes_with
from tests.chaos.player import drawn_game, open_store, undone_after
from tests.chaos.processes import Processes
from tests.chaos.scenarios import DrawnTurn, Expected, expected_of, merged, succeeds

from narratoria.events import CallFinished, CallStarted, Committed, TurnCommitted, TurnRedone, TurnUndone
from narratoria.session import Record
from narratoria.store.salvage.verification import verify
from narratoria.store.store import SessionUnknown, Store

PLAYER: Final = Path(__file__).with_name("player.py")
LONGEST: Final = 180.0  # seconds of a game that is left alone
DISK: Final = "2m"  # of the file system that is filled


class Play:
    """A player's process, and what is done to it."""

    def __init__(self, folder: Path, seed: int, place: str, **environment: str) -> None:
        self.errors = folder / "errors"
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, PLAYER, place, folder, str(seed)],
                env={**os.environ, "TMPDIR": str(folder / "tmp"), **environment},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def ready(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def let_run(self, seconds: float) -> bool:
        """Let it play; tell if it is still at it."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def guardians(self) -> list[int]:
        return [pid for pid in _children(self.process.pid) if "guardian.py" in _command(pid)]

    def tools(self) -> list[int]:
        return [pid for pid in _children(self.process.pid) if "/tools/" in _command(pid)]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def _children(pid: int) -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for listed in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, listed.read_text().split()):
                found += [child, *_children(child)]
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


# --- the faults ------------------------------------------------------------------------------------------------


def killed(play: Play, chance: random.Random, folder: Path) -> None:
    play.process.kill()


def guardian_killed(play: Play, chance: random.Random, folder: Path) -> None:
    _kill(play.guardians())
    play.let_run(0.1)


def all_killed(play: Play, chance: random.Random, folder: Path) -> None:
    """The runtime and its guardians in one instant: the next runtime cleans up."""
    _kill([*play.guardians(), play.process.pid])


def stopped(play: Play, chance: random.Random, folder: Path) -> None:
    play.process.send_signal(signal.SIGSTOP)
    time.sleep(0.2)
    play.process.send_signal(signal.SIGCONT)


def tool_killed(play: Play, chance: random.Random, folder: Path) -> None:
    _kill(play.tools()[:1])


def disk_filled(play: Play, chance: random.Random, folder: Path) -> None:
    ballast = folder / "home" / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb") as file:
        while True:
            file.write(bytes(65536))
            file.flush()
    play.let_run(0.3)
    if chance.random() < 0.5:
        play.process.kill()
        play.process.wait()
    ballast.unlink()


Fault = Callable[[Play, random.Random, Path], None]
ANYWHERE: Final[tuple[Fault, ...]] = (killed, killed, guardian_killed, all_killed, stopped, tool_killed)
UNUSABLE: Final = {3}  # the player's exit status where it cannot use its store


class Game:
    """One game with faults, from the first start to the last check."""

    def __init__(
        self, seed: int, folder: Path, place: str = "sqlite", restart: Callable[[], None] | None = None
    ) -> None:
        self.seed = seed
        self.folder = folder
        self.place = place
        self.restart = restart
        self.chance = random.Random(f"faults {seed}")
        self.scenario = drawn_game(seed)
        for name in ("home", "tmp"):
            (folder / name).mkdir(exist_ok=True)
        self.toolbox = Processes(self.scenario, folder / "tools")
        self.done: dict[str, int] = {}  # calls that were completed at a kill, and how often they had run
        self.disturbed = False  # tools were killed: their calls may end otherwise
        self.story: list[str] = []

    def play(self) -> None:
        try:
            for _ in range(self.chance.randint(1, 4)):
                if not self.one_fault():
                    break
            self.to_the_end()
            self.check()
        except Exception as error:
            errors = self.folder / "errors"
            said = errors.read_text()[-3000:] if errors.exists() else ""
            raise Broken(f"{error}\nthe faults: {', '.join(self.story)}\nstderr: {said}") from error

    def one_fault(self) -> bool:
        """Start the player, and let something happen to it; False once the game is over."""
        environment, faults = {}, list(ANYWHERE)
        roll = self.chance.random()
        if roll < 0.15:
            environment["CHAOS_CLOCK"] = str(self.chance.random())
            self.story.append("the clock jumps")
        elif roll < 0.3:
            environment["CHAOS_FILE_BYTES"] = str(self.chance.choice((20_000, 60_000, 100_000)))
            self.story.append(f"files of at most {environment['CHAOS_FILE_BYTES']} bytes")
        if os.path.ismount(self.folder / "home"):
            faults += [disk_filled] * 4
            if self.chance.random() < 0.2:
                self.read_only()
        if self.restart is not None:
            faults += [self.database_restarted] * 4
        play = Play(self.folder, self.seed, self.place, **environment)
        try:
            if self.chance.random() < 0.9:  # the others meet it while it starts
                play.ready()
            if not play.let_run(self.chance.uniform(0, 0.8)):
                self.judge(play)
                return play.process.returncode != 0
            fault = self.chance.choice(faults)
            self.story.append(fault.__name__)
            self.disturbed |= fault is tool_killed
            fault(play, self.chance, self.folder)
            play.let_run(self.chance.uniform(0, 0.3))
        finally:
            play.end()
        self.note_done()
        return True

    def judge(self, play: Play) -> None:
        """A player that ended by itself has finished, or said that its store cannot be used."""
        if play.process.returncode not in {0, *UNUSABLE}:
            raise Broken(f"the player ended with status {play.process.returncode}")

    def read_only(self) -> None:
        """Start it on a read-only file system: it must say so."""
        self.story.append("read-only")
        subprocess.run(["mount", "-o", "remount,ro", self.folder / "home"], check=True)
        try:
            play = Play(self.folder, self.seed, self.place)
            play.let_run(30)
            play.end()
            if play.process.returncode not in UNUSABLE:
                raise Broken(f"status {play.process.returncode} on a read-only file system")
        finally:
            subprocess.run(["mount", "-o", "remount,rw", self.folder / "home"], check=True)

    def database_restarted(self, play: Play, chance: random.Random, folder: Path) -> None:
        assert self.restart is not None
        self.restart()
        play.let_run(0.5)

    def to_the_end(self) -> None:
        """Nothing happens any more: it must get there, at the latest at the second start."""
        for _ in range(2):
            play = Play(self.folder, self.seed, self.place)
            try:
                if play.let_run(LONGEST):
                    raise Broken("the game does not end")
            finally:
                play.end()
            if play.process.returncode == 0:
                return
        raise Broken(f"the game cannot be played to its end: status {play.process.returncode}")

    # --- checks ----------------------------------------------------------------------------------------------

    def note_done(self) -> None:
        """Note the calls that the journal has as completed: they must not run again."""
        store = open_store(self.place, self.folder)
        try:
            for record in store.read(SESSION):
                event = record.event
                if isinstance(event, CallFinished) and event.ok:
                    self.done.setdefault(event.call, self.toolbox.count(event.call))
        except SessionUnknown:
            return
        finally:
            store.close()

    def check(self) -> None:
        store = open_store(self.place, self.folder)
        try:
            self.check_journal(store)
            expect("faults of the tables", store.table_faults(), [])
            for checked in verify(store, store.list()):
                expect(f"faults of {checked.meta.id}", (checked.faults, checked.altered), ([], []))
        finally:
            store.close()
        for key, runs in self.done.items():
            expect(f"{key} was completed; its runs", self.toolbox.count(key), runs)
        errors = self.folder / "errors"
        if "Traceback" in errors.read_text():
            raise Broken("a traceback")
        eventually(lambda: not (processes_with(self.toolbox.token) or processes_with(str(self.folder))), 15)
        expect(
            "processes that are left",
            processes_with(self.toolbox.token) + processes_with(str(self.folder)),
            [],
        )
        expect("temporary files", sorted(one.name for one in (self.folder / "tmp").iterdir()), [])
        drafts = [one.name for one in (self.folder / "home").rglob("*") if one.name.startswith(".")]
        expect("files that are half made", drafts, [])

    def check_journal(self, store: Store) -> None:
        records = [*store.read(SESSION)]
        taken = self.folded(records)
        expect("the restored state", store.restore(SESSION).snapshot(), taken)
        turns = [one.event.turn for one in records if isinstance(one.event, TurnCommitted)]
        expect("the turns", turns, [*range(1, len(self.scenario.turns) + 1)])
        undone = [one.event.turn for one in records if isinstance(one.event, TurnUndone)]
        wanted = [turn for turn in turns if undone_after(self.scenario, turn)]
        expect("the turns taken back", undone, wanted)

    def folded(self, records: list[Record]) -> dict[str, Any]:
        """Return the state that the commits must have made, by the model; each call has committed once at most."""
        state: dict[str, Any] = dict(self.scenario.state)
        before: dict[int, dict[str, Any]] = {}
        committed: set[str] = set()
        for record in records:
            event = record.event
            if isinstance(event, CallStarted) and event.call not in self.toolbox.calls:
                raise Broken(f"{event.call} is of no plan")
            if record.turn is not None and record.turn not in before:
                before[record.turn] = state
            if isinstance(event, Committed) and event.changes:
                expect(f"{event.call} was committed before", event.call in committed, False)
                committed.add(event.call)
                for patch in self.toolbox.calls[event.call][1].attempts[0].patches:
                    state = merged(state, patch)
            elif isinstance(event, TurnUndone):
                state = before[event.turn]
            elif isinstance(event, TurnRedone):
                raise Broken("a turn was made again that nobody asked for")
        for turn in self.scenario.turns if not self.disturbed else ():
            for key, wanted in expected_turn(turn).items():
                expect(f"{key} is committed", key in committed, bool(wanted.ok and wanted.patches))
        return state


def expected_turn(turn: DrawnTurn) -> dict[str, Expected]:
    """What must come of the calls of a turn; those of plans that are not reached are left out."""
    found: dict[str, Expected] = {}
    for plan in turn.plans:
        if plan is None:
            continue
        wanted = expected_of(plan)
        found |= {f"{plan.id}:{call}": one for call, one in wanted.items()}
        if succeeds(plan, wanted):
            break
    return found


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A file system of its own under `folder`, where we may mount one."""
    folder.mkdir(exist_ok=True)
    mounted = (
        os.getuid() == 0
        and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", folder], capture_output=True
        ).returncode
        == 0
    )
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", "-l", folder], check=True)


def play_seed(seed: int, folder: Path, patience: float = 1.0, *, postgres: bool = True) -> None:
    """Play one game with faults: every second one on a disk that can be filled, every tenth on PostgreSQL."""
    server = postgres_server() if postgres and seed % 10 == 0 else None
    if server is not None:
        Game(seed, folder, server.new_database(), server.restart).play()
        return
    with small_disk(folder / "home") if seed % 2 else contextlib.nullcontext():
        Game(seed, folder).play()
