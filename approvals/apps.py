from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class ApprovalsConfig(AppConfig):
    name = "approvals"
    verbose_name = _("Approvals")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from approvals import addresses, chain, chores, erasing, live, search_index
        from approvals import checks as checks  # importing it registers them
        from approvals import receivers as receivers  # importing them connects them
        from approvals.models import Attachment
        from approvals.sight import asked_or_heard
        from approvals.sight import audience as of_approvals
        from runs import audience, blob_holders, sight
        from runs.engine import triggers, verify
        from runs.pages import elsewhere

        sight.also(asked_or_heard)
        audience.also(of_approvals)
        elsewhere.also(addresses.of_questions)
        verify.also(chain.first_break_of_run)
        triggers.append_only("approvals_decision", erasing.DECISION)
        triggers.append_only("approvals_activity", erasing.ACTIVITY)
        post_migrate.connect(search_index.install, dispatch_uid="approvals.search_index")
        live.register()
        chores.register()
        blob_holders.also(blob_holders.Holder("attachments", lambda: Attachment.objects.all(), "blob_id"))
