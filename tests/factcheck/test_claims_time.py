"""A narration is somebody else's text: reading its claims takes time in proportion to its length."""

from __future__ import annotations

import time

import pytest

from narratoria.factcheck.claims import claims


@pytest.mark.parametrize("piece", ["a", "'a", "1", "-", "you go" + " " * 7_000, "you hold the" + " " * 3_000])
def test_a_hostile_narration_is_read_at_once(piece: str) -> None:
    begun = time.perf_counter()
    claims((piece * 8_000)[:8_000])
    assert time.perf_counter() - begun < 1  # it took five seconds
