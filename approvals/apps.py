from __future__ import annotations

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from approvals import addresses, chain, chores, live
        from approvals import receivers as receivers  # importing them connects them
        from approvals.sight import asked_or_heard
        from approvals.sight import audience as of_approvals
        from runs import audience, sight
        from runs.engine import triggers, verify
        from runs.pages import elsewhere

        sight.also(asked_or_heard)
        audience.also(of_approvals)
        elsewhere.also(addresses.of_questions)
        verify.also(chain.first_break_of_run)
        triggers.append_only("approvals_decision")
        triggers.append_only("approvals_activity")
        live.register()
        chores.register()
