"""Places that are shared fairly between players and sessions."""

from __future__ import annotations

import asyncio

import pytest

from narratoria.kinds.shares.fair_queue import FairQueue, Place


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def served(places: list[tuple[str, Place]], clock: Clock, seconds: float = 1.0) -> list[str]:
    """Release each place a second after it was granted; return the names in the order in which they were served."""
    order = []
    waiting = [*places]
    while waiting:
        granted = [(name, place) for name, place in waiting if place.granted]
        assert granted, "somebody waits though nobody holds a place"
        clock.now += seconds
        for name, place in granted:
            order.append(name)
            waiting.remove((name, place))
            place.release()
    return order


def test_a_session_with_one_call_is_served_next_beside_one_with_many() -> None:
    clock = Clock()
    queue = FairQueue(1, clock=clock)
    places = [("many", queue.ask("", "many")) for _ in range(50)]
    places.append(("one", queue.ask("", "one")))
    assert served(places, clock).index("one") == 1


def test_players_share_before_their_sessions_do() -> None:
    clock = Clock()
    queue = FairQueue(1, clock=clock)
    places = [(f"a{at}", queue.ask("a", f"a{at}")) for at in range(6)]
    places += [("b", queue.ask("b", "b")) for _ in range(3)]
    order = served(places, clock)
    assert [name[0] for name in order[:6]].count("b") == 3, order


def test_place_time_is_shared_not_the_number_of_calls() -> None:
    clock = Clock()
    queue = FairQueue(1, clock=clock)
    waiting = [("slow", queue.ask("", "slow")) for _ in range(10)] + [
        ("fast", queue.ask("", "fast")) for _ in range(100)
    ]
    time = {"slow": 0.0, "fast": 0.0}
    while {name for name, _ in waiting} == {"slow", "fast"}:
        name, place = next(one for one in waiting if one[1].granted)
        clock.now += (took := 5.0 if name == "slow" else 0.5)
        time[name] += took
        waiting.remove((name, place))
        place.release()
    assert abs(time["slow"] - time["fast"]) <= 5.5, time


def test_one_that_comes_back_has_saved_nothing_up_and_owes_nothing_for_idle_times() -> None:
    clock = Clock()
    queue = FairQueue(1, clock=clock)
    served([("early", queue.ask("", "early")) for _ in range(20)], clock)  # nobody else wanted a place
    assert served([("early", queue.ask("", "early")), ("late", queue.ask("", "late"))], clock) == [
        "early",
        "late",
    ]
    busy = [("busy", queue.ask("", "busy")) for _ in range(20)]
    served(busy[:10], clock)
    back = [("back", queue.ask("", "back")) for _ in range(10)]
    assert served(busy[10:] + back, clock)[:8].count("back") == 4


def test_a_party_holds_no_more_than_it_may_and_does_not_block_others() -> None:
    queue = FairQueue(4)
    own = [queue.ask("p", "s", session_most=2) for _ in range(4)]
    assert [one.granted for one in own] == [True, True, False, False]
    other = queue.ask("p", "t", session_most=2)
    assert other.granted
    third = [queue.ask("q", "u", player_most=1) for _ in range(2)]
    assert [one.granted for one in third] == [True, False]
    own[0].release()
    assert own[2].granted
    for one in [*own, other, *third]:
        one.release()
    assert (queue.holding, queue.waiting) == (0, 0)


def test_one_that_leaves_the_queue_gives_its_place_to_the_next() -> None:
    queue = FairQueue(1)
    first, second, third = queue.ask("", "a"), queue.ask("", "b"), queue.ask("", "c")
    second.release()
    assert queue.waiting == 1
    first.release()
    first.release()
    assert third.granted
    assert queue.holding == 1
    third.release()
    assert queue.holding == 0


async def test_one_that_is_cancelled_the_moment_it_gets_its_place_gives_it_back() -> None:
    queue = FairQueue(1)
    first, second = queue.ask("", "a"), queue.ask("", "b")

    async def work() -> None:
        try:
            await second.wait()
        finally:
            second.release()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    first.release()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (queue.holding, queue.waiting) == (0, 0)


def test_the_expected_wait_counts_sessions_not_calls() -> None:
    clock = Clock()
    queue = FairQueue(2, clock=clock)
    assert queue.delay() == 0
    many = [queue.ask("", "many") for _ in range(1000)]
    clock.now += 4
    assert queue.delay() == pytest.approx(4.0), "two places, held for four seconds, one session ahead"
    others = [queue.ask("", f"s{at}") for at in range(20)]
    assert queue.delay() == pytest.approx(44.0)
    for one in [*others, *reversed(many)]:
        one.release()
    assert queue.delay() == 0


def test_random_use_never_leaks_a_place_or_goes_over_a_limit() -> None:
    import random

    draw, clock = random.Random(7), Clock()
    queue = FairQueue(5, clock=clock)
    held: list[tuple[str, Place]] = []
    for _ in range(5_000):
        clock.now += draw.random()
        if draw.random() < 0.5:
            player, session = draw.choice("abc"), draw.choice("123456")
            held.append((session, queue.ask(player, player + session, player_most=4, session_most=2)))
        elif held:
            held.pop(draw.randrange(len(held)))[1].release()
        granted = sum(place.granted for _, place in held)
        assert granted == queue.holding <= 5
        assert len(held) - granted == queue.waiting
    for _, place in held:
        place.release()
    assert (queue.holding, queue.waiting) == (0, 0)
