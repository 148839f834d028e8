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


@pytest.fixture
def trips_known() -> Iterator[None]:
    """The graphs of tests/runs/trips.py are registered, and nothing has happened on a trip."""
    from tests.runs.driving import registered  # models cannot be imported when this file is read
    from tests.runs.travel import happened, moods
    from tests.runs.trips import kept, trip

    happened.clear()
    moods.clear()
    with registered(trip, kept):
        yield


@pytest.fixture
def empty_workshop() -> Iterator[None]:
    """The graphs of tests/runs/workshop.py are registered, and nothing has been made there."""
    from tests.runs.driving import registered
    from tests.runs.workshop import ALL, done, faults, under

    done.clear()
    under.clear()
    faults.clear()
    with registered(*ALL):
        yield


@pytest.fixture
def empty_till() -> None:
    from tests.runs.till import declined, done

    done.clear()
    declined.clear()


@pytest.fixture
def payments_known() -> Iterator[None]:
    """The graphs of tests/runs/payments.py are registered."""
    from tests.runs.driving import registered
    from tests.runs.payments import paid, timed

    with registered(paid, timed):
        yield


@pytest.fixture
def nothing_bought() -> None:
    from tests.runs.buying import sent

    sent.clear()
