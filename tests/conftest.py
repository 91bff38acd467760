"""What holds for every test."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def signals_as_at_a_terminal() -> Iterator[None]:
    """What the tests start hears interrupt and hang-up, also where the suite itself was told to ignore them.

    `nohup` and a script's `&` ignore them, and an ignored signal is inherited. A handler that does nothing keeps the
    suite as deaf and is not inherited: exec makes it the default again.
    """
    ignored = [
        number for number in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_IGN
    ]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
