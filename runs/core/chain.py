"""The digest of a checkpoint: SHA-256 over a canonical list that names the digest before (DESIGN section 10).

The list is [format, before, run, seq, kind, step, node, status, version, attempt, fence, actor, reason, at, body
digest, entries]; `at` is UTC with microseconds and "Z". docs/audit.md works one out by hand.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from runs.core import codec

FORMAT = 1
SALT_BYTES = 16


@dataclass(slots=True)
class Link:
    """One checkpoint as it is written; `digest` covers every field and, through `before`, all earlier ones.

    `moment` is `at` as the list has it.
    """

    run: str
    seq: int
    kind: str
    step: int
    node: str
    status: str
    version: int
    attempt: int
    fence: int
    actor: str
    reason: str
    at: datetime
    body: str
    snapshot: bool
    salt: bytes
    before: str
    entries: str = "[]"
    body_digest: str = ""
    digest: str = ""
    moment: str = ""

    def seal(self, body_digest: str | None = None) -> Link:
        """Compute both digests from the fields as they are now; a body that was erased is known by its digest."""
        self.body_digest = salted(self.salt, self.body) if body_digest is None else body_digest
        self.moment = moment(self.at)
        words = [
            FORMAT,
            self.before,
            self.run,
            self.seq,
            self.kind,
            self.step,
            self.node,
            self.status,
            self.version,
            self.attempt,
            self.fence,
            self.actor,
            self.reason,
            self.moment,
            self.body_digest,
        ]
        self.digest = codec.digest(f"{codec.encode(words)[:-1]},{self.entries}]")
        return self


def salted(salt: bytes, body: str) -> str:
    return hashlib.sha256(salt + body.encode()).hexdigest()


def moment(at: datetime | None) -> str | None:
    """UTC to the microsecond, always written with six digits."""
    if at is None:
        return None
    utc = at if at.tzinfo is UTC else at.astimezone(UTC)
    return f"{utc.isoformat(timespec='microseconds')[:26]}Z"


def entry_line(
    key: str,
    kind: str,
    status: str,
    request_digest: str,
    result: str | None,
    answered_by: str,
    answered_at: datetime | None,
    approval_head: str,
) -> list[object]:
    """What a checkpoint's list says of one ledger entry."""
    result_digest = None if result is None else codec.digest(result)
    return [key, kind, status, request_digest, result_digest, answered_by, moment(answered_at), approval_head]
