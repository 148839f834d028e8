"""This host since it started, and a process on it, by names that nobody else has."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path


def worker_name() -> str:
    """Never used twice, also not after a restart of the host."""
    return f"{platform.node()[:40]}:{boot_id()[:8]}:{os.getpid()}:{time.time_ns():x}"


def boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"
