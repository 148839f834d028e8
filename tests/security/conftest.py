from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from runs import secrets
from runs.engine import clock
from tests.approvals.conftest import uncounted as uncounted


@pytest.fixture(autouse=True)
def own_clock() -> Iterator[None]:
    yield
    clock.AHEAD = timedelta()


@pytest.fixture
def letters_known() -> Iterator[None]:
    """The graph `letters` is registered, and nothing is posted afterwards."""
    from tests.runs.driving import registered  # models cannot be imported when this file is read
    from tests.security.letters import letters, posted

    with registered(letters):
        yield
    posted.clear()


@pytest.fixture
def run(letters_known: None):
    """A run that waits for its letter to be approved."""
    from tests.security.letters import waiting_letter

    return waiting_letter()


@pytest.fixture
def alone(uncounted: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of the page of one approval: the list beside it is empty, and costs nothing."""
    from approvals.counting import Count
    from approvals.listing import Listing

    monkeypatch.setattr(Listing, "rows", [])
    monkeypatch.setattr(Listing, "count", Count(0))


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A secret of the installation, known by the name CANARY."""
    from tests.security.canary import CANARY  # models cannot be imported when this file is read

    with monkeypatch.context() as patched:
        patched.setenv("DURABLEWEB_SECRET_CANARY", CANARY)
        secrets.forget()
        yield CANARY
    secrets.forget()


@pytest.fixture
def root(db: None):
    """Who may see everything."""
    from django.contrib.auth.models import User

    return User.objects.create_superuser("root", "root@example.com", "root")
