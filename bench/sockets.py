"""How long until everybody who looks sees a change: many live sockets on one web process.

    python -m bench.sockets [--json] [--sockets 500] [--in-front 2] [--changes 40] [--only sqlite|postgresql]

A fresh installation, one `uvicorn` process as in production (debug off, static files collected), and real WebSockets
from this process: each belongs to one of 50 signed-in people of the reviewers' group, and watches what an opened page
of one approval names. Approvals are decided one after another, two seconds apart; a sample is the time from the begin
of `decide` to the message at one socket. "list" is the name of the inbox, at every socket; "own" is the name of the
decided approval, at those who watch it. "decided" is the part of these times that `decide` took itself. Milliseconds.

To be told is not to see: a page in front then reads again what changed, as static/js/live.js does, from the addresses
that the page names. At each change `--in-front` of these pages are in front, first those that show the approval which
is decided (the others read when they come to the front). "list seen" and "own seen" are the times until the last part
that carries that name has arrived. What a browser then takes to put it in is not measured. The "web process" line says
how much of one processor a change costs it, everybody's reading included.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from websockets.asyncio.client import connect

from bench.steps import ROOT, fresh, run

PEOPLE = 50
IN_FRONT = 2
APART_SECONDS = 2.0
PATIENCE_SECONDS = 30.0
Heard = asyncio.Queue[tuple[int, str, float]]  # the socket's number, what changed, when it was told
AT_ONCE = 25  # sockets that are opened side by side
GATHER_SECONDS = 0.12  # for so long a page waits before it reads its lists (static/js/live.js)
KINDS = ("decided", "list", "own", "list seen", "own seen")
LIVE = re.compile(r'<[^<>]* id="([^"]+)"[^<>]* data-live="([^"]+)" data-live-url="([^"]+)"([^<>]*)>')
BRINGS = re.compile(r'data-live-brings="([^"]+)"')
Parts = dict[str, list[str]]  # the addresses of the parts that carry a name


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
        print("  web process: {cpu} ms of a processor for each change".format(**result))
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
            "DURABLEWEB_DEBUG": "0",
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
    call_command("collectstatic", verbosity=0, interactive=False)
    sessions, approvals = people(), questions(changes)
    with serving() as (address, process):
        times, cpu = asyncio.run(watched(address, process, sessions, approvals, sockets, in_front))
    said = {"database": vendor, "sockets": sockets, "in_front": in_front, "changes": changes}
    said["cpu"] = round(cpu / changes * 1000)
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
def serving() -> Iterator[tuple[str, int]]:
    """Its address, and the id of its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "durableweb.asgi:application", "--port", str(port)]
    with subprocess.Popen([*command, "--log-level", "warning"], cwd=ROOT, env=dict(os.environ)) as server:
        try:
            until_it_listens(port)
            yield f"127.0.0.1:{port}", server.pid
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
    address: str, process: int, sessions: list[str], approvals: list[str], sockets: int, in_front: int
) -> tuple[dict[str, list[float]], float]:
    """Seconds from each decision to each socket that was to hear of it, and to each page in front that then shows it:
    of lists, and of the approvals by name. And the seconds of a processor that the web process took for all."""
    heard: Heard = asyncio.Queue()
    door = asyncio.Semaphore(AT_ONCE)
    names = [(sessions[n % len(sessions)], approvals[n % len(approvals)]) for n in range(sockets)]
    pages = [Page(number, address, *whose, heard) for number, whose in enumerate(names)]
    readers = [asyncio.create_task(page.live(door)) for page in pages]
    await asyncio.gather(*(page.ready for page in pages))
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    cpu = 0.0
    for place, key in enumerate(approvals):
        theirs = range(place, sockets, len(approvals))
        front = sorted(range(sockets), key=lambda number: number not in theirs)[:in_front]
        for number in front:
            await pages[number].come_to_front()
        owed = {(number, "list") for number in range(sockets)} | {(number, "own") for number in theirs}
        owed |= {(number, f"{kind} seen") for number, kind in owed if number in front}
        before, began = processor_seconds(process), time.monotonic()
        await asyncio.to_thread(decide, key)
        times["decided"].append(time.monotonic() - began)
        await until_paid(owed, heard, began, times)
        await asyncio.sleep(APART_SECONDS)
        cpu += processor_seconds(process) - before
        for number in front:
            pages[number].is_in_front = False
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    return times, cpu


