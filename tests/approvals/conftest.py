from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def emptied_afterwards(request: pytest.FixtureRequest) -> Iterator[None]:
    """A transactional test's rows are deleted after it, which append-only tables would refuse."""
    mark = request.node.get_closest_marker("django_db")
    if mark is None or not mark.kwargs.get("transaction"):
        yield
        return
    request.getfixturevalue("transactional_db")
    yield
    from runs import triggers

    triggers.remove()  # the flush that follows ends with post_migrate, which puts them back
