"""A file that somebody put to an approval: its bytes are a blob, its link in the chain says what was attached."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.urls import reverse


class Attachment(models.Model):
    """Never shown as a page: whoever sees the approval may load it as a file."""

    approval = models.ForeignKey("approvals.Approval", on_delete=models.PROTECT, related_name="attachments")
    activity = models.OneToOneField(
        "approvals.Activity",
        on_delete=models.PROTECT,
        related_name="attachment",
        help_text="Its row in the trail.",
    )
    blob = models.ForeignKey("runs.Blob", on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=100, help_text="As it is saved under; cleaned.")
    media_type = models.CharField(max_length=100, help_text="Told from its bytes, not from its name.")
    size = models.PositiveBigIntegerField(help_text="In bytes.")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        return f"{self.name} ({self.size} bytes)"

    def get_absolute_url(self) -> str:
        return reverse("approvals:attachment", args=[self.approval_id, self.pk])
