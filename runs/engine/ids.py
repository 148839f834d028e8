"""Run ids: UUID version 7 (RFC 9562), so that ids sort by the moment they were made."""

from __future__ import annotations

import os
import time
import uuid


def uuid7() -> uuid.UUID:
    """48 bits of Unix milliseconds, then 74 random bits around version and variant."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10))
    value = (milliseconds & (1 << 48) - 1) << 80 | random
    value = value & ~(0xF << 76) | 7 << 76
    value = value & ~(0x3 << 62) | 2 << 62
    return uuid.UUID(int=value)
