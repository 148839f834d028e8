"""Connections of the web process to PostgreSQL: kept open and shared, for a new one takes as long as many a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from durableweb import environment

if TYPE_CHECKING:
    from django.db.utils import ConnectionHandler


def share(connections: ConnectionHandler) -> None:
    """From now on each thread borrows its connection and gives it back at the end of its request.

    To be called before the first is opened, and only where nothing forks: a pool does not outlive that.
    """
    most = environment.whole("DURABLEWEB_WEB_CONNECTIONS", 20, least=0)
    chosen = connections.settings["default"]
    if chosen["ENGINE"] != environment.POSTGRESQL["ENGINE"] or not most:
        return
    chosen["OPTIONS"] |= {
        "pool": {"min_size": 1, "max_size": most, "timeout": 10},
        "prepare_threshold": None,  # one plan for all would suit neither who has few approvals nor who has very many
    }
