"""Where a message may go: checked at the moment of each connection, whatever name led there and however often.

A name can lead to another address each time it is asked for, and a receiver can answer with another address. So what is
checked is not the name but each address that this thread connects to while it sends, by Python's own audit events,
which every client library raises. Programs are not started meanwhile, for they would not be watched. Other threads are
not watched: httpx and Apprise's services connect in the thread that calls them, except XMPP's, whose library is not
installed.

A client library limits each wait, not their sum: who answers a letter every few seconds would hold a sender for ever.
So the connections of an attempt that takes too long are shut, by a duplicate of each, for TLS wraps the first one away.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any  # what an audit event tells

from django.conf import settings

TO_ADDRESS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
BEYOND = frozenset(
    {
        "subprocess.Popen",
        "os.system",
        "os.posix_spawn",
        "os.fork",
    }
)
# IPv6 addresses whose last 32 bits are an IPv4 address: NAT64, stateless translation, and the oldest way to write one.
TRANSLATED = (ip_network("64:ff9b::/96"), ip_network("::ffff:0:0:0/96"), ip_network("::/96"))
# What Python takes for public: a translator's own prefix leads wherever its keeper says, and what "site" once meant.
INSIDE = (ip_network("64:ff9b:1::/48"), ip_network("fec0::/10"))

_watched = threading.local()


class NotAllowedThere(OSError):
    """An address inside, which DURABLEWEB_NOTICE_NETWORKS does not name."""


class _Attempt:
    """The connections of one attempt, and whether its time is over."""

    def __init__(self) -> None:
        self.is_over = False
        self._held: list[socket.socket] = []
        self._lock = threading.Lock()

    def hold(self, connection: socket.socket) -> None:
        """Raises TimeoutError for one that begins when the time is over."""
        with self._lock:
            if self.is_over:
                raise TimeoutError("the attempt takes too long")
            self._held.append(connection.dup())

    def end(self) -> None:
        with self._lock:
            self.is_over = True
            for connection in self._held:
                with suppress(OSError):  # it is not connected yet, which has its own limit, or not any more
                    connection.shutdown(socket.SHUT_RDWR)

    def let_go(self) -> None:
        with self._lock:
            for connection in self._held:
                connection.close()
            self._held.clear()


@contextmanager
def outside_only(seconds: float) -> Iterator[None]:
    """Within it this thread connects to public addresses alone, and to those of DURABLEWEB_NOTICE_NETWORKS.

    After so many seconds its connections are shut, and no other one begins.
    """
    _install()
    attempt = _Attempt()
    timer = threading.Timer(seconds, attempt.end)
    timer.daemon = True
    _watched.networks, _watched.attempt = tuple(settings.DURABLEWEB["notice_networks"]), attempt
    _watched.refused = ""
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _watched.networks = None
        attempt.let_go()


def was_too_long() -> bool:
    """Whether the time of this thread's last `outside_only` was over."""
    attempt = getattr(_watched, "attempt", None)
    return attempt is not None and attempt.is_over


def refused() -> str:
    """What this thread was kept from within the last `outside_only`; "" for nothing. Libraries swallow errors."""
    return getattr(_watched, "refused", "")


def is_allowed(address: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    """`address` is a number; a name is never allowed, for it may lead anywhere."""
    try:
        written = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    at = _plain(written)
    if any(each in network for each in (written, at) for network in networks):
        return True
    return at.is_global and not at.is_multicast and not any(at in network for network in INSIDE)


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address inside an IPv6 address that is only a way to write or reach it."""
    if isinstance(address, IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inside is None and any(address in network for network in TRANSLATED):
            inside = IPv4Address(int(address) & 0xFFFFFFFF)
        return inside or address
    return address


@cache
def _install() -> None:
    sys.addaudithook(_look)


def _look(event: str, told: tuple[Any, ...]) -> None:
    networks = getattr(_watched, "networks", None)
    if networks is None:
        return
    if event in TO_ADDRESS:
        address = told[1] if len(told) > 1 else None
        if address is None and event == "socket.sendmsg":
            return  # on a connection that was looked at
        host = address[0] if isinstance(address, tuple) and address else None
        if not isinstance(host, str) or not is_allowed(host, networks):
            _refuse(f"{host or 'a local socket'} is no public address, nor in DURABLEWEB_NOTICE_NETWORKS")
        if event == "socket.connect":
            _watched.attempt.hold(told[0])
    elif event in BEYOND:
        _refuse(f"sending began something else ({event})")


def _refuse(why: str) -> None:
    _watched.refused = why
    raise NotAllowedThere(why)
