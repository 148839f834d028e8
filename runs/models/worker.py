"""One row a living worker process."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models

from runs.conf import conf
from runs.core import codec

LIVE_BEATS = 2.5
LEAST_LIVE_SECONDS = 3.0  # of a test's short lease: a loaded machine beats late


class WorkerQuerySet(models.QuerySet["Worker"]):
    def seen_lately(self, now: datetime) -> WorkerQuerySet:
        """Those that live as far as their heartbeats tell."""
        seconds = max(LIVE_BEATS * conf.heartbeat_seconds, LEAST_LIVE_SECONDS)
        return self.filter(seen_at__gte=now - timedelta(seconds=seconds))

    def serves(self) -> set[tuple[str, int]]:
        """(graph, version) of all that they serve."""
        rows = self.values_list("serves", flat=True)
        return {(name, version) for row in rows for name, version in codec.loads(row)}


class Worker(models.Model):
    name = models.CharField(
        max_length=120, primary_key=True, help_text="host:boot:pid:started, never used twice"
    )
    host = models.CharField(max_length=100)
    boot_id = models.CharField(max_length=40)
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    serves = models.TextField(default="[]", help_text="JSON list of [graph, version].")
    refuses = models.TextField(
        default="[]", help_text="JSON list of graphs it cannot serve, each with the reason."
    )
    holds = models.TextField(default="[]", help_text="JSON list of [run id, fence].")
    bell = models.CharField(
        max_length=40, blank=True, default="", help_text="The bell that this shift answers."
    )
    stopping = models.BooleanField(default=False)

    objects = WorkerQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["seen_at"], name="worker_seen")]

    def __str__(self) -> str:
        return self.name


class GraphVersion(models.Model):
    graph = models.CharField(max_length=100)
    version = models.PositiveIntegerField()
    fingerprint = models.CharField(max_length=64)
    shape = models.TextField(
        help_text="Nodes and edges as canonical JSON, to draw old runs after the code is gone."
    )
    viewers = models.CharField(max_length=200, blank=True, default="")
    operators = models.CharField(max_length=200, blank=True, default="")
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["graph", "version"], name="graph_version_once"),
        ]

    def __str__(self) -> str:
        return f"{self.graph} version {self.version}"
