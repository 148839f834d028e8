from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from runs.engine import clock


@pytest.fixture(autouse=True)
def own_clock() -> Iterator[None]:
    yield
    clock.AHEAD = timedelta()


@pytest.fixture
def nothing_sent() -> None:
    from tests.runs.posting import sent

    sent.clear()
