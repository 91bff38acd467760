"""What a handler writes through the filesystem is part of its turn: an undo takes it back, or says that it stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from digging import NEVER

from narratoria.errors import JournalError
from narratoria.events import Committed, TurnCommitted, TurnStarted
from narratoria.kinds.builtin_tools import file_write
from narratoria.kinds.compose import sequence
from narratoria.narrator.protocol import NarratorRequest
from narratoria.play.history import preview_undo, preview_undo_to, redo, undo, undo_to
from narratoria.play.turn import take_turn
from narratoria.run.plan import PlanDocument, PlannedCall
from narratoria.run.registry import ToolRegistry
from narratoria.session import Session
from narratoria.session.resources.file_changes import LARGEST_KEPT
from narratoria.session.resources.host_filesystem import HostFilesystem
from narratoria.session.resources.memory_filesystem import MemoryFilesystem
from narratoria.session.resources.resources import Filesystem, ResourceRegistry
from narratoria.store.journal import Journal
from narratoria.store.portable import export_session, import_session
from narratoria.store.sqlite import SqliteStore
from narratoria.tools.contract import StateChangeEffect
from narratoria.tools.tool import Tool, ToolContext, ToolResult

Act = Callable[[Any], None]


@dataclass(frozen=True)
class Nothing:
    pass


class Desk:
    """A game whose one tool does what the test says, with the session's filesystem."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder / "desk"
        self.folder.mkdir()
        self.kind = kind
        self.store = SqliteStore(folder / "sessions.db")
        self.files: Any = HostFilesystem(self.folder) if kind == "host" else MemoryFilesystem()
        self.act: Act = lambda files: None
        self.registry = ToolRegistry([Tool[Nothing, None]("desk", "Works at the desk.", self.work)])
        session = Session(assets=self.store.assets, resources=self.resources())
        self.journal: Journal = self.store.create(session, story="desk", title="Desk")

    def resources(self) -> ResourceRegistry:
        registry = ResourceRegistry()
        registry.provide(Filesystem, self.files)
        return registry

    async def work(self, params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        self.act(context.filesystem)
        return ToolResult.ok(None, "done")

    async def plan(self, request: NarratorRequest) -> PlanDocument:
        call = PlannedCall(tool_id="desk", tool_path=request.prompt, input={}, retry_policy=NEVER)
        return PlanDocument(request_id=f"p{self.journal.session.seq}", narrative="So be it.", tools=[call])

    name = "desk"

    async def turn(self, act: Act, tool: str = "desk") -> None:
        self.act = act
        await take_turn(self.journal.session, tool, narrator=self, registry=self.registry)

    async def again(self, *, bound: bool = True) -> None:
        """A restart: the journal is closed, and the session opened anew."""
        await self.journal.close()
        if self.kind == "host":
            self.files = HostFilesystem(self.folder)
        resources = self.resources() if bound else None
        self.journal = self.store.open(self.journal.session.id, resources=resources)

    def tree(self) -> dict[str, str | None]:
        paths = self.files.glob("**")
        return {path: None if self.files.is_dir(path) else self.files.read_text(path) for path in paths}


@pytest.fixture(params=["host", "memory"])
def desk(request: pytest.FixtureRequest, tmp_path: Path):
    made = Desk(tmp_path, request.param)
    yield made
    made.store.close()


def write(path: str, text: str) -> Act:
    return lambda files: files.write_text(path, text)


def busy(files: Any) -> None:
    """All kinds of changes at once."""
    files.write_text("new/deep/a.txt", "a")
    files.write_text("old.txt", "changed")
    files.delete("gone.txt")
    files.delete("empty")
    files.delete("folder/inner.txt")
    files.delete("folder")
    files.write_text("folder", "now a file")
    files.delete("file")
    files.mkdir("file")
    files.write_text("same.txt", "same")
    files.write_text("passing.txt", "x")
    files.delete("passing.txt")


def prepare(files: Any) -> None:
    for path in ("old.txt", "gone.txt", "folder/inner.txt", "file", "same.txt"):
        files.write_text(path, "same" if path == "same.txt" else f"first {path}")
    files.mkdir("empty")


@pytest.mark.parametrize("restart", [False, True])
async def test_an_undo_puts_files_and_folders_back(desk: Desk, restart: bool) -> None:
    prepare(desk.files)
    before = desk.tree()
    await desk.turn(busy)
    assert desk.tree() != before
    if restart:
        await desk.again()
    preview = await preview_undo(desk.journal, desk.registry)
    assert preview.irreversible == []
    assert "file new/deep/a.txt written" in preview.compensated
    assert "file gone.txt deleted" in preview.compensated and "folder empty removed" in preview.compensated
    assert not any("same.txt" in one or "passing" in one for one in preview.compensated)
    undone = await undo(desk.journal, desk.registry)
    assert desk.tree() == before
    assert sorted(undone.compensated) == sorted(preview.compensated) and undone.failed == []


async def test_undo_after_undo_leads_back_to_the_beginning(desk: Desk) -> None:
    await desk.turn(write("a.txt", "one"))
    await desk.turn(write("a.txt", "two"))
    await desk.turn(lambda files: files.delete("a.txt"))
    await undo(desk.journal)
    assert desk.tree() == {"a.txt": "two"}
    await undo(desk.journal)
    assert desk.tree() == {"a.txt": "one"}
    await undo(desk.journal)
    assert desk.tree() == {}


async def test_what_somebody_else_changed_is_left_and_listed(desk: Desk) -> None:
    await desk.turn(
        lambda files: [files.write_text(f"d/{name}", "mine") for name in ("a", "b", "c")] and None
    )
    desk.files.write_text("d/a", "somebody else's")
    desk.files.delete("d/b")
    desk.files.write_text("d/theirs", "new")
    preview = await preview_undo(desk.journal, desk.registry)
    assert preview.irreversible == [
        "desk: folder d made (it holds what others wrote)",
        "desk: file d/a written (it was changed since then)",
    ]
    undone = await undo(desk.journal, desk.registry)
    assert undone.irreversible == preview.irreversible
    assert desk.tree() == {"d": None, "d/a": "somebody else's", "d/theirs": "new"}


async def test_a_redo_is_refused_because_records_write_no_file(desk: Desk) -> None:
    await desk.turn(write("a.txt", "one"))
    await undo(desk.journal)
    with pytest.raises(JournalError, match=r"file a\.txt written.*taken back"):
        await redo(desk.journal)
    assert desk.tree() == {}
    await redo(desk.journal, force=True)
    assert desk.tree() == {}
    assert (await undo(desk.journal)).compensated == [], "it was taken back before"


async def test_a_branch_keeps_the_files_of_the_turns_it_shares(desk: Desk) -> None:
    await desk.turn(write("a.txt", "one"))
    branch = desk.store.branch(desk.journal.session.id, 1)
    undone = await undo(desk.journal)
    assert "shares it" in undone.irreversible[0] and desk.tree() == {"a.txt": "one"}
    await desk.journal.close()
    desk.journal = desk.store.open(branch.id, resources=desk.resources())
    assert (await undo(desk.journal)).compensated == ["file a.txt written"]
    assert desk.tree() == {}


async def test_without_its_filesystem_all_stays_and_is_listed(desk: Desk) -> None:
    await desk.turn(write("a.txt", "one"))
    await desk.again(bound=False)
    undone = await undo(desk.journal)
    assert "file a.txt written (the resource is not here" in undone.irreversible[0]
    assert desk.tree() == {"a.txt": "one"}


async def test_a_file_too_large_to_be_kept_is_listed_before(desk: Desk) -> None:
    desk.files.write_bytes("big", b"x" * (LARGEST_KEPT + 1))
    await desk.turn(write("big", "small"))
    preview = await preview_undo(desk.journal)
    assert "too many to be kept" in preview.irreversible[0] and preview.compensated == []
    await undo(desk.journal)
    assert desk.files.read_text("big") == "small"


async def test_a_composed_call_and_a_failed_part_are_told_apart(desk: Desk) -> None:
    async def spoil(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        context.filesystem.write_text("spoilt", "x")
        raise ValueError("no")

    bad = Tool[Nothing, None]("spoil", "Fails.", spoil)
    desk.registry.register(bad)
    desk.registry.register(sequence([desk.registry.get("desk"), desk.registry.get("desk")], name="twice"))
    await desk.turn(lambda files: files.write_text(f"f{len(files.list())}", "x"), "twice")
    assert desk.tree() == {"f0": "x", "f1": "x"}
    await desk.turn(lambda files: None, "spoil")
    assert desk.tree() == {"f0": "x", "f1": "x"}
    assert (await undo(desk.journal, desk.registry)).compensated == []
    await undo(desk.journal, desk.registry)
    assert desk.tree() == {}


async def test_calls_that_wrote_the_same_file_at_once_are_followed_back(desk: Desk) -> None:
    """Whatever the order in which they were committed."""
    session = desk.journal.session
    desk.files.write_text("a.txt", "zero")
    session.turn = session.turn_count = 1
    session.record(TurnStarted(turn=1, prompt="both"))
    first, second = session.draft(), session.draft()
    first.resources.filesystem.write_text("a.txt", "one")
    if desk.kind == "memory":
        first.commit("first")
    second.resources.filesystem.write_text("a.txt", "two")
    second.commit("second")
    if desk.kind == "host":
        first.commit("first")
    session.record(TurnCommitted(turn=1))
    session.turn = None
    assert desk.tree() == {"a.txt": "two"}
    undone = await undo(desk.journal)
    assert undone.failed == [] and undone.irreversible == []
    assert desk.tree() == {"a.txt": "zero"}


@pytest.mark.parametrize("ends", ["discard", "commit"])
async def test_an_undo_never_brings_back_what_another_call_wrote_meanwhile(desk: Desk, ends: str) -> None:
    """The second call finds the first one's content, and is committed before the first ends."""
    session = desk.journal.session
    desk.files.write_text("a.txt", "zero")
    session.turn = session.turn_count = 1
    session.record(TurnStarted(turn=1, prompt="both"))
    first, second = session.draft(), session.draft()
    first.resources.filesystem.write_text("a.txt", "one")
    second.resources.filesystem.write_text("a.txt", "two")
    first.resources.filesystem.write_text("a.txt", "three")
    second.commit("second")
    first.commit("first") if ends == "commit" else first.discard()
    session.record(TurnCommitted(turn=1))
    session.turn = None
    undone = await undo(desk.journal)
    assert (undone.failed, undone.irreversible) == ([], [])
    assert desk.tree() == {"a.txt": "zero"}


async def test_an_undo_that_was_cut_short_is_finished(desk: Desk) -> None:
    """The file is back, the record of it is not: it counts as done."""
    desk.files.write_text("a.txt", "zero")
    await desk.turn(write("a.txt", "one"))
    desk.files.write_text("a.txt", "zero")
    undone = await undo(desk.journal)
    assert undone.failed == [] and undone.irreversible == []
    assert desk.tree() == {"a.txt": "zero"}


async def test_file_write_takes_its_own_files_back_once(desk: Desk) -> None:
    desk.registry.register(file_write)
    session = desk.journal.session
    session.grant("file:write")
    session.turn = session.turn_count = 1
    session.record(TurnStarted(turn=1, prompt="write"))
    await desk.registry.execute("file_write", {"path": "d/a.txt", "content": "x"}, session=session)
    session.record(TurnCommitted(turn=1))
    session.turn = None
    undone = await undo(desk.journal, desk.registry)
    assert undone.compensated == ["The file holds the content"] and desk.tree() == {}
    told = [r.event for r in desk.store.read(session.id) if isinstance(r.event, Committed)]
    assert not any(one.resources for one in told)


async def test_an_imported_session_touches_no_file_unasked(desk: Desk, tmp_path: Path) -> None:
    desk.files.write_text("a.txt", "zero")
    await desk.turn(write("a.txt", "one"))
    await desk.journal.close()
    export_session(desk.store, desk.journal.session.id, tmp_path / "desk.narratoria")
    for asked, left in ((False, "one"), (True, "zero")):
        meta = import_session(desk.store, tmp_path / "desk.narratoria")
        desk.journal = desk.store.open(meta.id, resources=desk.resources())
        undone = await undo(desk.journal, imported=asked)
        assert bool(undone.irreversible) is not asked
        assert desk.tree() == {"a.txt": left}
        await desk.journal.close()


async def test_the_mode_of_a_deleted_script_comes_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "host")
    desk.files.write_text("run", "#!/bin/sh\n")
    (desk.folder / "run").chmod(0o750)
    await desk.turn(lambda files: files.delete("run"))
    await undo(desk.journal)
    assert (desk.folder / "run").stat().st_mode & 0o777 == 0o750
    desk.store.close()


def removed(files: Any) -> None:
    files.delete("d")


def made_again(files: Any) -> None:
    files.delete("d")
    files.write_text("d/inner", "x")


def replaced_by_a_file(files: Any) -> None:
    files.delete("d")
    files.write_text("d", "a file")


@pytest.mark.parametrize("act", [removed, made_again, replaced_by_a_file])
@pytest.mark.parametrize("mode", [0o700, 0o750, 0o2711])
async def test_a_removed_folder_comes_back_with_its_mode(tmp_path: Path, act: Act, mode: int) -> None:
    desk = Desk(tmp_path, "host")
    (desk.folder / "d").mkdir()
    (desk.folder / "d").chmod(mode)
    await desk.turn(act)
    await desk.again()
    undone = await undo(desk.journal)
    assert undone.failed == [] and undone.irreversible == []
    assert oct((desk.folder / "d").stat().st_mode & 0o7777) == oct(mode)
    desk.store.close()


@pytest.mark.parametrize("mode", [0o700, 0o600])
async def test_a_mode_comes_back_if_two_calls_deleted_and_made_the_same_content(
    tmp_path: Path, mode: int
) -> None:
    desk = Desk(tmp_path, "host")
    (desk.folder / "d").mkdir()
    (desk.folder / "f").write_text("x")
    for name in "df":
        (desk.folder / name).chmod(mode)

    def first(files: Any) -> None:
        files.delete("d")
        files.delete("f")

    def second(files: Any) -> None:
        files.mkdir("d")
        files.write_text("f", "x")

    steps = [first, second]
    desk.act = lambda files: steps.pop(0)(files)
    narrated = PlanDocument(
        request_id="p",
        tools=[
            PlannedCall(tool_id="one", tool_path="desk", input={}, retry_policy=NEVER),
            PlannedCall(tool_id="two", tool_path="desk", input={}, dependencies=["one"], retry_policy=NEVER),
        ],
    )

    class Twice:
        name = "twice"

        async def plan(self, request: NarratorRequest) -> PlanDocument:
            return narrated

    await take_turn(desk.journal.session, "both", narrator=Twice(), registry=desk.registry)
    assert steps == []
    assert (await undo(desk.journal)).failed == []
    assert [oct((desk.folder / name).stat().st_mode & 0o777) for name in "df"] == [oct(mode)] * 2
    desk.store.close()


async def test_a_link_put_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "host")
    await desk.turn(write("a.txt", "one"))
    (tmp_path / "secret").write_text("one")
    (desk.folder / "a.txt").unlink()
    (desk.folder / "a.txt").symlink_to(tmp_path / "secret")
    undone = await undo(desk.journal)
    assert "symbolic link" in undone.irreversible[0]
    assert (tmp_path / "secret").read_text() == "one"
    desk.store.close()


