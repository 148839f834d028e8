"""How long until everybody who looks sees a change: many live sockets on one web process.

    python -m bench.sockets [--json] [--sockets 500] [--in-front 2] [--changes 40] [--only sqlite|postgresql]

A fresh installation, one `uvicorn` process as in production, and real WebSockets from this process: each belongs to one
of 50 signed-in people of the reviewers' group and watches the inbox, and one approval of its own that is decided later.
Approvals are decided one after another, two seconds apart; a sample is the time from the begin of `decide` to the
message at one socket. "list" is the name of the inbox, at every socket; "own" is the name of the decided approval, at
those who watch it. Milliseconds.

To be told is not to see: a page in front then reads again what changed, as static/js/live.js does, and so do those of
these sockets that are `--in-front` (the pages that are behind others read when they come to the front). "list seen" and
"own seen" are the times until the last part that carries that name has arrived. The site runs with debug on, so that it
reads its templates anew each time: these two are upper bounds. What a browser then takes to put it in is not measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.steps import ROOT, fresh, run

PEOPLE = 50
IN_FRONT = 2
APART_SECONDS = 2.0
PATIENCE_SECONDS = 30.0
Heard = asyncio.Queue[tuple[int, str, float]]  # the socket's number, what changed, when it was told
AT_ONCE = 25  # sockets that are opened side by side
GATHER_SECONDS = 0.12  # for so long a page waits before it reads its lists (static/js/live.js)
KINDS = ("list", "own", "list seen", "own seen")
PARTS = {
    "inbox": ("inbox/list/", "inbox/new/", "inbox/count/")
}  # what carries the name, and where it is read
PARTS_OF_ONE = ("state", "people", "acts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sockets", type=int, default=500)
    parser.add_argument("--in-front", type=int, default=IN_FRONT)
    parser.add_argument("--changes", type=int, default=40)
    parser.add_argument("--only", choices=("sqlite", "postgresql"))
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.inside:
        print(json.dumps(measure(wanted.inside, wanted.sockets, wanted.in_front, wanted.changes)))
        return
    results = [
        in_own_process(vendor, wanted.sockets, wanted.in_front, wanted.changes)
        for vendor in ([wanted.only] if wanted.only else ["sqlite", "postgresql"])
    ]
    if wanted.json:
        print(json.dumps(results))
        return
    for result in results:
        print("{database}: {sockets} sockets, {in_front} in front, {changes} changes".format(**result))
        for name in KINDS:
            if name not in result:
                continue
            print(
                "  {0}: median {median} ms, p95 {p95} ms, longest {longest} ms".format(name, **result[name])
            )


def in_own_process(vendor: str, sockets: int, in_front: int, changes: int) -> dict[str, object]:
    command = [sys.executable, "-m", "bench.sockets", "--inside", vendor]
    command += ["--sockets", str(sockets), "--in-front", str(in_front), "--changes", str(changes)]
    with tempfile.TemporaryDirectory(prefix="bench-") as home:
        environment = fresh(home) | {
            "DURABLEWEB_ALLOWED_HOSTS": "127.0.0.1",
            "DURABLEWEB_HTTPS": "0",
            "DURABLEWEB_DEBUG": "1",
        }
        if vendor == "sqlite":
            return run(command, environment)
        sys.path.insert(0, str(ROOT))
        from tests.postgres import private_cluster

        with private_cluster(durable=True) as url:
            return run(command, environment | {"DATABASE_URL": url})


def measure(vendor: str, sockets: int, in_front: int, changes: int) -> dict[str, object]:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    sessions, approvals = people(), questions(changes)
    with serving() as address:
        times = asyncio.run(watched(address, sessions, approvals, sockets, in_front))
    said = {"database": vendor, "sockets": sockets, "in_front": in_front, "changes": changes}
    return said | {kind: spread(seconds) for kind, seconds in times.items() if seconds}


def spread(seconds: list[float]) -> dict[str, int]:
    ordered = sorted(seconds)
    shown = {
        "median": statistics.median(ordered),
        "p95": ordered[int(len(ordered) * 0.95)],
        "longest": ordered[-1],
    }
    return {name: round(value * 1000) for name, value in shown.items()}


# -- what is there


def people() -> list[str]:
    """The session cookies of so many reviewers."""
    from django.contrib.auth.models import Group, User
    from django.test import Client

    group, cookies = Group.objects.create(name="pm"), []
    for number in range(PEOPLE):
        user = User.objects.create(username=f"u{number}")
        user.groups.add(group)
        client = Client()
        client.force_login(user)
        cookies.append(client.cookies["sessionid"].value)
    return cookies


def questions(count: int) -> list[str]:
    """So many open approvals, asked by real runs."""
    from approvals.models import Approval
    from runs import Graph, registry, start
    from runs.engine.claim import Claimer
    from runs.engine.drive import Drive

    graph = Graph("asking")

    @graph.node
    def ask(run: object, state: dict) -> None:
        run.interrupt("Send it?", {"subject": "Hello"}, reviewers=["pm"])

    registry.add(graph)
    for _ in range(count):
        waiting = start(graph, {})
        Drive(*Claimer("bench", [graph]).claim(alone=True, only=waiting.pk)).run()
    return [str(key) for key in Approval.objects.values_list("pk", flat=True)]


@contextmanager
def serving() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "durableweb.asgi:application", "--port", str(port)]
    with subprocess.Popen([*command, "--log-level", "warning"], cwd=ROOT, env=dict(os.environ)) as server:
        try:
            until_it_listens(port)
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()


def until_it_listens(port: int) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


# -- who looks, and what happens


async def watched(
    address: str, sessions: list[str], approvals: list[str], sockets: int, in_front: int
) -> dict[str, list[float]]:
    """Seconds from each decision to each socket that was to hear of it, and to each page in front that then shows it:
    of lists, and of the approvals by name."""
    heard: Heard = asyncio.Queue()
    door = asyncio.Semaphore(AT_ONCE)
    ready = [asyncio.get_running_loop().create_future() for _ in range(sockets)]
    readers = [
        asyncio.create_task(
            watch(
                Page(n, address, sessions[n % len(sessions)], approvals[n % len(approvals)], n < in_front),
                door,
                ready[n],
                heard,
            )
        )
        for n in range(sockets)
    ]
    await asyncio.gather(*ready)
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for place, key in enumerate(approvals):
        began = time.monotonic()
        await asyncio.to_thread(decide, key)
        theirs = range(place, sockets, len(approvals))
        owed = {(number, "list") for number in range(sockets)} | {(number, "own") for number in theirs}
        owed |= {(number, f"{kind} seen") for number, kind in owed if number < in_front}
        while owed:
            number, kind, at = await asyncio.wait_for(heard.get(), PATIENCE_SECONDS)
            if (number, kind) in owed:
                owed.remove((number, kind))
                times[kind].append(at - began)
        await asyncio.sleep(APART_SECONDS)
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    return times


class Page:
    """One open page: `own` is the approval that it shows; one in front reads again what it is told of."""

    def __init__(self, number: int, address: str, session: str, own: str, is_in_front: bool) -> None:
        self.number, self.address, self.session, self.own = number, address, session, own
        self.is_in_front = is_in_front
        self.stirred = {name: asyncio.Event() for name in self.parts}

    @property
    def parts(self) -> dict[str, tuple[str, ...]]:
        """What carries each name, by its path."""
        mine = tuple(f"approvals/{self.own}/parts/{part}/" for part in PARTS_OF_ONE)
        return {**PARTS, f"approval:{self.own}": mine}

    def kind(self, name: str) -> str:
        return "list" if name == "inbox" else "own"

    async def read(self, name: str, heard: Heard) -> None:
        """Whatever changes meanwhile is read after this: no part is read twice at a time."""
        import httpx

        headers = {"Cookie": f"sessionid={self.session}", "HX-Request": "true"}
        async with httpx.AsyncClient(
            base_url=f"http://{self.address}", headers=headers, timeout=PATIENCE_SECONDS, trust_env=False
        ) as client:
            while True:
                await self.stirred[name].wait()
                if name == "inbox":
                    await asyncio.sleep(GATHER_SECONDS)
                self.stirred[name].clear()
                answers = await asyncio.gather(*(client.get(f"/{path}") for path in self.parts[name]))
                for answer in answers:
                    answer.raise_for_status()
                heard.put_nowait((self.number, f"{self.kind(name)} seen", time.monotonic()))


async def watch(page: Page, door: asyncio.Semaphore, ready: asyncio.Future[None], heard: Heard) -> None:
    """One page's socket: it says what it watches, and tells `heard` each name that changed, with the time."""
    from websockets.asyncio.client import connect

    async with door:
        socket = await connect(
            f"ws://{page.address}/live/",
            origin=f"http://{page.address}",
            additional_headers={"Cookie": f"sessionid={page.session}"},
            open_timeout=PATIENCE_SECONDS,
        )
        await socket.send(json.dumps({"watch": list(page.parts), "age": 0}))
        await socket.recv()
    ready.set_result(None)
    async with socket, asyncio.TaskGroup() as tasks:
        if page.is_in_front:
            for name in page.parts:
                tasks.create_task(page.read(name, heard))
        async for message in socket:
            for name in json.loads(message)["changed"]:
                heard.put_nowait((page.number, page.kind(name), time.monotonic()))
                page.stirred[name].set()


def decide(key: str) -> None:
    from django.contrib.auth.models import User

    from approvals.models import Approval

    Approval.objects.get(pk=key).decide(by=User.objects.get(username="u0"), verdict="approve")


if __name__ == "__main__":
    main()
