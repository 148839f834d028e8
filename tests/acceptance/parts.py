"""What `bin/up` starts, in a test: pages, worker and a model, each a real process that can be killed."""

from __future__ import annotations

import email
import email.policy
import json
import os
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import psutil

from runs.models import LedgerEntry, Run, Worker
from runs.work.process_tree import is_alive, wait_until_gone
from tests import warm_start
from tests.acceptance.installation import START_SECONDS, Work, until
from tests.conftest import ROOT

MODEL = "slow-drafter"
DRIVEN_SECONDS = 180.0  # until a run is driven again: a lease, a pause for a suspect, the watchdog's patience
READY = re.compile(r"ready for work at (\d+)")


@dataclass
class Parts:
    """An installation at work. `cut_off` names the workers that were killed while they held the run."""

    environment: dict[str, str]
    folder: Path
    work: Work | None = None
    cut_off: set[str] = field(default_factory=set)
    mails_before: set[Path] = field(default_factory=set)

    # -- started

    def start_work(self) -> None:
        """`manage.py work`, as an operator starts it; also again, after a kill."""
        log_file = self.folder / f"work-{time.time_ns()}.log"
        with log_file.open("wb") as log:
            command = [sys.executable, "manage.py", "work"]
            supervisor = warm_start.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)
        self.work = Work(supervisor, log_file)

    @contextmanager
    def pages(self) -> Iterator[str]:
        """The address of the site, which a process of its own serves."""
        port = free_port()
        command = [sys.executable, "-m", "uvicorn", "durableweb.asgi:application", "--host", "127.0.0.1"]
        with (self.folder / "web.log").open("wb") as log:
            web = warm_start.Popen(
                [*command, "--port", str(port)], cwd=ROOT, env=self.environment, stdout=log, stderr=log
            )
        try:
            until(lambda: answers(port) or web.poll() is not None, START_SECONDS)
            assert web.poll() is None, (self.folder / "web.log").read_text()
            yield f"http://127.0.0.1:{port}"
        finally:
            web.kill()
            web.wait()

    def manage(self, *words: str) -> dict[str, Any]:
        """A command of manage.py that prints JSON; it must succeed."""
        return json.loads(self.say(*words, "--json"))

    def say(self, *words: str, **more: str) -> str:
        command = [sys.executable, "manage.py", *words]
        done = warm_start.run(command, cwd=ROOT, env=self.environment | more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def demo_people(self) -> dict[str, str]:
        """Make them as `bin/up` does; name to password."""
        self.say("demo", DURABLEWEB_DEBUG="1", DURABLEWEB_ALLOWED_HOSTS="127.0.0.1")
        kept = Path(self.environment["DURABLEWEB_HOME"]) / "demo-people.json"
        passwords = json.loads(kept.read_text())
        kept.unlink()  # the home is shared with other tests, in which there are no such people
        return passwords

    # -- killed; each is seen dead before these return

    def kill_driver(self, run: Run, after_seconds: float = 0.0) -> str:
        """SIGKILL to the process that executes the node, so long after it was seen to do so. Empty: the run waits."""
        if not self._driver(run):
            return ""
        time.sleep(after_seconds)
        driver = self._driver(run)
        if driver is None:
            return ""
        self._kill({driver}, run)
        return f"the process {driver.pid} that executes the node"

    def _driver(self, run: Run) -> psutil.Process | None:
        """Wait for it; None if a person is asked meanwhile."""

        def found() -> psutil.Process | str | None:
            now = Run.objects.get(pk=run.pk)
            assert not now.ended, f"the run is {now.status} already: {now.error}"
            asked = LedgerEntry.objects.filter(run=run, kind="interrupt", status="open", awaited=True)
            if now.status == "waiting" and asked.exists():
                return "nobody"
            worker = Worker.objects.filter(pk=now.leased_by).first()
            with suppress(psutil.NoSuchProcess):
                if worker and is_alive(process := psutil.Process(worker.pid)):
                    return process
            return None

        driver = until(found, DRIVEN_SECONDS)
        return None if driver == "nobody" else driver

    def kill_worker(self, run: Run, dice: random.Random) -> str:
        """SIGKILL to any one of q2's worker processes, busy or idle."""
        worker = dice.choice(until(self.q2_workers, START_SECONDS, self.work))
        self._kill({worker}, run)
        return f"the q2 worker {worker.pid}"

    def kill_tree(self, run: Run) -> str:
        """SIGKILL to `manage.py work` and all that it has started; then it is started again."""
        family = self.work.family
        self._kill(family, run)
        self.start_work()
        return f"the whole tree of {len(family)} processes"

    def q2_workers(self) -> list[psutil.Process]:
        ready = {int(pid) for pid in READY.findall(self.work.log)}
        with suppress(psutil.NoSuchProcess):
            living = [process for process in self.work.family if process.pid in ready and is_alive(process)]
            return sorted(living, key=lambda process: process.pid)
        return []

    def _kill(self, victims: set[psutil.Process], run: Run) -> None:
        sessions = set(map(session_of, victims)) - {os.getsid(0), None}
        for process in victims:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        assert wait_until_gone(victims, 60), "a killed process lives"
        if self.work.supervisor.pid in {process.pid for process in victims}:
            self.work.supervisor.wait()
            until(lambda: not living_in(sessions))  # what one of them forked in its last moment
        held_by = Run.objects.values_list("leased_by", flat=True).get(pk=run.pk)
        if held_by and int(held_by.split(":")[2]) in {process.pid for process in victims}:
            self.cut_off.add(held_by)

    def end(self) -> None:
        family: set[psutil.Process] = set()
        with suppress(psutil.NoSuchProcess):
            family = self.work.family
        self.work.supervisor.kill()
        self.work.supervisor.wait()
        assert wait_until_gone(family, 60), "a process outlived its supervisor"

    # -- what came of it

    @property
    def mails(self) -> list[EmailMessage]:
        """What has come into the mail folder since the parts were started."""
        new = sorted(set(self._mail_files()) - self.mails_before)
        return [email.message_from_bytes(path.read_bytes(), policy=email.policy.default) for path in new]

    def _mail_files(self) -> list[Path]:
        return list((Path(self.environment["DURABLEWEB_HOME"]) / "mail").glob("[!.]*"))

    @property
    def logs(self) -> str:
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')}" for log in logs)


@contextmanager
def started(
    environment: dict[str, str],
    folder: Path,
    *,
    look_up: float = 0.0,
    think: float = 0.0,
    send: float = 0.0,
    undo: float = 1.0,
    script: str = "ok",
    **settings: str,
) -> Iterator[Parts]:
    """Worker and model at work, the brief's tools stretched by so many seconds; nothing is left afterwards."""
    environment = environment | {
        "DURABLEWEB_APPS": "tests.acceptance.slow",
        "DURABLEWEB_LEASE_SECONDS": "5",
        "DURABLEWEB_UNDO_SECONDS": str(undo),
        "SLOW_LOOK_UP": str(look_up),
        "SLOW_SEND": str(send),
        "BRIEF_MODEL_NAME": MODEL,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "PYTHONUNBUFFERED": "1",
        **settings,
    }
    with thinking(environment, folder, think, script) as url:
        parts = Parts(environment | {"BRIEF_MODEL_URL": url}, folder)
        parts.mails_before = set(parts._mail_files())
        parts.start_work()
        try:
            yield parts
        except BaseException:
            print(parts.logs)
            raise
        finally:
            parts.end()


@contextmanager
def thinking(environment: dict[str, str], folder: Path, seconds: float, script: str) -> Iterator[str]:
    """The address of a model that thinks for so long before each answer."""
    command = [sys.executable, "-m", "tests.acceptance.slow.model", str(seconds), script]
    with (folder / "model.log").open("wb") as log:
        model = warm_start.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=log)
    assert model.stdout is not None
    try:
        yield json.loads(model.stdout.readline())["url"]
    finally:
        model.kill()
        model.wait()
        model.stdout.close()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def session_of(process: psutil.Process) -> int | None:
    with suppress(OSError):
        return os.getsid(process.pid)
    return None


def living_in(sessions: set[int | None]) -> list[psutil.Process]:
    return [each for each in psutil.process_iter() if session_of(each) in sessions and is_alive(each)]
