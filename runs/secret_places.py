"""Where secrets are kept: in the environment, in files (one a secret), or where a function of the installation looks.

The environment goes before files, and files before the function, where more than one has a name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from runs.conf import conf

PREFIX = "DURABLEWEB_SECRET_"
RESERVED = {"DURABLEWEB_SECRET_KEY"}
LARGEST_FILE = 64 * 1024  # bytes


class SecretsUnreadable(Exception):
    """A place of secrets cannot be read; the message names it, and never a value."""


def all_values() -> dict[str, str]:
    """Name to value; empty ones are not there. Raises SecretsUnreadable."""
    return _from_function(conf.secrets_from) | _in_files(conf.secrets_dir) | in_environment()


def may_change() -> bool:
    """Whether they may be others while this process lives."""
    return bool(conf.secrets_dir or conf.secrets_from)


def hint(name: str) -> str:
    """What to do about one that is nowhere."""
    places = [f"set {PREFIX}{name} in the worker's environment"]
    if conf.secrets_dir:
        places.append(f"put a file {name} into DURABLEWEB_SECRETS_DIR")
    if conf.secrets_from:
        places.append(f"let {conf.secrets_from} return it")
    return ", or ".join(places)


def in_environment() -> dict[str, str]:
    """Variables DURABLEWEB_SECRET_<NAME>, but for the site's own key."""
    return {
        name.removeprefix(PREFIX): value
        for name, value in os.environ.items()
        if name.startswith(PREFIX) and name not in RESERVED and value
    }


def _in_files(folder: str) -> dict[str, str]:
    """As container platforms mount them: the file's name is the secret's; one line end at its end is no part of it.

    What begins with a dot is skipped: Kubernetes keeps the files themselves, and their earlier versions, below such.
    """
    if not folder:
        return {}
    try:
        found = sorted(path for path in Path(folder).iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise SecretsUnreadable(
            f"DURABLEWEB_SECRETS_DIR: {folder} cannot be read ({error.strerror})."
        ) from None
    values = {path.name: _text_of(path) for path in found if path.is_file()}
    return {name: value for name, value in values.items() if value}


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise SecretsUnreadable(
            f"The secret {path.name} in {path.parent} cannot be read ({error.strerror})."
        ) from None
    if len(content) > LARGEST_FILE:
        raise SecretsUnreadable(f"The secret {path.name} in {path.parent} is over {LARGEST_FILE:,} bytes.")
    try:
        text = content.decode()
    except UnicodeDecodeError:  # its message would quote the bytes
        raise SecretsUnreadable(
            f"The secret {path.name} in {path.parent} is not UTF-8; keep it as base64."
        ) from None
    return text.removesuffix("\n").removesuffix("\r")


def _from_function(place: str) -> dict[str, str]:
    """What `module:function` returns: a mapping of all names to their values."""
    if not place:
        return {}
    module, _, name = place.partition(":")
    try:
        found = getattr(import_module(module), name)()
    except Exception as error:  # its message may hold what it was about to return
        raise SecretsUnreadable(
            f"DURABLEWEB_SECRETS_FROM: {place} failed with {type(error).__name__}."
        ) from None
    if not isinstance(found, Mapping) or not all(
        isinstance(word, str) for pair in found.items() for word in pair
    ):
        raise SecretsUnreadable(
            f"DURABLEWEB_SECRETS_FROM: {place} returned {type(found).__name__}; it must be a dict of texts by name."
        )
    return {name: value for name, value in found.items() if value}
