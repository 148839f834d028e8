"""The cache that all web processes share, so that wrong passwords are counted once wherever they are sent.

In Redis where there is one; otherwise in a table of the database, which all of them have. Django's own backend writes
it, and adds a key only once, whoever tries at the same moment: what the counting of sign-ins needs for its lock.
"""

from __future__ import annotations

from django.core.management import call_command

TABLE = "durableweb_cache"
MAX_ENTRIES = 100_000  # names and addresses that failed lately; those that expired go first


def described(redis_url: str) -> dict[str, object]:
    """For settings.CACHES."""
    if redis_url:
        return {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": redis_url}
    return {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": TABLE,
        "OPTIONS": {"MAX_ENTRIES": MAX_ENTRIES},
    }


def make_table(using: str = "default", **_: object) -> None:
    """After each migrate; nothing where it is there, or where the cache is another one."""
    call_command("createcachetable", database=using, verbosity=0)
