"""A child has ended, and its parent is yet to be told: written with the end, gone with the telling."""

from __future__ import annotations

from django.db import models


class UntoldEnd(models.Model):
    """`parent` is no foreign key: its check would wait for whoever has locked the parent."""

    child = models.OneToOneField(
        "runs.Run", on_delete=models.PROTECT, primary_key=True, related_name="untold_end"
    )
    parent = models.UUIDField()
    status = models.CharField(max_length=12, help_text="How it ended.")
    at = models.DateTimeField(help_text="When a chore tells it, if nobody has done so before.")

    class Meta:
        indexes = [
            models.Index(fields=["parent"], name="untold_of_parent"),
            models.Index(fields=["at"], name="untold_due"),
        ]

    def __str__(self) -> str:
        return str(self.child_id)
