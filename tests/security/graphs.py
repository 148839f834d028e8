"""With DURABLEWEB_APPS=tests.security a real process finds the leaking graph here."""

from __future__ import annotations

from tests.security.leaking import leaking

__all__ = ["leaking"]
