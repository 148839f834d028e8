"""A private PostgreSQL cluster for tests and benchmarks: on loopback, on a free port, gone afterwards.

Only the standard library is used, so that bin/test can start it before any environment is made.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DATABASE = "durableweb"
PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")
QUICK = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
START_SECONDS = 60
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
SET_PARENT_DEATH_SIGNAL = 1


class PostgresMissing(RuntimeError):
    """No PostgreSQL server binaries: install the package `postgresql`, or set DATABASE_URL to a server."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


@contextmanager
def private_cluster(durable: bool = False) -> Iterator[str]:
    """The DATABASE_URL of a new cluster; `durable` keeps fsync on, as a benchmark needs. Raises PostgresMissing."""
    cluster = Cluster(durable)
    try:
        cluster.start()
        cluster.create_database()
        yield cluster.url
    finally:
        cluster.remove()


class Cluster:
    """One server and its files. It ends with the process that started it, also if that is killed (on Linux)."""

    def __init__(self, durable: bool = False) -> None:
        self.binaries = find_binaries()
        self.durable = durable
        self.owner = _ordinary_user()
        self.folder = Path(tempfile.mkdtemp(prefix="durableweb-postgres-"))
        self.port = 0
        self._server: subprocess.Popen[bytes] | None = None
        if self.owner is not None:
            os.chown(self.folder, self.owner.pw_uid, self.owner.pw_gid)
        self._run("initdb", "--pgdata", self._data, "--username", DATABASE, "--auth", "trust", "--no-sync",
                  "--encoding", "UTF8", "--locale", "C")  # fmt: skip

    @property
    def url(self) -> str:
        return f"postgres://{DATABASE}@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def start(self) -> None:
        """Again on the same port after stop()."""
        if not self.port:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
        settings = {"listen_addresses": "127.0.0.1", "port": str(self.port), "max_connections": "200",
                    "unix_socket_directories": str(self.folder), "log_min_messages": "fatal"}  # fmt: skip
        if not self.durable:
            settings |= QUICK
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with open(self.folder / "log", "ab") as log:
            self._server = subprocess.Popen(
                [self.binaries / "postgres", "-D", self._data, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C is for the tests, which then stop it
                preexec_fn=_end_with_parent,
                **self._as_owner(),
            )
        self._wait_until_ready()

    def create_database(self) -> None:
        self._run("createdb", *self._address, DATABASE)

    def copy_from(self, url: str) -> bool:
        """Take over the tables and rows of that database; False if there is no pg_dump or psql of this server."""
        dump, psql = self.binaries / "pg_dump", self.binaries / "psql"
        if not (dump.exists() and psql.exists()):
            return False
        rows = subprocess.run([dump, "--no-owner", url], stdout=subprocess.PIPE, check=True).stdout
        whole = ("--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1")
        subprocess.run([psql, *whole, self.url], input=rows, stdout=subprocess.DEVNULL, check=True)
        return True

    def stop(self) -> None:
        """At once, as if the power had failed; committed rows stay."""
        if self._server is not None:
            if self._server.poll() is None:
                self._server.send_signal(signal.SIGQUIT)
            self._server.wait()
            self._server = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _address(self) -> tuple[str, ...]:
        return ("--host", "127.0.0.1", "--port", str(self.port), "--username", DATABASE)

    def _wait_until_ready(self) -> None:
        assert self._server is not None
        ready = [self.binaries / "pg_isready", "--quiet", *self._address, "--dbname", "postgres"]
        until = time.monotonic() + START_SECONDS
        while subprocess.run(ready).returncode != 0:
            if self._server.poll() is not None or time.monotonic() > until:
                log = (self.folder / "log").read_text(errors="replace")
                raise RuntimeError(f"PostgreSQL did not start on port {self.port}:\n{log}")
            time.sleep(0.05)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self.binaries / program, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            **self._as_owner(),
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed:\n{done.stdout}")

    def _as_owner(self) -> dict[str, object]:
        """Arguments of subprocess: PostgreSQL refuses to run as root."""
        if self.owner is None:
            return {}
        return {"user": self.owner.pw_uid, "group": self.owner.pw_gid, "extra_groups": []}


def find_binaries() -> Path:
    """The folder with initdb and postgres: on the PATH, named by pg_config, or where packages put it."""
    candidates: list[Path] = []
    if on_path := shutil.which("initdb"):
        candidates.append(Path(on_path).resolve().parent)
    if pg_config := shutil.which("pg_config"):
        named = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True).stdout.strip()
        candidates.append(Path(named))
    for place in PLACES:
        found = Path("/").glob(place.removeprefix("/"))
        candidates += sorted(found, key=_version, reverse=True)
    for folder in candidates:
        if all((folder / program).exists() for program in ("initdb", "postgres", "createdb", "pg_isready")):
            return folder
    raise PostgresMissing


def _version(folder: Path) -> int:
    return int("".join(letter for letter in folder.parent.name if letter.isdigit()) or 0)


def _ordinary_user() -> pwd.struct_passwd | None:
    """Whom the server runs as when we are root; None for ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("PostgreSQL does not run as root, and there is neither a user postgres nor nobody.")


def _end_with_parent() -> None:
    """Between fork and exec, already as the server's user: who may not be able to read Python's own files."""
    if LIBC is not None:
        LIBC.prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGQUIT)


def main() -> None:
    """`python tests/postgres.py [--durable]` prints the URL and serves until Ctrl-C."""
    with private_cluster(durable="--durable" in sys.argv) as url:
        print(url, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
