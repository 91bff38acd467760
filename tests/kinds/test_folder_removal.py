"""Folders of tools are removed whatever is in them."""

from __future__ import annotations

import os
from pathlib import Path

from narratoria.kinds.process.folder_removal import empty, remove


def nested(folder: Path, levels: int) -> None:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("inner", dir_fd=here)
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here))
        below = os.open("inner", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def test_a_folder_is_removed_however_deeply_it_is_nested(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "scratch", tmp_path / "elsewhere"
    for one in (folder, elsewhere, folder / "beside", folder / "closed", folder / "closed" / "below"):
        one.mkdir()
    (elsewhere / "kept").write_text("x")
    (folder / "link").symlink_to(elsewhere)
    (folder / "beside" / "link").symlink_to(elsewhere)
    os.mkfifo(folder / "beside" / "pipe")
    (folder / "closed" / "below").chmod(0)
    (folder / "closed").chmod(0)
    nested(folder, 1100)
    assert empty(str(folder))
    assert list(folder.iterdir()) == []
    nested(folder, 3)
    assert remove(str(folder))
    assert not folder.exists()
    assert (elsewhere / "kept").exists(), "no link is followed"
    assert remove(str(folder)), "it is gone already"
    (tmp_path / "link").symlink_to(elsewhere)
    assert not remove(str(tmp_path / "link"))
