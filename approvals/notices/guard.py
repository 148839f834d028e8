"""Where a message may go: checked at the moment of each connection, whatever name led there and however often.

A name can lead to another address each time it is asked for, and a receiver can answer with another address. So what is
checked is not the name but each address that this thread connects to while it sends, by Python's own audit events,
which every client library raises. Programs are not started meanwhile, for they would not be watched. Other threads are
not watched: httpx and Apprise's services connect in the thread that calls them, except XMPP's, whose library is not
installed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


@contextmanager
def outside_only() -> Iterator[None]:
    """Within it this thread connects to public addresses alone, and to those of DURABLEWEB_NOTICE_NETWORKS."""
    _install()
    _watched.networks = tuple(settings.DURABLEWEB["notice_networks"])
    _watched.refused = ""
    try:
        yield
    finally:
        _watched.networks = None


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
    elif event in BEYOND:
        _refuse(f"sending began something else ({event})")


def _refuse(why: str) -> None:
    _watched.refused = why
    raise NotAllowedThere(why)
