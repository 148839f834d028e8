"""A process that writes to a SQLite file without a break: sqlite_writer.py FILE SECONDS.

Prints one JSON object: how many writes it made, LEAST at the least, and the longest that one took, in seconds.
"""

from __future__ import annotations

import json
import sys
import time

LEAST = 20


def connect(path: str):
    """Our backend on that file, as Django would make it."""
    from django.db.utils import ConnectionHandler

    return ConnectionHandler({"default": {"ENGINE": "durableweb.sqlite", "NAME": path}})["default"]


def write_until(path: str, end: float) -> dict[str, float]:
    connection = connect(path)
    writes, longest = 0, 0.0
    while time.monotonic() < end or writes < LEAST:
        began = time.monotonic()
        with connection.cursor() as cursor:
            if writes % 2:
                cursor.execute("INSERT INTO notes (text) VALUES (%s) RETURNING id", ["alone"])
                cursor.fetchone()
            else:
                cursor.execute("BEGIN IMMEDIATE")
                cursor.execute("SELECT count(*) FROM notes WHERE id > 1000000")
                cursor.execute("INSERT INTO notes (text) VALUES (%s)", ["in a transaction"])
                cursor.execute("COMMIT")
        longest = max(longest, time.monotonic() - began)
        writes += 1
    connection.close()
    return {"writes": writes, "longest_seconds": longest}


if __name__ == "__main__":
    import django
    from django.conf import settings

    settings.configure()
    django.setup()
    print(json.dumps(write_until(sys.argv[1], time.monotonic() + float(sys.argv[2]))))
