"""The choices after a turn."""

from __future__ import annotations

from narratoria.play.offering import in_their_order


def test_choices_that_were_offered_before_keep_their_order() -> None:
    before = ["Look up at the tower", "Go inside", "Listen"]
    assert in_their_order(["Listen", "Go inside"], before) == ["Go inside", "Listen"]
    assert in_their_order(["Listen", "Ring the bell", "Go inside"], before) == [
        "Go inside",
        "Ring the bell",
        "Listen",
    ]
    assert in_their_order(["Wait"], before) == ["Wait"]
    assert in_their_order(["Wait", "Sleep"], []) == ["Wait", "Sleep"]
