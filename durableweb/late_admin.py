"""Django's admin, whose pages are found with the URLconf: workers and commands, which show none, load none of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any  # what Django tells its checks

from django.conf import settings
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks


class LateAdminConfig(SimpleAdminConfig):
    default = False

    def ready(self) -> None:
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(_check_pages, checks.Tags.admin)


def _check_pages(app_configs: Any, **more: Any) -> list[checks.CheckMessage]:
    """Django's own check, which looks only at what is registered already."""
    import_module(settings.ROOT_URLCONF)
    return check_admin_app(app_configs, **more)
