"""System checks that refuse settings under which a promise would not hold, or an installation would be open."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any  # what Django hands to every check

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured

from runs import registry
from runs.checks import ENGINE

LEAST_SQLITE_LEASE_SECONDS = 30
LOOPBACK = frozenset({"localhost", ".localhost", "127.0.0.1", "[::1]"})

# q2 carries bells only: it must neither repeat, nor time out, nor keep, nor schedule one.
Q_CLUSTER_RULES = {
    "max_attempts": (1, "a bell that fails is rung again by rows, not by q2"),
    "ack_failures": (True, "a failed bell would stay in the queue"),
    "save_limit": (-1, "each bell would leave a row"),
    "scheduler": (False, "one bad schedule of q2 holds up every other; chores are rows of ours"),
    "catch_up": (False, "q2 schedules nothing"),
    "bulk": (1, "a worker that prefetches bells keeps them from idle ones"),
}
LEAST_Q_TIMEOUT_SECONDS = 86_400

Apps = Sequence[AppConfig] | None


@register(ENGINE)
def lease_and_heartbeat(app_configs: Apps = None, **rest: Any) -> list[CheckMessage]:
    engine, problems = settings.DURABLEWEB, []
    lease, heartbeat = engine["lease_seconds"], engine["heartbeat_seconds"]
    if heartbeat * 3 > lease * (1 + 1e-9):  # a third, as a float divides it
        problems.append(
            Error(
                f"The heartbeat period of {heartbeat:g} s is above a third of the lease of {lease:g} s.",
                hint=f"Set DURABLEWEB_HEARTBEAT_SECONDS to {lease / 3:g} or less, or leave it empty.",
                id="durableweb.E001",
            )
        )
    if _on_sqlite() and lease < LEAST_SQLITE_LEASE_SECONDS and not settings.TESTING:
        problems.append(
            Error(
                f"A lease of {lease:g} s is too short on SQLite, where one writer makes the others wait.",
                hint=f"Set DURABLEWEB_LEASE_SECONDS to {LEAST_SQLITE_LEASE_SECONDS} or more, or use PostgreSQL.",
                id="durableweb.E002",
            )
        )
    if engine["workers"] < 2:
        problems.append(
            Error(
                "With one worker process no run is driven: one always stays free for other tasks.",
                hint="Set DURABLEWEB_WORKERS to 2 or more.",
                id="durableweb.E003",
            )
        )
    if engine["value_limit_bytes"] < engine["blob_bytes"]:
        problems.append(
            Error(
                "DURABLEWEB_VALUE_LIMIT_BYTES is below DURABLEWEB_BLOB_BYTES: no value could become a blob.",
                hint="Raise the limit, or lower the size from which a value is a blob.",
                id="durableweb.E004",
            )
        )
    return problems


@register(ENGINE)
def bells(app_configs: Apps = None, **rest: Any) -> list[CheckMessage]:
    cluster = settings.Q_CLUSTER
    problems: list[CheckMessage] = [
        Error(
            f"Q_CLUSTER[{name!r}] is {cluster.get(name)!r}, not {wanted!r}: {reason}.",
            hint=f"Set it to {wanted!r}.",
            id="durableweb.E010",
        )
        for name, (wanted, reason) in Q_CLUSTER_RULES.items()
        if cluster.get(name) != wanted
    ]
    timeout, retry = cluster.get("timeout") or 0, cluster.get("retry") or 0
    if not LEAST_Q_TIMEOUT_SECONDS <= timeout < retry:
        problems.append(
            Error(
                f"Q_CLUSTER has timeout {timeout} and retry {retry}: q2 would kill, or double, a long shift.",
                hint=f"Set a timeout of {LEAST_Q_TIMEOUT_SECONDS} or more, and a retry above it.",
                id="durableweb.E011",
            )
        )
    if cluster.get("workers") != settings.DURABLEWEB["workers"]:
        problems.append(
            Error(
                "Q_CLUSTER['workers'] differs from DURABLEWEB['workers'], by which shifts are counted.",
                hint="Set DURABLEWEB_WORKERS only.",
                id="durableweb.E012",
            )
        )
    return problems


@register(ENGINE)
def graph_modules(app_configs: Apps = None, **rest: Any) -> list[CheckMessage]:
    return [
        Warning(
            f"{module} does not import: {error}",
            hint="Runs of its graphs are held, and go on once it imports.",
            id="durableweb.W030",
        )
        for module, error in registry.broken.items()
    ]


@register(ENGINE)
def redis_packages(app_configs: Apps = None, **rest: Any) -> list[CheckMessage]:
    missing = [name for name in ("redis", "channels_redis") if find_spec(name) is None]
    if not settings.REDIS_URL or not missing:
        return []
    return [
        Error(
            f"REDIS_URL is set, but {' and '.join(missing)} cannot be imported.",
            hint="pip install -r requirements-redis.txt",
            id="durableweb.E013",
        )
    ]


@register(Tags.security)
def secret_key(app_configs: Apps = None, **rest: Any) -> list[CheckMessage]:
    try:
        if settings.SECRET_KEY:
            return []
    except ImproperlyConfigured:
        pass
    return [
        Error(
            "There is no secret key.",
            hint="Set DURABLEWEB_SECRET_KEY to a long random text. Keep it: a new one signs everybody out.",
            id="durableweb.E020",
        )
    ]


@register(Tags.security)
def debug_stays_at_home(app_configs: Apps = None, **rest: Any) -> list[CheckMessage]:
    strangers = sorted(set(settings.ALLOWED_HOSTS) - LOOPBACK)
    if not settings.DEBUG or not strangers:
        return []
    return [
        Error(
            f"DURABLEWEB_DEBUG is on, and {', '.join(strangers)} would be served: pages of errors show settings.",
            hint="Leave DURABLEWEB_ALLOWED_HOSTS empty while debugging, or set DURABLEWEB_DEBUG=0.",
            id="durableweb.E021",
        )
    ]


@register(Tags.security, deploy=True)
def no_testing_in_production(app_configs: Apps = None, **rest: Any) -> list[CheckMessage]:
    if not settings.TESTING:
        return []
    return [
        Warning(
            "DURABLEWEB_TESTING is on: it allows short leases and plain HTTP.",
            hint="Leave it to the tests.",
            id="durableweb.W022",
        )
    ]


def _on_sqlite() -> bool:
    return settings.DATABASES["default"]["ENGINE"] == "durableweb.sqlite"
