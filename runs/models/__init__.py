"""Rows, and every verb on them."""

from runs.models.archival import Archival, ArchiveRound
from runs.models.archived import (
    ArchivedCheckpoint,
    ArchivedEntry,
    ArchivedRemark,
    ArchivedSignal,
)
from runs.models.blob import Blob, BlobUse
from runs.models.checkpoint import Checkpoint
from runs.models.entry import LedgerEntry
from runs.models.fan_out import FanOut
from runs.models.limits import GraphStop, LaneUse, QueueLimit
from runs.models.live_text import LiveText
from runs.models.remark import Remark
from runs.models.run import Run
from runs.models.schedule import Schedule
from runs.models.signal import Signal
from runs.models.tombstone import Tombstone
from runs.models.tool_rate import ToolRate
from runs.models.untold_end import UntoldEnd
from runs.models.worker import GraphVersion, Worker

__all__ = [
    "Archival",
    "ArchiveRound",
    "ArchivedCheckpoint",
    "ArchivedEntry",
    "ArchivedRemark",
    "ArchivedSignal",
    "Blob",
    "BlobUse",
    "Checkpoint",
    "FanOut",
    "GraphStop",
    "GraphVersion",
    "LaneUse",
    "LedgerEntry",
    "LiveText",
    "QueueLimit",
    "Remark",
    "Run",
    "Schedule",
    "Signal",
    "Tombstone",
    "ToolRate",
    "UntoldEnd",
    "Worker",
]
