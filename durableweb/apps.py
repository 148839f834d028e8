from __future__ import annotations

from django.apps import AppConfig


class DurablewebConfig(AppConfig):
    name = "durableweb"

    def ready(self) -> None:
        from durableweb import checks  # noqa: F401  importing registers them
        from durableweb.sign_in import checks as sign_in_checks  # noqa: F401
