"""References that travel in state, requests and results in place of the thing itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BlobRef:
    """Stored bytes: the SHA-256 in hex, the size in bytes, the media type."""

    sha256: str
    size: int
    media_type: str


@dataclass(frozen=True)
class SecretRef:
    """A secret by name; its value is looked up only in the moment of the call."""

    name: str
