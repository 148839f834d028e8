"""A run's state in memory, and as its checkpoints keep it: snapshots, and patches against the one before."""

from __future__ import annotations

from typing import Any  # plain trees

from django.db.models import OuterRef, Subquery

from runs.conf import conf
from runs.core import codec, patch
from runs.core.errors import CodecError, SecretFound, TooLarge
from runs.engine import blobs
from runs.models.checkpoint import Checkpoint
from runs.models.run import Run
from runs.models.tombstone import Tombstone
from runs.secrets import guard

BODIES = (
    "SELECT seq, snapshot, body FROM {table} WHERE run_id = %s AND seq <= %s AND seq >= COALESCE(("
    "SELECT seq FROM {table} WHERE run_id = %s AND seq <= %s AND snapshot ORDER BY seq DESC LIMIT 1), 0)"
    " AND body <> '' ORDER BY seq"
)
OF_A_LIVE_RUN = BODIES.format(table="runs_checkpoint")
NARROW = "SELECT run_id, seq, snapshot, body FROM"
OF_ANY_RUN = BODIES.format(
    table=f"({NARROW} runs_checkpoint UNION ALL {NARROW} runs_archivedcheckpoint) AS checkpoints"
)


class StoredState:
    """`tree` is what the node sees, as plain JSON; `stored` the same with long texts in blobs."""

    __slots__ = (
        "run_id",
        "tree",
        "stored",
        "lists",
        "snapshot_bytes",
        "patches_bytes",
        "blob_bytes",
        "limit",
    )

    def __init__(self, run_id: Any) -> None:
        self.run_id = run_id
        self.tree: Any = None
        self.stored: Any = None
        self.lists = codec.Lists()
        self.snapshot_bytes = 0
        self.patches_bytes = 0
        self.blob_bytes, self.limit = conf.blob_bytes, conf.value_limit_bytes

    @classmethod
    def load(cls, run_id: Any, seq: int, *, live: bool = False) -> StoredState:
        """The state at a checkpoint, in one query (and the blobs). Raises CodecError for what cannot be read.

        `live`: the run cannot be archived, so that the archive need not be looked into.
        """
        state = cls(run_id)
        bodies = _bodies(OF_A_LIVE_RUN if live else OF_ANY_RUN, run_id, seq)
        if not bodies or not bodies[0][1]:
            raise CodecError("$", f"run {run_id} has no snapshot at or before checkpoint {seq}")
        base = codec.decode(bodies[0][2])
        patches = [codec.decode(body) for _, _, body in bodies[1:]]
        try:
            state.stored = patch.apply_all(base, patches) if patches else base
        except Exception as error:
            raise CodecError("$", f"the patches of run {run_id} do not apply: {error}") from error
        state.snapshot_bytes = len(bodies[0][2])
        state.patches_bytes = sum(patch.weight(len(body)) for _, _, body in bodies[1:])
        has_blobs = any(blobs.OFFLOADED in body for _, _, body in bodies)
        state.tree = blobs.load_tree(run_id, state.stored) if has_blobs else state.stored
        return state

    def begin(self, tree: Any) -> str:
        """The first snapshot's text."""
        self.stored = self._offloaded(tree)
        self.tree = tree
        text = codec.encode(self.stored)
        self._admit(text, tree)
        self.snapshot_bytes, self.patches_bytes = len(text), 0
        return text

    def change(self, tree: Any) -> Change:
        """What the next checkpoint keeps. Nothing here is changed until `Change.accept()`, after the commit."""
        if tree is self.tree:
            return Change(self, tree, self.stored, "", False)
        stored = tree
        if self.stored is not self.tree:
            stored = self._offloaded(tree)
        elif patch.snapshot_due(self.patches_bytes, 0, self.snapshot_bytes):  # however short a patch may be
            text = codec.encode(tree)
            if len(text) <= self.blob_bytes:
                self._admit(text, tree)
                return Change(self, tree, tree, text, True)
        operations = patch.diff(self.stored, stored, self.lists)
        if not operations:
            return Change(self, tree, stored, "", False)
        text = codec.encode(operations)
        if len(text) > self.blob_bytes and stored is tree:
            stored = self._offloaded(tree)
            if stored is not tree:
                text = codec.encode(patch.diff(self.stored, stored))
        snapshot = patch.snapshot_due(self.patches_bytes, len(text), self.snapshot_bytes)
        if snapshot:
            text = codec.encode(stored)
        self._admit(text, tree)
        return Change(self, tree, stored, text, snapshot)

    def _offloaded(self, tree: Any) -> Any:
        stored = blobs.offload_tree(self.run_id, tree, self.tree, self.stored, self.blob_bytes, self.limit)
        return tree if stored == tree else stored

    def _admit(self, text: str, tree: Any) -> None:
        """The hard limit and the secrets guard; both name what is wrong before anything is written."""
        size = self.snapshot_bytes + self.patches_bytes + len(text)
        if size > self.limit and max(len(text), self._exact()) > self.limit:
            raise TooLarge("$", size, self.limit)
        watch = guard()
        if (name := watch.find(text)) is not None:
            raise SecretFound(*(watch.locate(tree) or ("$", name)))

    def _exact(self) -> int:
        return len(codec.encode(self.stored))


class Change:
    """A body to be committed, and the state as it is once that has happened."""

    __slots__ = ("state", "tree", "stored", "text", "snapshot")

    def __init__(self, state: StoredState, tree: Any, stored: Any, text: str, snapshot: bool) -> None:
        self.state, self.tree, self.stored, self.text, self.snapshot = state, tree, stored, text, snapshot

    def accept(self) -> None:
        state = self.state
        state.tree, state.stored = self.tree, self.stored
        if self.snapshot:
            state.snapshot_bytes, state.patches_bytes = len(self.text), 0
        elif self.text:
            state.patches_bytes += patch.weight(len(self.text))


def final_trees(run_ids: list[str]) -> dict[str, Any]:
    """The latest states of many runs, in one query (and their blobs); of those in the archive, in one each.

    Without those that were erased.
    """
    latest = Checkpoint.objects.filter(run=OuterRef("run"), snapshot=True).order_by("-seq").values("seq")[:1]
    found = Checkpoint.objects.filter(run__in=run_ids, seq__gte=Subquery(latest)).exclude(body="")
    bodies: dict[str, list[str]] = {}
    for run_id, body in found.order_by("run", "seq").values_list("run_id", "body"):
        bodies.setdefault(str(run_id), []).append(body)
    trees = {run_id: _tree(run_id, *texts) for run_id, texts in bodies.items()}
    elsewhere = Run.objects.filter(pk__in=[run_id for run_id in run_ids if run_id not in trees])
    for run in elsewhere.exclude(root__in=Tombstone.objects.values("run")):
        trees[str(run.pk)] = StoredState.load(run.pk, run.seq).tree
    return trees


def _tree(run_id: str, snapshot: str, *patches: str) -> Any:
    stored = codec.decode(snapshot)
    if patches:
        stored = patch.apply_all(stored, [codec.decode(text) for text in patches])
    has_blobs = any(blobs.OFFLOADED in text for text in (snapshot, *patches))
    return blobs.load_tree(run_id, stored) if has_blobs else stored


def _bodies(statement: str, run_id: Any, seq: int) -> list[tuple[int, bool, str]]:
    from django.db import connection

    key = run_id if connection.vendor == "postgresql" else run_id.hex
    with connection.cursor() as cursor:
        cursor.execute(statement, [key, seq, key, seq])
        return [(row[0], bool(row[1]), row[2]) for row in cursor.fetchall()]
