"""Child processes of the test kit: forked from this warmed one, with connections of their own, and mortal."""

from __future__ import annotations

import gc
import json
import os
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn  # what a child tells is any JSON

from django.db import connections
from django.db.backends.signals import connection_created

LONGEST_SECONDS = 600  # a machine that has much else to do may be slow

Tell = Callable[[Any], None]

_laid_aside: list[Any] = []


class ChildFailed(AssertionError):
    """A child process ended by an error of its own; the message is its traceback."""


@dataclass
class Child:
    """How a child ended: killed, or with what its work returned. `told` is what it said on the way."""

    killed: bool = False
    returned: Any = None
    told: list[Any] = field(default_factory=list)


def in_child(work: Callable[[Tell], Any]) -> Child:
    """Do `work` in a forked process and wait for its end; it gets `tell` to say things before it dies.

    What it tells and returns travels as JSON. Raises ChildFailed with the child's traceback when it raises.
    """
    _let_go_of_the_database()
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # Python 3.12 and later, when another thread lives
        pid = os.fork()
    if pid == 0:
        os.close(reading)
        _live(work, writing)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        lines = [json.loads(line) for line in pipe]
    _, status = os.waitpid(pid, 0)
    return _ended(status, lines)


@contextmanager
def spared_disk() -> Iterator[None]:
    """What this process itself does between its children need not outlive a power failure either."""
    connections.close_all()
    connection_created.connect(_spare_the_disk)
    try:
        yield
    finally:
        connection_created.disconnect(_spare_the_disk)
        connections.close_all()


def die() -> NoReturn:
    """Be killed, here and now, as by the kernel: nothing is cleaned up and no `finally` runs."""
    while True:
        os.kill(os.getpid(), signal.SIGKILL)


def _let_go_of_the_database() -> None:
    """A connection must not be shared over a fork. One to a server may stay open, for the child lays its copy aside."""
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            raise RuntimeError(
                "A child process sees only committed rows: mark the test with django_db(transaction=True)."
            )
        if connection.vendor == "sqlite":
            connection.close()


def _lay_connections_aside() -> None:
    """In the child: kept, for to close one would end it for the parent as well, and never used."""
    for connection in connections.all(initialized_only=True):
        _laid_aside.append(connection.connection)
        connection.connection = None


def _live(work: Callable[[Tell], Any], pipe: int) -> NoReturn:
    """The child's whole life. It never returns into the test that forked it, whatever happens."""

    def say(kind: str, what: Any) -> None:
        rest = json.dumps([kind, what]).encode() + b"\n"
        while rest:
            rest = rest[os.write(pipe, rest) :]

    code = 1
    try:
        gc.disable()  # it would touch, and so copy, every page shared with the parent
        signal.alarm(LONGEST_SECONDS)
        _lay_connections_aside()
        connection_created.connect(_spare_the_disk)
        say("returned", work(lambda what: say("told", what)))
        code = 0
    except BaseException:
        say("raised", traceback.format_exc())
    finally:
        os._exit(code)


def _spare_the_disk(connection: Any, **signal_arguments: Any) -> None:
    """SQLite's fsync guards against power failures; what a killed process has written, the kernel keeps anyway."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA synchronous = OFF")


def _ended(status: int, lines: list[list[Any]]) -> Child:
    said: dict[str, list[Any]] = {"told": [], "returned": [], "raised": []}
    for kind, what in lines:
        said[kind].append(what)
    if said["raised"]:
        raise ChildFailed(said["raised"][0])
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            raise ChildFailed(
                f"a child ended by signal {os.WTERMSIG(status)}; it has {LONGEST_SECONDS} s to live"
            )
        return Child(killed=True, told=said["told"])
    return Child(returned=said["returned"][0], told=said["told"])
