from __future__ import annotations

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from approvals import live, receivers  # noqa: F401  importing the receivers is what connects them
        from approvals.sight import asked_or_heard
        from runs import sight, triggers

        sight.also(asked_or_heard)
        triggers.append_only("approvals_decision")
        triggers.append_only("approvals_activity")
        live.register()
