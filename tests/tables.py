"""A database with all tables, for the many processes of a run of the tests; a developer's next run finds it again.

To make one from nothing, all migrations that there ever were are gone through; CI does so each time. What was made is
kept in the environment's folder under a digest of the files from which it came. Only the standard library is used.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

from tests.postgres import PostgresMissing, find_binaries

ROOT = Path(__file__).resolve().parent.parent
KEPT_SECONDS = 86_400  # after the last run that began with them
FILE, DUMP = "durableweb.sqlite3", "durableweb.sql"
MADE_FROM = (
    "*/migrations/*.py",
    "*/models/*.py",
    "runs/engine/*.py",
    "approvals/search_index.py",
    "durableweb/shared_cache.py",
    "durableweb/sqlite/*.py",
    "requirements*.txt",
)


class Tables:
    """Made by `python manage.py migrate`; kept below the environment's folder, or not at all if that is None."""

    def __init__(self, python: Path, environment: dict[str, str], kept: Path | None) -> None:
        self.python = python
        self.environment = environment | {"DURABLEWEB_DEBUG": "1"}
        self.kept = kept / "tables" / _digest() if kept is not None else None
        if self.kept is not None:
            self.kept.mkdir(parents=True, exist_ok=True)
            os.utime(self.kept)
            for (
                folder
            ) in self.kept.parent.iterdir():  # of files as they were; another run may be using its own
                if time.time() - folder.stat().st_mtime > KEPT_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)

    @property
    def kept_file(self) -> str | None:
        """The SQLite database that an earlier run of the tests, or this one, has left."""
        kept = self.kept and self.kept / FILE
        return str(kept) if kept is not None and kept.exists() else None

    def in_file(self, home: Path) -> str | None:
        """The path of an SQLite database, in `home` or kept; None if it could not be made."""
        made = home / FILE
        if self.kept_file is not None:
            shutil.copyfile(self.kept_file, made)
        elif not self._migrate(home):
            return None
        elif self.kept is not None:
            _keep(made, self.kept / FILE)
        return str(made)

    def on_server(self, url: str, home: Path) -> str | None:
        """The name of the PostgreSQL database at this address, which has them now; None if that failed."""
        kept = self.kept and self.kept / DUMP
        database = urlsplit(url).path.lstrip("/")
        whole = ("--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1")
        if kept is not None and kept.exists() and _run("psql", *whole, f"--file={kept}", url):
            return database
        if not self._migrate(home, url):
            return None
        made = home / DUMP
        if kept is not None and _run("pg_dump", "--no-owner", f"--file={made}", url):
            _keep(made, kept)
        return database

    def _migrate(self, home: Path, url: str = "") -> bool:
        environment = self.environment | {"DURABLEWEB_HOME": str(home)}
        environment |= {"DATABASE_URL": url} if url else {}
        migrate = (self.python, "manage.py", "migrate", "--verbosity", "0")
        return subprocess.run(migrate, cwd=ROOT, env=environment).returncode == 0


def _digest() -> str:
    """Of the files whose change may change the tables, and of the server's version, which reads its own dump."""
    digest = hashlib.sha256()
    for pattern in MADE_FROM:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    try:
        digest.update(str(find_binaries()).encode())
    except PostgresMissing:
        pass
    return digest.hexdigest()


def _keep(made: Path, kept: Path) -> None:
    """Whole or not at all, whoever else does the same."""
    beside = kept.with_name(f"{kept.name}.{os.getpid()}")
    shutil.copyfile(made, beside)
    beside.replace(kept)


def _run(program: str, *arguments: str) -> bool:
    """Whether that program of PostgreSQL is there and did it."""
    command = find_binaries() / program
    if not command.exists():
        return False
    return subprocess.run([command, *arguments], stdout=subprocess.DEVNULL).returncode == 0
