"""What the engine wants before it begins: secrets that can be read, and a trail that cannot be changed unseen."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections

from runs import secrets
from runs.engine import triggers
from runs.secret_places import SecretsUnreadable

ENGINE = "engine"  # the tag of checks that each of our commands makes before it begins


@register(ENGINE)
def secrets_can_be_read(app_configs: object = None, **_: object) -> list[CheckMessage]:
    """Before any command: a process that does not know the secrets could neither pass on nor refuse them."""
    try:
        secrets.known()
    except SecretsUnreadable as error:
        hint = "Every process needs them, pages too: see docs/settings.md."
        return [Error(str(error), hint=hint, id="durableweb.E050")]
    return []


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
