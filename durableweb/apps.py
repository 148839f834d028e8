from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class DurablewebConfig(AppConfig):
    name = "durableweb"

    def ready(self) -> None:
        from durableweb import checks as checks  # importing registers them
        from durableweb import shared_cache
        from durableweb.sign_in import checks as sign_in_checks  # noqa: F401

        post_migrate.connect(shared_cache.make_table, dispatch_uid="durableweb.shared_cache")
