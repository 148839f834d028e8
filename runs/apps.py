from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class RunsConfig(AppConfig):
    name = "runs"
    verbose_name = _("Engine")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from runs import checks, registry  # noqa: F401 - registers its checks
        from runs.engine import (
            archive_rounds,
            archiving,
            erasing,
            family,
            schedules,
            sweeping,
            telling,
            triggers,
        )

        registry.discover()
        family.register()
        telling.register()
        schedules.register()
        sweeping.register()
        erasing.register()
        archiving.register()
        archive_rounds.register()
        post_migrate.connect(triggers.install, dispatch_uid="runs.engine.triggers")
        post_migrate.connect(archive_rounds.prepare, sender=self, dispatch_uid="runs.engine.archive_rounds")
