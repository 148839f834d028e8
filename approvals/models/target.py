"""Where notices go besides people's mail: chats and webhooks, which only staff set up."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import Q, Value
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from approvals import sealing
from approvals.notices.words import OCCASIONS, TARGETS, WAITING
from runs.engine.durably import durably

if TYPE_CHECKING:
    from datetime import datetime

    from approvals.models.approval import Approval

LONGEST_ERROR = 300


def every_occasion() -> list[str]:
    return list(OCCASIONS)


class Target(models.Model):
    """A chat's address in Apprise's form, or a webhook's. Both are secrets, and kept sealed."""

    name = models.CharField(max_length=100, unique=True)
    channel = models.CharField(max_length=7)
    sealed = models.TextField(editable=False)
    graph = models.CharField(
        max_length=100, blank=True, default="", help_text=_("Only of this graph; empty: of all.")
    )
    reviewer = models.CharField(
        max_length=150,
        blank=True,
        default="",
        help_text=_("Only what this user or group is asked; empty: all."),
    )
    occasions = models.JSONField(default=every_occasion, help_text=_("Of which it is told."))
    language = models.CharField(
        max_length=10,
        blank=True,
        default="",
        help_text=_("Of a chat. Empty: that of the user whom it is for, else the site's."),
    )
    is_on = models.BooleanField(default=True)
    key_number = models.PositiveIntegerField(default=1, help_text=_("Raise it for another signing key."))
    failing_since = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True, default="")
    sent_at = models.DateTimeField(null=True, blank=True, help_text=_("When it last took a notice."))

    class Meta:
        ordering = ("name",)
        constraints = [
            models.CheckConstraint(condition=Q(channel__in=TARGETS), name="target_channel_known"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def url(self) -> str:
        return sealing.unseal(self.sealed)

    @url.setter
    def url(self, url: str) -> None:
        self.sealed = sealing.seal(url)

    @property
    def shown_url(self) -> str:
        """What staff may read of it: where it leads, and no secret."""
        try:
            parts = urlsplit(self.url)
        except ValidationError:
            return str(_("sealed under another key; type it anew"))
        return (
            f"{parts.scheme}://{parts.hostname or ''}/…"
            if parts.scheme in ("http", "https")
            else f"{parts.scheme}://…"
        )

    @property
    def signing_key(self) -> str:
        """With which a webhook's receiver checks signatures. Made from the site's key, so it is stored nowhere."""
        what = f"durableweb.webhook:{self.pk}:{self.key_number}".encode()
        digest = hmac.new(settings.SECRET_KEY.encode(), what, hashlib.sha256).digest()
        return f"whsec_{base64.b64encode(digest).decode()}"

    def wants(self, approval: Approval, occasion: str, names: set[str]) -> bool:
        """`names`: who is asked in it."""
        return (
            self.is_on
            and occasion in self.occasions
            and self.graph in ("", approval.graph)
            and (not self.reviewer or self.reviewer in names)
        )

    def worked(self, now: datetime) -> None:
        self._change(failing_since=None, last_error="", sent_at=now)

    def failed(self, error: str, now: datetime, again: datetime | None) -> None:
        """Note it for operators; what else waits for this target waits as long, or one dead target holds up all."""
        from approvals.models.notice import Notice

        self._change(
            failing_since=Coalesce("failing_since", Value(now, output_field=models.DateTimeField())),
            last_error=error[:LONGEST_ERROR],
        )
        if again is not None:
            waiting = Notice.objects.filter(target=self, status=WAITING, send_at__lt=again)
            durably(lambda: waiting.update(send_at=again))

    def _change(self, **changes: object) -> None:
        def write() -> None:
            with transaction.atomic():
                Target.objects.filter(pk=self.pk).update(**changes)

        durably(write)
