"""What a server says when the page's typefaces cannot be cut."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from narratoria.web.fonts import cut_fonts


@pytest.mark.parametrize(
    ("cutter", "cause"),
    [
        ("#!/bin/sh\nexit 3\n", "ended with exit code 3 and said nothing"),
        ("#!/bin/sh\nkill -9 $$\n", "ended by SIGKILL"),
        ("#!/bin/sh\necho 'OSError: no room' >&2\nexit 1\n", "OSError: no room"),
        (None, "No such file or directory"),
    ],
)
async def test_a_failure_to_cut_them_is_logged_with_its_cause(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    cutter: str | None,
    cause: str,
) -> None:
    python = tmp_path / "python"
    if cutter is not None:
        python.write_text(cutter)
        python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    assert await cut_fonts(tmp_path / "fonts") is False
    assert cause in caplog.text