async def until_paid(
    owed: set[tuple[int, str]], heard: Heard, began: float, times: dict[str, list[float]]
) -> None:
    while owed:
        try:
            number, kind, at = await asyncio.wait_for(heard.get(), PATIENCE_SECONDS)
        except TimeoutError:
            raise SystemExit(f"After {PATIENCE_SECONDS} s pages still wait: {sorted(owed)[:20]}") from None
        if at >= began and (number, kind) in owed:
            owed.remove((number, kind))
            times[kind].append(at - began)


def processor_seconds(process: int) -> float:
    """What that process has used so far, its own work and the system's for it."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Page:
    """One open page: `own` is the approval that it shows; one in front reads again what it is told of."""

    def __init__(self, number: int, address: str, session: str, own: str, heard: Heard) -> None:
        self.number, self.address, self.session, self.own, self.heard = number, address, session, own, heard
        self.is_in_front = False
        self.ready = asyncio.get_running_loop().create_future()
        self.parts: Parts = {}
        self.reading: dict[str, asyncio.Task[None]] = {}
        self.client: httpx.AsyncClient | None = None

    async def live(self, door: asyncio.Semaphore) -> None:
        """Its socket: it says what it watches, and tells `heard` each name that changed, with the time."""
        async with door:
            socket = await connect(
                f"ws://{self.address}/live/",
                origin=f"http://{self.address}",
                additional_headers={"Cookie": f"sessionid={self.session}"},
                open_timeout=PATIENCE_SECONDS,
            )
            await socket.send(json.dumps({"watch": ["inbox", f"approval:{self.own}"], "age": 0}))
            await socket.recv()
        self.ready.set_result(None)
        async with socket, asyncio.TaskGroup() as tasks:
            async for message in socket:
                at = time.monotonic()
                for name in json.loads(message)["changed"]:
                    kind = "list" if name == "inbox" else "own"
                    self.heard.put_nowait((self.number, kind, at))
                    if self.is_in_front:
                        before = self.reading.get(name)
                        self.reading[name] = tasks.create_task(self.read(name, f"{kind} seen", before))

    async def come_to_front(self) -> None:
        """The whole page is opened, as it had to be, and says where its parts are read."""
        if self.client is None:
            self.client = httpx.AsyncClient(
                base_url=f"http://{self.address}",
                headers={"Cookie": f"sessionid={self.session}"},
                timeout=PATIENCE_SECONDS,
                trust_env=False,
            )
        answer = (await self.client.get(f"/approvals/{self.own}/")).raise_for_status()
        found = LIVE.findall(answer.text)
        brought = {each for *_part, more in found for ids in BRINGS.findall(more) for each in ids.split()}
        self.parts = {}
        for part, names, url, _more in found:
            for name in names.split():
                if part not in brought:
                    self.parts.setdefault(name, []).append(html.unescape(url))
        self.is_in_front = True

    async def read(self, name: str, kind: str, before: asyncio.Task[None] | None) -> None:
        """No part is read twice at a time."""
        if before is not None:
            await before
        if name == "inbox":
            await asyncio.sleep(GATHER_SECONDS)
        answers = await asyncio.gather(*(self.get(url) for url in self.parts[name]))
        for answer in answers:
            answer.raise_for_status()
        self.heard.put_nowait((self.number, kind, time.monotonic()))

    async def get(self, url: str) -> httpx.Response:
        assert self.client is not None
        return await self.client.get(url, headers={"HX-Request": "true"})


def decide(key: str) -> None:
    from django.contrib.auth.models import User

    from approvals.models import Approval

    Approval.objects.get(pk=key).decide(by=User.objects.get(username="u0"), verdict="approve")


if __name__ == "__main__":
    main()
