"""The two filesystems: what they can do, where they end, and how a failing call's writes are taken back."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from narratoria.session.resources.filesystem import Filesystem
from narratoria.session.resources.host_filesystem import HostFilesystem
from narratoria.session.resources.host_folder import PathRefusedError
from narratoria.session.resources.memory_filesystem import MemoryFilesystem

Files = HostFilesystem | MemoryFilesystem


def names_in(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


@pytest.fixture(params=["host", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    return HostFilesystem(tmp_path) if request.param == "host" else MemoryFilesystem()


def test_both_kinds_are_filesystems(files: Files) -> None:
    assert isinstance(files, Filesystem)


def test_text_and_bytes_come_back_as_written(files: Files) -> None:
    files.write_text("a/deep/note.txt", "Käse\n")
    files.write_bytes("raw", b"\0\xff")
    assert files.read_text("a/deep/note.txt") == "Käse\n"
    assert files.read_bytes("a/deep/note.txt") == "Käse\n".encode()
    assert files.read_bytes("raw") == b"\0\xff"
    files.write_text("latin", "Käse", encoding="latin-1")
    assert files.read_bytes("latin") == b"K\xe4se"


def test_listing_is_sorted_and_one_level_deep(files: Files) -> None:
    for path in ("b.txt", "a/x.txt", "a/y/z.txt"):
        files.write_text(path, "")
    assert files.list() == ["a", "b.txt"]
    assert files.list("a") == ["x.txt", "y"]
    assert files.is_dir("a/y")
    assert not files.is_dir("b.txt")


def test_glob_knows_stars_within_a_part_and_double_stars_across(files: Files) -> None:
    for path in ("b.txt", "a/x.txt", "a/y/z.txt", "a/y/z.md"):
        files.write_text(path, "")
    assert files.glob("*.txt") == ["b.txt"]
    assert files.glob("**/*.txt") == ["a/x.txt", "a/y/z.txt", "b.txt"]
    assert files.glob("a/**") == ["a/x.txt", "a/y", "a/y/z.md", "a/y/z.txt"]
    assert files.glob("a/?/z.[mt]*") == ["a/y/z.md", "a/y/z.txt"]
    assert files.glob("nowhere/*") == []


def test_missing_things_raise_the_errors_everybody_knows(files: Files) -> None:
    files.mkdir("d")
    files.write_text("f", "")
    files.write_text("d/f", "")
    with pytest.raises(FileNotFoundError):
        files.read_text("nothing")
    with pytest.raises(FileNotFoundError):
        files.delete("nothing")
    with pytest.raises(FileNotFoundError):
        files.list("nothing")
    with pytest.raises(IsADirectoryError):
        files.read_text("d")
    with pytest.raises(IsADirectoryError):
        files.write_text("d", "")
    with pytest.raises(NotADirectoryError):
        files.write_text("f/x", "")
    with pytest.raises(NotADirectoryError):
        files.mkdir("f")
    with pytest.raises(NotADirectoryError):
        files.list("f")
    with pytest.raises(OSError, match="not empty"):
        files.delete("d")
    assert not files.exists("f/x")


def test_deleting_takes_a_file_or_an_empty_directory(files: Files) -> None:
    files.write_text("d/f", "")
    files.delete("d/f")
    files.delete("d")
    assert files.list() == []


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "a\0b", "x" * 5000, "a/../b"])
def test_a_path_that_leaves_the_root_or_is_none_is_refused(files: Files, path: str) -> None:
    acts: list[Callable[[str], object]] = [
        files.read_text, files.exists, files.list, files.delete, files.mkdir, files.glob,
        lambda path: files.write_text(path, "x"),
    ]  # fmt: skip
    for act in acts:
        with pytest.raises(PathRefusedError):
            act(path)


def test_the_root_itself_is_not_written_or_deleted(files: Files) -> None:
    for act in (files.delete, lambda path: files.write_text(path, "")):
        with pytest.raises(PathRefusedError, match="root"):
            act(".")


# --- the host --------------------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path) -> tuple[HostFilesystem, Path]:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.txt").write_text("secret")
    (tmp_path / "root" / "way-out").symlink_to(tmp_path / "secret")
    (tmp_path / "root" / "leak.txt").symlink_to(tmp_path / "secret" / "key.txt")
    return HostFilesystem(tmp_path / "root"), tmp_path


def test_a_symbolic_link_leads_nowhere(outside: tuple[HostFilesystem, Path]) -> None:
    files, tmp_path = outside
    for act in (
        lambda: files.read_text("leak.txt"),
        lambda: files.read_text("way-out/key.txt"),
        lambda: files.write_text("leak.txt", "overwritten"),
        lambda: files.write_text("way-out/new.txt", "planted"),
        lambda: files.mkdir("way-out/dir"),
        lambda: files.delete("way-out/key.txt"),
        lambda: files.list("way-out"),
        lambda: files.exists("way-out/key.txt"),
    ):
        with pytest.raises(PathRefusedError, match="symbolic link"):
            act()
    assert (tmp_path / "secret" / "key.txt").read_text() == "secret"
    assert names_in(tmp_path / "secret") == ["key.txt"]
    assert files.list() == []
    assert files.glob("**") == []


def test_a_link_swapped_in_while_writing_cannot_redirect_the_write(tmp_path: Path) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret"
    (root / "d").mkdir(parents=True)
    secret.mkdir()
    files = HostFilesystem(root)
    stop = threading.Event()
    refused = 0

    def swap() -> None:
        while not stop.is_set():
            with suppress(OSError):  # the writer makes the directory again at any moment
                shutil.rmtree(root / "d")
                (root / "d").symlink_to(secret)
                (root / "d").unlink()
                (root / "d").mkdir()

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(300):
            try:
                files.write_text(f"d/{number % 5}.txt", "x")
            except (PathRefusedError, OSError):
                refused += 1
    finally:
        stop.set()
        thread.join()
    assert refused
    assert names_in(secret) == []


def test_a_named_pipe_neither_hangs_nor_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PathRefusedError, match="neither a file nor a directory"):
        HostFilesystem(tmp_path).read_bytes("pipe")


def test_the_root_must_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        HostFilesystem(tmp_path / "nowhere")


def test_an_overwrite_keeps_the_file_s_mode_and_leaves_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("old")
    (tmp_path / "run.sh").chmod(0o750)
    HostFilesystem(tmp_path).write_text("run.sh", "new")
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o750
    assert names_in(tmp_path) == ["run.sh"]


def test_a_write_that_fails_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    (tmp_path / "note").write_text("old")
    files = HostFilesystem(tmp_path)
    draft = files.draft()
    with pytest.raises(TypeError):
        draft.write_bytes("note", "not bytes")  # type: ignore[arg-type]
    assert draft.discard() == []
    assert names_in(tmp_path) == ["note"]
    assert (tmp_path / "note").read_text() == "old"


# --- drafts ----------------------------------------------------------------------------------------------


def tree(files: Files) -> dict[str, str]:
    return {path: "" if files.is_dir(path) else files.read_text(path) for path in files.glob("**")}


def test_a_discard_takes_back_new_changed_and_deleted_files(files: Files) -> None:
    files.write_text("changed", "before")
    files.write_text("dir/deleted", "before")
    files.mkdir("empty")
    before = tree(files)
    draft = files.draft()
    draft.write_text("new/deep/file", "x")
    draft.write_text("changed", "1")
    draft.write_text("changed", "2")
    draft.delete("dir/deleted")
    draft.delete("dir")
    draft.delete("empty")
    draft.mkdir("made/here")
    assert tree(draft) == {
        "changed": "2",
        "made": "",
        "made/here": "",
        "new": "",
        "new/deep": "",
        "new/deep/file": "x",
    }
    assert not draft.discard()
    assert tree(files) == before


def test_a_commit_keeps_everything(files: Files) -> None:
    files.write_text("old", "before")
    draft = files.draft()
    draft.write_text("new/file", "x")
    draft.delete("old")
    draft.commit()
    assert not draft.discard()
    assert tree(files) == {"new": "", "new/file": "x"}


def test_a_sibling_s_files_stay_when_a_call_fails(files: Files) -> None:
    failing, sibling = files.draft(), files.draft()
    failing.write_text("shared/mine", "x")
    sibling.write_text("shared/theirs", "y")
    sibling.commit()
    failing.discard()
    assert {path: text for path, text in tree(files).items() if text} == {"shared/theirs": "y"}


def test_a_directory_shared_by_two_failing_calls_goes_with_the_last(files: Files) -> None:
    first, second = files.draft(), files.draft()
    first.write_text("shared/one", "x")
    second.write_text("shared/two", "y")
    assert not first.discard()
    assert not second.discard()
    assert tree(files) == {}


@pytest.mark.parametrize("order", ["the first writer first", "the last writer first"])
def test_two_failing_calls_that_wrote_one_file_leave_what_was_there(files: Files, order: str) -> None:
    files.write_text("note", "before")
    first, second = files.draft(), files.draft()
    first.write_text("note", "first")
    second.write_text("note", "second")
    first.write_text("note", "first again")
    for draft in (first, second) if order == "the first writer first" else (second, first):
        draft.discard()
    assert files.read_text("note") == "before"


def test_a_committed_write_over_a_failing_one_stands(files: Files) -> None:
    files.write_text("note", "before")
    failing, sibling = files.draft(), files.draft()
    failing.write_text("note", "failing")
    sibling.write_text("note", "sibling")
    sibling.commit()
    failing.discard()
    assert files.read_text("note") == "sibling"


def test_a_failing_write_over_a_committed_one_brings_that_back(files: Files) -> None:
    files.write_text("note", "before")
    sibling, failing = files.draft(), files.draft()
    sibling.write_text("note", "sibling")
    failing.write_text("note", "failing")
    sibling.commit()
    failing.discard()
    assert files.read_text("note") == "sibling"


def test_a_nested_discard_brings_back_what_the_outer_call_wrote(files: Files) -> None:
    files.write_text("note", "before")
    outer = files.draft()
    outer.write_text("note", "outer")
    inner = outer.draft()
    inner.write_text("note", "inner")
    inner.write_text("new", "inner")
    inner.discard()
    assert outer.read_text("note") == "outer"
    assert not outer.exists("new")
    outer.discard()
    assert tree(files) == {"note": "before"}


def test_a_nested_commit_is_taken_back_with_the_outer_call(files: Files) -> None:
    files.write_text("note", "before")
    outer = files.draft()
    outer.write_text("note", "outer")
    inner = outer.draft()
    inner.write_text("note", "inner")
    inner.write_text("new/file", "inner")
    inner.commit()
    assert outer.read_text("note") == "inner"
    assert not outer.discard()
    assert tree(files) == {"note": "before"}


def test_a_nested_commit_is_kept_with_the_outer_call(files: Files) -> None:
    outer = files.draft()
    inner = outer.draft()
    inner.write_text("new/file", "inner")
    inner.commit()
    outer.commit()
    assert tree(files) == {"new": "", "new/file": "inner"}


def test_what_another_program_changed_meanwhile_is_left_and_said(tmp_path: Path) -> None:
    files = HostFilesystem(tmp_path)
    draft = files.draft()
    draft.write_text("note", "mine")
    (tmp_path / "note").write_text("written by a process")
    (problem,) = draft.discard()
    assert problem.startswith("note was left as it is")
    assert (tmp_path / "note").read_text() == "written by a process"


def test_a_directory_another_program_filled_is_left_and_said(tmp_path: Path) -> None:
    draft = HostFilesystem(tmp_path).draft()
    draft.mkdir("d")
    (tmp_path / "d" / "theirs").write_text("")
    (problem,) = draft.discard()
    assert "directory d was left" in problem
    assert (tmp_path / "d" / "theirs").exists()


def test_a_deleted_file_comes_back_with_its_mode(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("x")
    (tmp_path / "run.sh").chmod(0o750)
    draft = HostFilesystem(tmp_path).draft()
    draft.delete("run.sh")
    draft.discard()
    assert (tmp_path / "run.sh").stat().st_mode & 0o777 == 0o750


def test_a_draft_that_is_over_changes_no_file(tmp_path: Path) -> None:
    files = HostFilesystem(tmp_path)
    for end in (HostFilesystem.commit, HostFilesystem.discard):
        draft = files.draft()
        end(draft)
        with pytest.raises(PathRefusedError, match="the call is over"):
            draft.write_text("late", "x")
    assert names_in(tmp_path) == []


def test_a_memory_draft_is_seen_by_nobody_else_before_its_commit() -> None:
    files = MemoryFilesystem({"a": "1"})
    draft, sibling = files.draft(), files.draft()
    draft.write_text("a", "2")
    draft.write_text("b", "2")
    assert sibling.read_text("a") == "1"
    assert not sibling.exists("b")


def test_a_file_where_a_sibling_made_a_directory_is_not_kept_and_that_is_said() -> None:
    files = MemoryFilesystem()
    first, second = files.draft(), files.draft()
    first.write_text("x", "a file")
    first.write_text("y", "kept")
    second.write_text("x/inside", "a directory")
    assert second.commit() == []
    (problem,) = first.commit()
    assert problem.startswith("x was not kept")
    assert tree(files) == {"x": "", "x/inside": "a directory", "y": "kept"}


def test_a_directory_deleted_in_a_draft_stays_when_a_sibling_filled_it() -> None:
    files = MemoryFilesystem()
    files.mkdir("d")
    draft, sibling = files.draft(), files.draft()
    draft.delete("d")
    sibling.write_text("d/x", "x")
    sibling.commit()
    draft.commit()
    assert files.read_text("d/x") == "x"


def test_committed_writes_leave_no_history_behind(tmp_path: Path) -> None:
    files = HostFilesystem(tmp_path)
    for number in range(20):
        draft = files.draft()
        draft.write_text(f"d{number % 3}/f", "x")
        draft.commit() if number % 2 else draft.discard()
    files.write_text("direct", "x")
    assert files._history._chains == {}


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0o000)
    yield
    os.umask(before)


def removed(files: HostFilesystem) -> None:
    files.delete("d")


def made_again(files: HostFilesystem) -> None:
    files.delete("d")
    files.mkdir("d")


def filled_again(files: HostFilesystem) -> None:
    files.delete("d")
    files.write_text("d/inner", "x")


def replaced_by_a_file(files: HostFilesystem) -> None:
    files.delete("d")
    files.write_text("d", "a file")


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("act", [removed, made_again, filled_again, replaced_by_a_file])
@pytest.mark.parametrize("mode", [0o700, 0o711, 0o2750])
def test_a_folder_that_a_failed_call_removed_comes_back_with_its_mode(
    tmp_path: Path, act: Callable[[HostFilesystem], None], mode: int
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(mode)
    draft = HostFilesystem(tmp_path).draft()
    act(draft)
    assert draft.discard() == []
    assert oct((tmp_path / "d").stat().st_mode & 0o7777) == oct(mode)
    assert names_in(tmp_path) == ["d"]


@pytest.mark.usefixtures("open_umask")
def test_a_call_that_deletes_and_makes_again_keeps_the_mode(tmp_path: Path) -> None:
    files = HostFilesystem(tmp_path)
    files.mkdir("d")
    files.write_text("f", "x")
    (tmp_path / "d").chmod(0o711)
    (tmp_path / "f").chmod(0o600)
    draft = files.draft()
    draft.delete("d")
    draft.mkdir("d")
    draft.delete("f")
    draft.write_text("f", "x")
    assert draft.changes() == []
    draft.commit()
    assert [oct((tmp_path / name).stat().st_mode & 0o777) for name in "df"] == ["0o711", "0o600"]


def test_a_deleted_file_comes_back_though_another_call_removed_its_folder(tmp_path: Path) -> None:
    files = HostFilesystem(tmp_path)
    files.write_text("d/e/y.txt", "precious")
    failing, other = files.draft(), files.draft()
    failing.delete("d/e/y.txt")
    other.delete("d/e")
    other.delete("d")
    other.commit()
    assert failing.discard() == []
    assert files.read_text("d/e/y.txt") == "precious"


def test_a_file_that_cannot_be_put_back_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    files = HostFilesystem(tmp_path)
    files.write_text("a.txt", "first")
    files.write_text("d/y.txt", "lost")
    failing = files.draft()
    failing.write_text("a.txt", "second")
    failing.delete("d/y.txt")
    (tmp_path / "d").rmdir()
    (tmp_path / "d").write_text("somebody else's")
    problems = failing.discard()
    assert len(problems) == 1
    assert "d/y.txt" in problems[0]
    assert files.read_text("a.txt") == "first"


def test_a_directory_made_anew_by_the_failing_call_goes_with_its_files(tmp_path: Path) -> None:
    """The directory's last change comes after those of files in it, which are still there when its turn comes."""
    files = HostFilesystem(tmp_path)
    files.write_text("d/old.txt", "old")
    failing = files.draft()
    failing.write_text("d/new.txt", "new")
    failing.delete("d/new.txt")
    failing.delete("d/old.txt")
    failing.delete("d")
    other = files.draft()
    other.write_text("d/new.txt", "other")
    failing.mkdir("d")
    failing.write_text("d/new.txt", "again")
    other.discard()
    failing.discard()
    assert files.glob("**") == ["d", "d/old.txt"]
    assert files._history._chains == {}


