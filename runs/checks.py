"""A database whose append-only triggers are gone can be changed without a trace: say so."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import connections

from runs.engine import triggers


@register(Tags.database)
def triggers_in_place(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """Run by `manage.py check --database default`, and before each migrate, which puts them back: so no error."""
    found: list[CheckMessage] = []
    for using in databases or ():
        tables = set(connections[using].introspection.table_names())
        if "runs_checkpoint" in tables and (missing := triggers.missing(using)):
            found.append(
                Warning(
                    f"The database {using!r} lacks the triggers {', '.join(missing)}.",
                    hint="Run `manage.py migrate`: it puts them back.",
                    id="runs.W001",
                )
            )
    return found
