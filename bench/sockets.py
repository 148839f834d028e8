"""How long until everybody who looks sees a change: many live sockets on one web process.

    python -m bench.sockets [--json] [--sockets 500] [--changes 40] [--only sqlite|postgresql]

A fresh installation, one `uvicorn` process as in production, and real WebSockets from this process: each belongs to one
of 50 signed-in people of the reviewers' group and watches the inbox, and one approval of its own that is decided later.
Approvals are decided one after another, two seconds apart; a sample is the time from the begin of `decide` to the
message at one socket. "list" is the name of the inbox, at every socket; "own" is the name of the decided approval, at
those who watch it. Milliseconds.
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
APART_SECONDS = 2.0
PATIENCE_SECONDS = 30.0
Heard = asyncio.Queue[tuple[int, str, float]]  # the socket's number, what changed, when it was told
AT_ONCE = 25  # sockets that are opened side by side


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sockets", type=int, default=500)
    parser.add_argument("--changes", type=int, default=40)
    parser.add_argument("--only", choices=("sqlite", "postgresql"))
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.inside:
        print(json.dumps(measure(wanted.inside, wanted.sockets, wanted.changes)))
        return
    results = [
        in_own_process(vendor, wanted.sockets, wanted.changes)
        for vendor in ([wanted.only] if wanted.only else ["sqlite", "postgresql"])
    ]
    if wanted.json:
        print(json.dumps(results))
        return
    for result in results:
        print(f"{result['database']}: {result['sockets']} sockets, {result['changes']} changes")
        for name in ("list", "own"):
            print(
                "  {0}: median {median} ms, p95 {p95} ms, longest {longest} ms".format(name, **result[name])
            )


def in_own_process(vendor: str, sockets: int, changes: int) -> dict[str, object]:
    command = [sys.executable, "-m", "bench.sockets", "--inside", vendor]
    command += ["--sockets", str(sockets), "--changes", str(changes)]
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


def measure(vendor: str, sockets: int, changes: int) -> dict[str, object]:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    sessions, approvals = people(), questions(changes)
    with serving() as address:
        lists, own = asyncio.run(watched(address, sessions, approvals, sockets))
    return {
        "database": vendor,
        "sockets": sockets,
        "changes": changes,
        "list": spread(lists),
        "own": spread(own),
    }


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
    address: str, sessions: list[str], approvals: list[str], sockets: int
) -> tuple[list[float], list[float]]:
    """Seconds from each decision to each socket that was to hear of it: of lists, and of the approvals by name."""
    heard: Heard = asyncio.Queue()
    door = asyncio.Semaphore(AT_ONCE)
    ready = [asyncio.get_running_loop().create_future() for _ in range(sockets)]
    readers = [
        asyncio.create_task(
            watch(
                n, address, sessions[n % len(sessions)], approvals[n % len(approvals)], door, ready[n], heard
            )
        )
        for n in range(sockets)
    ]
    await asyncio.gather(*ready)
    lists, own = [], []
    for place, key in enumerate(approvals):
        began = time.monotonic()
        await asyncio.to_thread(decide, key)
        owed = {(number, "inbox") for number in range(sockets)}
        owed |= {(number, f"approval:{key}") for number in range(place, sockets, len(approvals))}
        while owed:
            number, name, at = await asyncio.wait_for(heard.get(), PATIENCE_SECONDS)
            if (number, name) in owed:
                owed.remove((number, name))
                (lists if name == "inbox" else own).append(at - began)
        await asyncio.sleep(APART_SECONDS)
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    return lists, own


async def watch(
    number: int,
    address: str,
    session: str,
    own: str,
    door: asyncio.Semaphore,
    ready: asyncio.Future[None],
    heard: Heard,
) -> None:
    """One page's socket: it says what it watches, and tells `heard` each name that changed, with the time."""
    from websockets.asyncio.client import connect

    names = ["inbox", f"approval:{own}"]
    async with door:
        page = await connect(
            f"ws://{address}/live/",
            origin=f"http://{address}",
            additional_headers={"Cookie": f"sessionid={session}"},
            open_timeout=PATIENCE_SECONDS,
        )
        await page.send(json.dumps({"watch": names, "age": 0}))
        await page.recv()
    ready.set_result(None)
    async with page:
        async for message in page:
            for name in json.loads(message)["changed"]:
                heard.put_nowait((number, name, time.monotonic()))


def decide(key: str) -> None:
    from django.contrib.auth.models import User

    from approvals.models import Approval

    Approval.objects.get(pk=key).decide(by=User.objects.get(username="u0"), verdict="approve")


if __name__ == "__main__":
    main()
