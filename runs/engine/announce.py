"""Wake the bell at once where the database can (PostgreSQL NOTIFY); elsewhere it looks every 100 ms anyway."""

from __future__ import annotations

from django.db import connection

CHANNEL = "durableweb_due"


def announce() -> None:
    """Sent when the transaction commits; lost or doubled, it is harmless."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"NOTIFY {CHANNEL}")
