"""Processes of Python that need not load everything again: `Popen` as subprocess has it, forked from one that is warm.

Each process of this project that a test starts reads a thousand modules, which takes a second of a processor before
that begins which the test is about. So one process (`python -m tests.warm_start`) has loaded what depends on no
setting and is not ours, and forks, whenever it is asked, a child with an environment, a folder and files of its own, in
which the program runs as if Python had been started with it. What `manage.py work` starts there is forked from itself.

Tests of how processes start do without it, so that this too is tried as an operator has it (docs/adr, 41).
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NoReturn

ON_LINUX = sys.platform == "linux"
MOST_BYTES = 200_000  # of a command with its environment
ROOM = " " * 1_000  # in which a child's own command is written for /proc
MOST_FILES = 1_024
WITHOUT_SETTINGS = (
    "asgiref.sync",
    "cryptography.hazmat.primitives.asymmetric.ec",
    "django.contrib.messages",
    "django.core.management",
    "django.core.serializers.json",
    "django.db.backends.sqlite3.base",
    "django.db.migrations.executor",
    "django.db.models",
    "django.forms",
    "django.template",
    "django.views.debug",
    "email.message",
    "httpx",
    "multiprocessing.pool",
    "packaging.requirements",
    "prometheus_client",
    "psutil",
    "psycopg",
    "pydantic.json_schema",
    "pydantic.root_model",
    "pydantic.type_adapter",
    "requests",
    "uvicorn.main",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)


class Popen(subprocess.Popen):
    """`command` is [sys.executable, "manage.py" or the like, ...] or [sys.executable, "-m", module, ...].

    The starter is its parent, and lets it be a zombie until it is waited for here, as a parent does.
    """

    if ON_LINUX:

        def _execute_child(
            self, args: Sequence[Any], executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any,
            cwd: Any, env: Any, startupinfo: Any, creationflags: Any, shell: Any, *pipes_and_more: Any,
        ) -> None:  # fmt: skip
            pipes = pipes_and_more[:6]
            self.pid = _starter().start([str(word) for word in args[1:]], cwd, env, _files_of_child(*pipes))
            self._child_created = True
            self._close_pipe_fds(*pipes)

        def _internal_poll(self, _deadstate: Any = None) -> int | None:
            if self.returncode is None and self._try_wait(os.WNOHANG)[0]:
                self.returncode = os.waitstatus_to_exitcode(self._ended[1])
            return self.returncode

        def _try_wait(self, wait_flags: int) -> tuple[int, int]:
            """As os.waitpid."""
            if not wait_flags & os.WNOHANG:
                child = os.pidfd_open(self.pid)
                select.select([child], [], [])
                os.close(child)
            self._ended = _starter().waitpid(self.pid)
            return self._ended


def _files_of_child(*pipes: int) -> list[int]:
    """Of the six ends that subprocess makes, its three; where one is none (-1), that of its parent."""
    stdin, _, _, stdout, _, stderr = pipes
    return [file if file != -1 else own for own, file in enumerate((stdin, stdout, stderr))]


def run(command: Sequence[str], **settings: Any) -> subprocess.CompletedProcess[str]:
    """As subprocess.run does with capture_output and text."""
    with Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings) as process:
        printed, errors = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, printed, errors)


@cache
def _starter() -> _Starter:
    return _Starter()


class _Starter:
    """The warm process, which ends with this one."""

    def __init__(self) -> None:
        self.line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno()), ROOM], pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self._asking = threading.Lock()
        atexit.register(self.end)

    def start(
        self, words: list[str], folder: str | os.PathLike[str] | None, environment: Any, files: list[int]
    ) -> int:
        environment = os.environ if environment is None else environment
        return self._ask(files, words=words, folder=str(folder or os.getcwd()), environment={**environment})

    def waitpid(self, pid: int) -> tuple[int, int]:
        return tuple(self._ask([], ended=pid))

    def _ask(self, files: list[int], **asked: Any) -> Any:
        with self._asking:
            socket.send_fds(self.line, [json.dumps(asked).encode()], files)
            answer = self.line.recv(MOST_BYTES)
        assert answer, "the starter of processes has ended"
        return json.loads(answer)

    def end(self) -> None:
        self.line.close()
        self.process.wait()


# -- in the starter


def main(line_number: int) -> None:
    for name in WITHOUT_SETTINGS:
        import_module(name)
    from django.conf import settings

    assert not settings.configured, "one of these modules reads the settings"
    gc.freeze()  # a child need not look through what it shares
    with socket.socket(fileno=line_number) as line:
        while True:
            message, files, _, _ = socket.recv_fds(line, MOST_BYTES, 3)
            if not message:
                return
            asked = json.loads(message)
            if "ended" in asked:
                answer = list(os.waitpid(asked["ended"], os.WNOHANG))
            elif (answer := os.fork()) == 0:
                line.close()
                os.chdir(asked["folder"])
                os.environ.clear()
                os.environ.update(asked["environment"])
                _become(asked["words"], files)
            for file in files:
                os.close(file)
            line.send(json.dumps(answer).encode())


# -- in a child


class Forked(subprocess.Popen):
    """For `manage.py work` in a child: what it starts is a fork of it, with none of its connections and files."""

    def __init__(self, command: Sequence[str], **settings: Any) -> None:
        from django.db import connections

        connections.close_all()
        super().__init__(command, **settings)

    def _execute_child(
        self, args: Sequence[Any], executable: Any, preexec_fn: Any, close_fds: Any, pass_fds: Any,
        cwd: Any, env: Any, startupinfo: Any, creationflags: Any, shell: Any, *pipes_and_more: Any,
    ) -> None:  # fmt: skip
        pipes = pipes_and_more[:6]
        sys.stdout.flush(), sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            _become([str(word) for word in args[1:]], _files_of_child(*pipes))
        self._child_created = True
        self._close_pipe_fds(*pipes)


def _become(words: list[str], files: list[int]) -> NoReturn:
    """Run that program, and end with its exit code."""
    status = 1
    try:
        _take(files)
        _ask_like_new()
        _show(words)
        if words[:2] == ["manage.py", "work"]:
            import_module("runs.work.supervised").subprocess = SimpleNamespace(
                Popen=Forked, PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL
            )
        status = _run(words)
        threading._shutdown()  # as Python does before it ends
        atexit._run_exitfuncs()
        sys.stdout.flush(), sys.stderr.flush()
    finally:
        os._exit(status)


def _take(files: list[int]) -> None:
    kept = [os.dup(file) for file in files]
    for number, file in enumerate(kept):
        os.dup2(file, number)
    os.closerange(3, MOST_FILES)
    at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
    for number, name in ((1, "stdout"), (2, "stderr")):
        raw = open(number, "wb", buffering=0 if at_once else -1, closefd=False)  # noqa: SIM115
        text = io.TextIOWrapper(
            raw, "utf-8", "backslashreplace" if number == 2 else None,
            line_buffering=number == 2, write_through=at_once,
        )  # fmt: skip
        setattr(sys, name, text), setattr(sys, f"__{name}__", text)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115


def _ask_like_new() -> None:
    """Signals do what they do in a new Python, unless they are ignored."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def _show(words: list[str]) -> None:
    """Write the command where /proc/<pid>/cmdline is read from."""
    with open("/proc/self/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    first, last = int(fields[45]), int(fields[46])  # arg_start and arg_end of proc(5)
    line = "\0".join([sys.executable, *words]).encode()[: last - first - 1]
    ctypes.memmove(first, line.ljust(last - first, b"\0"), last - first)


def _run(words: list[str]) -> int:
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = list(words)
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is for the tests, which close the line
        main(int(sys.argv[1]))
