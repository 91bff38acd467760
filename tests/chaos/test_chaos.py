"""Chaos in short: a few seeds of each kind. `make chaos` plays thousands; `scripts/chaos.py` repeats one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.chaos import database, faults, fuzzing
from tests.chaos.games import play_functions
from tests.chaos.leaks import Watch
from tests.chaos.processes import play_processes
from tests.chaos.scenarios import PROCESS_ENDINGS, Lot

from narratoria.store.sqlite import SqliteStore

PATIENCE = 20.0  # other tests run beside these
MANY = pytest.mark.slow


@pytest.mark.parametrize("seeds", [range(15), pytest.param(range(15, 400), marks=MANY)])
def test_games_with_functions_that_misbehave_end_as_the_model_says(tmp_path: Path, seeds: range) -> None:
    store = SqliteStore(tmp_path / "sessions.db")
    for seed in seeds:
        asyncio.run(play_functions(Lot(seed).scenario(), store, f"seed{seed}", PATIENCE))
    assert store.table_faults() == []
    store.close()


@pytest.mark.parametrize("seeds", [range(3, 5), pytest.param(range(5, 40), marks=MANY)])
def test_games_with_processes_that_misbehave_leave_nothing(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        scenario = Lot(seed, PROCESS_ENDINGS, "process").scenario(moves=4, calls=3)
        asyncio.run(play_processes(scenario, tmp_path / str(seed), PATIENCE))
        if seed == seeds.start:
            watch = Watch()
    assert watch.faults() == []


@pytest.mark.parametrize("seeds", [range(4, 5), pytest.param(range(5, 25), marks=MANY)])
def test_a_game_with_faults_at_the_boundaries_loses_nothing(tmp_path: Path, seeds: range) -> None:
    for seed in seeds:
        (tmp_path / str(seed)).mkdir()
        faults.play_seed(seed, tmp_path / str(seed), postgres=False)


@MANY
@pytest.mark.postgres
def test_a_game_whose_database_restarts_loses_nothing(tmp_path: Path) -> None:
    if database.postgres_server() is None:
        pytest.skip("NO POSTGRESQL: install the package postgresql")
    for seed in (10, 20):
        (tmp_path / str(seed)).mkdir()
        faults.play_seed(seed, tmp_path / str(seed))


@pytest.mark.parametrize("cases", [300, pytest.param(20_000, marks=MANY)])
@pytest.mark.parametrize("target", [*fuzzing.TARGETS])
def test_damaged_documents_are_read_or_refused(target: str, cases: int) -> None:
    if target in fuzzing.COSTLY:
        cases //= 20
    with fuzzing.bounded(), fuzzing.opened(target):
        found = [(number, fault) for number in range(cases) if (fault := fuzzing.case(target, number))]
    assert found == []
