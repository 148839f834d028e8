"""What slows the inbox down and nothing else tells."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.checks import CheckMessage, Tags, Warning, register

from approvals import search_index


@register(Tags.database)
def search_is_indexed(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """Run by `manage.py check --database default`. A search finds the same without them, only later."""
    return [
        Warning(
            f"The database {using!r} lacks {', '.join(lacking)}: a search of the inbox reads row by row.",
            hint=f"Let its administrator run `CREATE EXTENSION {search_index.EXTENSION}` in it, then run"
            " `manage.py migrate`: it makes them.",
            id="durableweb.W031",
        )
        for using in databases or ()
        if (lacking := search_index.missing(using))
    ]
