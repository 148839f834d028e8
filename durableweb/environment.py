"""The environment variables that configure an installation, read with one clear error for each bad value."""

from __future__ import annotations

import os
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TypeAlias, TypedDict, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})

Number = TypeVar("Number", int, float)
Network: TypeAlias = IPv4Network | IPv6Network


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def listed(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """A comma-separated list; empty parts are dropped."""
    return [part.strip() for part in text(name).split(",") if part.strip()] or list(default)


def pairs(name: str) -> list[tuple[str, str]]:
    """`one=other,one=third` as [("one", "other"), ("one", "third")]."""
    found = []
    for part in listed(name):
        left, sign, right = (word.strip() for word in part.rpartition("="))
        if not (left and sign and right):
            raise ImproperlyConfigured(f"{name} holds {part!r}: write value=group, separated by commas.")
        found.append((left, right))
    return found


def networks(name: str) -> list[Network]:
    """Networks by address and length, such as 10.20.0.0/16; one address stands for itself."""
    found: list[Network] = []
    for part in listed(name):
        try:
            found.append(ip_network(part))
        except ValueError as error:
            raise ImproperlyConfigured(f"{name} holds {part!r}, which is no network: {error}.") from None
    return found


def apps(name: str) -> list[str]:
    """Names of Django apps; one that Python does not find is named with what to do about it."""
    found = listed(name)
    for app in found:
        try:
            known = find_spec(app.partition(".")[0]) is not None
        except (ImportError, ValueError):
            known = False
        if not known:
            raise ImproperlyConfigured(
                f"{name} names {app!r}, which Python does not find: put its folder beside manage.py, "
                "or the folder's parent into PYTHONPATH."
            )
    return found


def flag(name: str, default: bool = False) -> bool:
    word = text(name).lower()
    if not word:
        return default
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise ImproperlyConfigured(f"{name} is {word!r}: write 1 or 0.")


def whole(name: str, default: int, least: int) -> int:
    word = text(name)
    if not word:
        return default
    try:
        number = int(word)
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {word!r}: write a whole number.") from None
    return _at_least(name, number, least)


def seconds(name: str, default: float, least: float) -> float:
    word = text(name)
    if not word:
        return default
    try:
        number = float(word)
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {word!r}: write a number of seconds.") from None
    return _at_least(name, number, least)


def _at_least(name: str, number: Number, least: Number) -> Number:
    if not least <= number < float("inf"):  # also refuses nan
        raise ImproperlyConfigured(f"{name} is {number}: write {least} or more.")
    return number


# PostgreSQL statements are prepared on their fifth use and bound by the server: what the engine's budget is
# measured with. Connections end with the request: under ASGI each request has a thread of its own, and a
# connection kept for the next one would never be found again. A worker's threads live, and so theirs do.
POSTGRESQL = {
    "ENGINE": "django.db.backends.postgresql",
    "CONN_MAX_AGE": 0,
    "CONN_HEALTH_CHECKS": True,
}
# Statements are short: to compile one, or to start workers for it, takes longer than to run it.
POSTGRESQL_OPTIONS = {
    "prepare_threshold": 5,
    "server_side_binding": True,
    "options": "-c jit=off -c max_parallel_workers_per_gather=0",
}


def database(name: str, sqlite: Path) -> dict[str, object]:
    """Django's settings of the database that variable `name` gives as a URL; without one, the file `sqlite`.

    Parameters after `?` go to libpq: `postgres://user@/runs?host=/run/postgresql&sslmode=verify-full`. An error
    never repeats the URL, for it may hold a password.
    """
    url = text(name)
    if not url:
        return {"ENGINE": "durableweb.sqlite", "NAME": str(sqlite)}
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured(
            f"{name} begins with {parts.scheme!r}: write postgres://user:password@host:port/name, "
            "or leave it empty for SQLite."
        )
    database_name = unquote(parts.path.removeprefix("/"))
    if not database_name:
        raise ImproperlyConfigured(f"{name} names no database: end it with /name.")
    options = dict(parse_qsl(parts.query))
    return {
        **POSTGRESQL,
        "NAME": database_name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", unquote(parts.hostname or "")),
        "PORT": str(_port(name, url) or ""),
        "OPTIONS": POSTGRESQL_OPTIONS | options,
    }


class Mail(TypedDict, total=False):
    """Django's e-mail settings, under their Django names."""

    EMAIL_BACKEND: str
    EMAIL_FILE_PATH: str
    EMAIL_HOST: str
    EMAIL_PORT: int
    EMAIL_HOST_USER: str
    EMAIL_HOST_PASSWORD: str
    EMAIL_USE_TLS: bool
    EMAIL_USE_SSL: bool
    EMAIL_TIMEOUT: int


def mail(name: str, folder: Path) -> Mail:
    """smtp:// (plain), smtp+tls:// (STARTTLS) or smtps:// (TLS from the start); empty writes files to `folder`."""
    url = text(name)
    if not url:
        return {
            "EMAIL_BACKEND": "examples.mail_folder.EmailBackend",
            "EMAIL_FILE_PATH": str(folder),
        }
    parts = urlsplit(url)
    ports = {"smtp": 25, "smtp+tls": 587, "smtps": 465}
    if parts.scheme not in ports or not parts.hostname:
        raise ImproperlyConfigured(
            f"{name} is not an address of a mail server: write smtp+tls://user:password@host:587 "
            "(also smtp:// or smtps://), or leave it empty for files."
        )
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": _port(name, url) or ports[parts.scheme],
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_TIMEOUT": 30,
    }


def _port(name: str, url: str) -> int | None:
    try:
        return urlsplit(url).port
    except ValueError:
        raise ImproperlyConfigured(f"{name} has a port that is no number up to 65535.") from None


def secret_key(name: str, kept_in: Path, make: bool) -> str:
    """The variable, else the key that an earlier start kept; made anew only if `make`. Empty: there is none."""
    if key := text(name):
        return key
    if make and not kept_in.exists():
        kept_in.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        candidate = kept_in.with_name(f"{kept_in.name}.{os.getpid()}")
        with open(os.open(candidate, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(get_random_secret_key())
        try:
            os.link(candidate, kept_in)  # two processes that start at once agree on one key
        except FileExistsError:
            pass
        finally:
            candidate.unlink()
    try:
        return kept_in.read_text().strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ImproperlyConfigured(f"{kept_in} cannot be read ({error.strerror}): set {name}.") from error
