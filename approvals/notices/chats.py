"""Apprise, which knows the chats: loaded when one is needed, for it takes a while and most processes need none."""

from __future__ import annotations

import warnings
from functools import cache
from types import ModuleType
from typing import Any  # Apprise's services have no common type that is public


def chat_at(url: str) -> Any | None:
    """The service that an address in Apprise's form means; None if Apprise knows no such. Connects nowhere."""
    apprise = _apprise()
    asset = apprise.AppriseAsset(
        async_mode=False, secure_logging=True, app_id="durableweb", http_redirects=False
    )
    return apprise.Apprise.instantiate(url, asset=asset)


@cache
def _apprise() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of modules that its other services still use
        import apprise

        apprise.Apprise.instantiate("json://localhost")  # loads the services
    return apprise
