"""Everything on this machine in one command: database, demo, pages, worker. Ctrl-C ends all of it."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn  # options are whatever the command line gives

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections

from durableweb.management.commands.demo import passwords
from durableweb.processes import Part, end_all
from runs.command_line import OneLineCommand, migrations_to_apply

HOST = "127.0.0.1"
GRACE_SECONDS = 3.0
LOOK_SECONDS = 0.2
SLOW_START_SECONDS = 120.0
BRIEF = "competitive-brief"
DEMO_KEY = "demo"
BRIEF_INPUT = {
    "goal": "Which of these packages should carry our background work and live pages?",
    "vendors": ["django-q2", "channels", "django-htmx"],
    "to": "board@example.com",
}
REFUND = "refund-agent"
REFUND_INPUT = {"order": "B-4", "request": "The sofa does not fit through our door. Please take it back."}
PROVIDER = "REFUND_PROVIDER_URL"


class Command(OneLineCommand):
    help = "Migrates the database, makes the demo, and runs pages and worker until Ctrl-C."
    parts: tuple[Part, ...] = ()
    _home = Path(settings.HOME)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--port", type=_port, default=8000, help="where the pages are (default 8000)")
        parser.add_argument("--no-demo", action="store_true", help="make no demo people and start no runs")

    def handle(self, *args: Any, port: int, no_demo: bool, **options: Any) -> None:
        for name in (
            signal.SIGTERM,
            signal.SIGHUP,
            signal.SIGINT,
        ):  # a shell starts what has a & with SIGINT ignored
            signal.signal(name, _as_interrupt)
        try:
            self._refuse_taken(port)
            self._migrate()
            run_id = None if no_demo else self._make_demo()
            connections.close_all()  # the children have their own
            self._start(port, with_provider=not no_demo and not os.environ.get(PROVIDER))
            self._wait_for_pages(port)
            self._say(f"\ndurableweb is at http://{HOST}:{port}/\n")
            if run_id is None:
                self._say("Make yourself a user: manage.py createsuperuser")
            else:
                self._say_what_next(port, run_id, self._wait_for_approval(run_id))
            self._say(f"Logs are in {self._home / 'logs'}. Ctrl-C stops everything and keeps the rows.")
            self._keep_alive()
        except KeyboardInterrupt:
            self._say("\nStopping; what runs now goes on at the next start.")
        finally:
            end_all(self.parts, GRACE_SECONDS)
        self._say("Stopped.")

    def _refuse_taken(self, port: int) -> None:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError as error:
                other = port + 1 if port < 65535 else port - 1
                raise CommandError(
                    f"Port {port} on {HOST} cannot be used ({error.strerror}): "
                    f"end what uses it, or take another with --port {other}."
                ) from error

    def _migrate(self) -> None:
        steps = len(migrations_to_apply())
        self._say(f"Database: {steps} migrations to apply" if steps else "Database: up to date")
        call_command("migrate", interactive=False, verbosity=1 if steps else 0)

    def _make_demo(self) -> str:
        """The id of the brief that the first start began."""
        from django.contrib.auth.models import User

        import runs
        from runs.models import Run

        self._say("Demo people (name, password):")
        call_command("demo")
        requester, ids = User.objects.get(username="requester"), []
        for graph, given in ((BRIEF, BRIEF_INPUT), (REFUND, REFUND_INPUT)):
            started = Run.objects.filter(graph=graph, key=DEMO_KEY).first()
            if started is None:
                started = runs.start(graph, given, key=DEMO_KEY, by=requester)
                self._say(f"Started a {graph}: run {started.pk}")
            ids.append(str(started.pk))
        return ids[0]

    def _start(self, port: int, with_provider: bool) -> None:
        logs, root = self._home / "logs", Path(settings.ROOT)
        web = [sys.executable, "-m", "uvicorn", "durableweb.asgi:application", "--host", HOST]
        web += ["--port", str(port), "--log-level", "warning", "--timeout-graceful-shutdown", "2"]
        work = [sys.executable, str(root / "manage.py"), "work"]
        self.parts = (
            Part("web", web, logs / "web.log", self._say, root),
            Part("worker", work, logs / "worker.log", self._say, root),
        )
        if with_provider:
            self.parts += (self._provider(logs, root),)
        # a worker asked to stop must hand its runs back before it is killed, or they wait for their leases
        os.environ.setdefault("DURABLEWEB_GRACE_SECONDS", f"{GRACE_SECONDS / 2:g}")
        for part in self.parts:
            part.start()

    def _provider(self, logs: Path, root: Path) -> Part:
        """The payment provider of the refund agent; the worker is told its address."""
        with socket.create_server((HOST, 0)) as probe:
            port = probe.getsockname()[1]
        os.environ[PROVIDER] = f"http://{HOST}:{port}"
        command = [sys.executable, "-m", "examples.refunds.provider", "--port", str(port)]
        return Part(
            "payments",
            [*command, "--book", self._home / "refunds.jsonl"],
            logs / "payments.log",
            self._say,
            root,
        )

    def _wait_for_pages(self, port: int) -> None:
        self._say("Starting pages and worker ...")
        until = time.monotonic() + SLOW_START_SECONDS
        while time.monotonic() < until:
            try:
                socket.create_connection((HOST, port), timeout=1).close()
                return
            except OSError:
                self._look_after_parts()
        raise CommandError(f"The pages did not come up in {SLOW_START_SECONDS:g} s; see {self.parts[0].log}.")

    def _wait_for_approval(self, run_id: str) -> str:
        """Show how the brief proceeds, until it waits for a person or has ended; its status then."""
        from runs.models import Run

        shown, until = "", time.monotonic() + SLOW_START_SECONDS
        while True:
            run = Run.objects.get(pk=run_id)
            connections.close_all()
            line = f"  brief: {run.status} in {run.node}, {run.step} steps done"
            if line != shown:
                self._say(line)
                shown = line
            if run.status not in ("created", "running", "retrying") or time.monotonic() > until:
                return run.status
            self._look_after_parts()

    def _say_what_next(self, port: int, run_id: str, status: str) -> None:
        site = f"http://{HOST}:{port}"
        self._say(f"\nSign in at {site}/login/ as pm, password {passwords(self._home)['pm']}")
        if status == "waiting":
            self._say(
                "In the inbox, open the waiting brief, change the e-mail if you like, and press Approve."
            )
            if os.environ.get("DURABLEWEB_EMAIL_URL"):
                self._say("The mail is then handed to the server of DURABLEWEB_EMAIL_URL.")
            else:
                self._say(f"The mail is then a file in {self._home / 'mail'}.")
            self._say(
                "A refund waits there too: an agent proposes it, and nothing is paid until you approve."
            )
        self._say(f"Every step of the brief is at {site}/runs/{run_id}/")

    def _keep_alive(self) -> NoReturn:
        while True:
            self._look_after_parts()

    def _look_after_parts(self) -> None:
        for part in self.parts:
            part.look()
        time.sleep(LOOK_SECONDS)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _port(word: str) -> int:
    if word.isdigit() and 0 < int(word) < 65536:
        return int(word)
    raise argparse.ArgumentTypeError(f"{word!r} is no port: write a number from 1 to 65535")


def _as_interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