CHANGES_OF_KIND = {
    "file to folder": ({"x": "1"}, [("delete", "x"), ("mkdir", "x")], {"x": None}),
    "file to folder with a file": (
        {"x": "1"},
        [("delete", "x"), ("write_text", "x/y", "2")],
        {"x": None, "x/y": "2"},
    ),
    "folder to file": (
        {"x/y": "1"},
        [("delete", "x/y"), ("delete", "x"), ("write_text", "x", "2")],
        {"x": "2"},
    ),
    "back and forth": (
        {"x": "1"},
        [
            ("delete", "x"),
            ("mkdir", "x"),
            ("delete", "x"),
            ("write_text", "x", "2"),
            ("delete", "x"),
            ("mkdir", "x"),
        ],
        {"x": None},
    ),
}


@pytest.mark.parametrize(("before", "steps", "after"), CHANGES_OF_KIND.values(), ids=CHANGES_OF_KIND)
@pytest.mark.parametrize("nested", [False, True])
def test_what_becomes_of_another_kind_within_one_call_is_kept(
    files: Files,
    before: dict[str, str],
    steps: list[tuple[str, ...]],
    after: dict[str, str | None],
    nested: bool,
) -> None:
    for path, content in before.items():
        files.write_text(path, content)
    outer = files.draft()
    draft = outer.draft() if nested else outer
    for verb, *given in steps:
        getattr(draft, verb)(*given)
    assert not draft.commit() and not (nested and outer.commit())
    assert {path: None if files.is_dir(path) else files.read_text(path) for path in files.glob("**")} == after


def test_what_another_call_wrote_meanwhile_stays_where_a_memory_draft_changes_the_kind() -> None:
    files = MemoryFilesystem({"x": "1"})
    draft, sibling = files.draft(), files.draft()
    draft.delete("x")
    draft.mkdir("x")
    sibling.delete("x")
    sibling.write_text("x/y", "theirs")
    assert not sibling.commit() and not draft.commit()
    assert files.read_text("x/y") == "theirs"
