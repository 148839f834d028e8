from __future__ import annotations

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from approvals import receivers  # noqa: F401  importing it is what connects it
        from approvals.sight import asked_or_heard
        from runs import sight, triggers

        sight.also(asked_or_heard)
        triggers.append_only("approvals_decision")
        triggers.append_only("approvals_activity")
