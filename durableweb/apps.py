from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper


class DurablewebConfig(AppConfig):
    name = "durableweb"

    def ready(self) -> None:
        from durableweb import checks as checks  # importing registers them
        from durableweb import shared_cache
        from durableweb.sign_in import checks as sign_in_checks  # noqa: F401

        post_migrate.connect(shared_cache.make_table, dispatch_uid="durableweb.shared_cache")
        connection_created.connect(_quicken, dispatch_uid="durableweb.moments")


def _quicken(connection: BaseDatabaseWrapper, **_: object) -> None:
    if connection.vendor == "postgresql":
        from durableweb import moments  # it loads the driver

        moments.quicken(connection)
