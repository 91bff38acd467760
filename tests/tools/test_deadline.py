"""When an evaluation must end and how much it may use (002 `deadline`, `budget_tracker`)."""

from __future__ import annotations

import threading

import pytest

from narratoria.errors import BudgetExceededError, DeadlineExceededError
from narratoria.tools.deadline import Budget, BudgetTracker, Deadline


class Clock:
    """A clock the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_deadline_counts_down_and_stops_at_zero(clock: Clock) -> None:
    deadline = Deadline.after(5, clock)
    assert deadline.at == 105
    assert deadline.remaining() == 5
    clock.now = 103
    assert deadline.remaining() == 2
    assert not deadline.expired
    clock.now = 110
    assert deadline.remaining() == 0
    assert deadline.expired


def test_a_passed_deadline_refuses_and_says_by_how_much(clock: Clock) -> None:
    deadline = Deadline.after(5, clock)
    deadline.check()
    clock.now = 107.5
    with pytest.raises(DeadlineExceededError, match=r"light_torch was not begun: .* 2\.500 s ago"):
        deadline.check("light_torch")


def test_the_moment_itself_is_too_late(clock: Clock) -> None:
    deadline = Deadline.after(0, clock)
    assert deadline.expired
    with pytest.raises(DeadlineExceededError):
        deadline.check()


def test_a_step_gets_the_shorter_of_its_timeout_and_what_is_left(clock: Clock) -> None:
    deadline = Deadline.after(5, clock)
    assert deadline.within(30) == 5
    assert deadline.within(2) == 2
    assert deadline.within(None) == 5


def test_a_part_never_ends_later_than_the_whole(clock: Clock) -> None:
    deadline = Deadline.after(5, clock)
    assert deadline.earlier(2).at == 102
    assert deadline.earlier(60).at == 105


def test_a_real_clock_is_the_default() -> None:
    assert 59 < Deadline.after(60).remaining() <= 60
    assert Deadline.after(-1).expired


def test_not_a_number_is_not_a_moment() -> None:
    with pytest.raises(ValueError, match="NaN"):
        Deadline(float("nan"))


def test_a_budget_without_bounds_never_runs_out() -> None:
    tracker = BudgetTracker(Budget())
    tracker.spend(calls=10**6, input_tokens=10**9, cost=1e6)
    tracker.check()
    assert tracker.remaining == Budget()


def test_what_is_left_is_told_bound_by_bound(clock: Clock) -> None:
    tracker = BudgetTracker(Budget(max_calls=3, max_tokens=100, max_cost=1.0, max_seconds=60.0), clock)
    tracker.spend(calls=1, input_tokens=30, output_tokens=10, cost=0.25)
    clock.now += 15
    assert tracker.remaining == Budget(max_calls=2, max_tokens=60, max_cost=0.75, max_seconds=45.0)
    assert tracker.used.tokens == 40


@pytest.mark.parametrize(
    ("budget", "use", "named"),
    [
        (Budget(max_calls=2), {"calls": 3}, "calls 3 of 2"),
        (Budget(max_tokens=10), {"input_tokens": 6, "output_tokens": 6}, "tokens 12 of 10"),
        (Budget(max_tokens=10), {"tokens": 11}, "tokens 11 of 10"),
        (Budget(max_input_tokens=5), {"input_tokens": 6}, "input_tokens 6 of 5"),
        (Budget(max_output_tokens=5), {"output_tokens": 6}, "output_tokens 6 of 5"),
        (Budget(max_cost=0.5), {"cost": 0.75}, "cost 0.75 of 0.5"),
    ],
)
def test_overspending_raises_names_the_bound_and_is_still_counted(
    budget: Budget, use: dict[str, int], named: str
) -> None:
    tracker = BudgetTracker(budget)
    with pytest.raises(BudgetExceededError, match=named):
        tracker.spend(**use)
    with pytest.raises(BudgetExceededError, match=named):
        tracker.check()


def test_spending_all_of_it_is_allowed_and_the_next_call_is_not(clock: Clock) -> None:
    tracker = BudgetTracker(Budget(max_calls=2), clock)
    tracker.spend(calls=2)
    with pytest.raises(BudgetExceededError, match="used up: calls 2 of 2"):
        tracker.check()


def test_time_is_part_of_the_budget(clock: Clock) -> None:
    tracker = BudgetTracker(Budget(max_seconds=10), clock)
    clock.now += 9
    tracker.check()
    clock.now += 1
    with pytest.raises(BudgetExceededError, match="seconds 10 of 10"):
        tracker.check()


def test_admission_counts_a_call_and_minds_every_bound() -> None:
    tracker = BudgetTracker(Budget(max_calls=2, max_tokens=10))
    tracker.admit()
    tracker.admit()
    with pytest.raises(BudgetExceededError, match="calls 2 of 2"):
        tracker.admit()
    assert tracker.used.calls == 2
    spent = BudgetTracker(Budget(max_tokens=10))
    spent.spend(tokens=10)
    with pytest.raises(BudgetExceededError, match="tokens 10 of 10"):
        spent.admit()


def test_threads_at_once_are_admitted_exactly_as_often_as_the_budget_says() -> None:
    tracker = BudgetTracker(Budget(max_calls=500))
    admitted: list[int] = []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        for _ in range(100):
            try:
                tracker.admit()
            except BudgetExceededError:
                continue
            admitted.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(admitted) == 500
    assert tracker.used.calls == 500


@pytest.mark.parametrize("use", [{"calls": -1}, {"cost": -0.1}, {"tokens": -5}, {"cost": float("nan")}])
def test_nothing_is_given_back(use: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be 0 or more"):
        BudgetTracker(Budget()).spend(**use)


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="max_cost must be 0 or more"):
        Budget(max_cost=-1)