@pytest.mark.parametrize("reversible", [True, False])
async def test_a_file_named_by_an_effect_without_a_rollback_is_taken_back(
    desk: Desk, reversible: bool
) -> None:
    effect = StateChangeEffect(
        state="noted", apply=lambda: {"path": "a.txt"}, reversible=reversible, description="note"
    )
    noting = Tool[Nothing, None]("noting", "Notes.", desk.work, effects=[effect])
    desk.registry.register(noting)
    await desk.turn(write("a.txt", "a"), "noting")
    assert desk.tree() == {"a.txt": "a"}
    preview = await preview_undo(desk.journal, desk.registry)
    assert "file a.txt written" in preview.compensated
    await undo(desk.journal, desk.registry)
    assert desk.tree() == {}


async def test_a_file_named_by_an_effect_with_a_rollback_is_left_to_it(desk: Desk) -> None:
    effect = StateChangeEffect(
        state="noted", apply=lambda: {"path": "a.txt"}, rollback=lambda: None, description="note"
    )
    desk.registry.register(Tool[Nothing, None]("noting", "Notes.", desk.work, effects=[effect]))
    await desk.turn(write("a.txt", "a"), "noting")
    preview = await preview_undo(desk.journal, desk.registry)
    assert preview.compensated == ["note"]


async def test_a_preview_of_several_turns_says_what_undoing_them_one_by_one_does(desk: Desk) -> None:
    for text in "123":
        await desk.turn(write("folder/a.txt", text))
    previews = await preview_undo_to(desk.journal, 1, desk.registry)
    assert [(one.turn, one.staying) for one in previews] == [(3, []), (2, []), (1, [])]
    desk.files.write_text("folder/a.txt", "another's")  # then a turn on top of it
    await desk.turn(write("folder/a.txt", "4"))
    previews = await preview_undo_to(desk.journal, 1, desk.registry)
    assert [len(one.staying) for one in previews] == [0, 1, 1, 2], (
        "the file from the third turn down, and its folder"
    )
    done = await undo_to(desk.journal, 1, desk.registry)
    assert [[two.description for two in one.staying] for one in done] == [
        [two.description for two in one.staying] for one in previews
    ]
    assert desk.tree() == {"folder": None, "folder/a.txt": "another's"}
