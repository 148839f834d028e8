"""Makes .venv/ and keeps it as the requirement files say. Only the standard library, and quick when nothing changed."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEAST_PYTHON = (3, 11)
# The distribution's own Python of this version. Distributions compile it with a profile of what it mostly does, and
# version managers mostly without, which takes Django an eighth to a third more of a processor.
OF_THE_SYSTEM = Path("/usr/bin") / "python{}.{}".format(*sys.version_info)
QUICKER = 0.85  # than ours, so that two alike are not told apart by chance
HOW_QUICK = """
import ensurepip, venv  # without which it could make no environment
from time import process_time
from timeit import repeat
print(min(repeat("sum(len(str(number)) for number in range(50_000))", number=1, repeat=5, timer=process_time)))
"""


class SetupFailed(Exception):
    """The message is for the person at the terminal."""


def insist_on_python() -> None:
    """Go on under a newer Python where there is one, else end with a clear line."""
    if sys.version_info >= LEAST_PYTHON:
        return
    for minor in range(15, LEAST_PYTHON[1] - 1, -1):
        newer = shutil.which(f"python3.{minor}")
        if newer and subprocess.call([newer, "-c", ""], stderr=subprocess.DEVNULL) == 0:
            os.execv(newer, [newer, *sys.argv])
    least = ".".join(map(str, LEAST_PYTHON))
    sys.exit(f"Python {least} or newer is needed; this is {sys.version.split()[0]}.")


def ready(
    requirements: list[str],
    folder: Path = ROOT / ".venv",
    python: str | Path | None = None,
    use: dict[str, str] | None = None,
) -> Path:
    """The environment's python, after what the `requirements` files (of ROOT) name is installed.

    One that is there stays as it is; another is made with `python`, or the quicker one of this version. `use` maps a
    distribution's name to another requirement, for an environment with other versions.
    """
    folder.mkdir(exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # bin/up and bin/test at once
        inside = folder / "bin" / "python"
        if not _works(inside):
            _create(folder, python or quickest(sys.executable))
        stamp = folder / ".installed.json"
        installed = _read(stamp)
        for name in requirements:
            wanted = _digest(name, use or {})
            if installed.get(name) != wanted:
                _install(inside, name, folder, use or {})
                installed[name] = wanted
                stamp.write_text(json.dumps(installed, indent=1))
        return inside


def quickest(python: str | Path) -> str | Path:
    """That interpreter, or the distribution's own of this version where it is plainly quicker."""
    ours, other = _seconds(python), _seconds(OF_THE_SYSTEM)
    return OF_THE_SYSTEM if ours and other and other < QUICKER * ours else python


def _seconds(python: str | Path) -> float | None:
    """What a small piece of work takes it; None where it is not there or could make no environment."""
    try:
        done = subprocess.run([str(python), "-c", HOW_QUICK], capture_output=True, text=True)
        return float(done.stdout) if done.returncode == 0 else None
    except (OSError, ValueError):
        return None


def apt_install(*packages: str) -> bool:
    """True if root could install them with apt-get."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    say("Installing " + " ".join(packages) + " with apt-get")
    quiet = {"stdout": subprocess.DEVNULL, "env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
    subprocess.call(["apt-get", "update", "-qq"], **quiet)
    return (
        subprocess.call(["apt-get", "install", "-qq", "-y", "--no-install-recommends", *packages], **quiet)
        == 0
    )


def say(line: str) -> None:
    print(line, flush=True)


def _create(folder: Path, python: str | Path) -> None:
    say(f"Making the environment {folder.name}/")
    make = [str(python), "-m", "venv", "--clear", str(folder)]
    done = subprocess.run(make, capture_output=True, text=True)
    if done.returncode != 0 and apt_install("python3-venv"):  # Debian ships Python without it
        done = subprocess.run(make, capture_output=True, text=True)
    if done.returncode != 0:
        raise SetupFailed(
            f"{python} cannot make {folder}:\n{(done.stdout + done.stderr).strip()}\n"
            "Install Python's venv module (on Debian and Ubuntu: apt install python3-venv)."
        )


def _install(inside: Path, name: str, folder: Path, use: dict[str, str]) -> None:
    path = ROOT / name
    if use:
        path = folder / name
        path.write_text(_text(name, use))
    say(f"Installing {name} into {folder.name}/ (once, and when it changes)")
    command = [str(inside), "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
               "--progress-bar", "off", "-r", str(path)]  # fmt: skip
    pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in pip.stdout:
        lines.append(line.rstrip())
        if line.startswith(("Collecting ", "Installing collected")):
            words = " ".join(line.split()[:2]).replace("Installing collected", "Unpacking all of it")
            _progress(words)
    _progress("")
    if pip.wait() != 0:
        end = "\n".join(lines[-15:])
        raise SetupFailed(
            f"pip could not install {name}:\n{end}\n"
            "Is the package index reachable? Run the command again to go on."
        )


def _progress(words: str) -> None:
    """One line that is written over on a terminal; elsewhere a line each."""
    if sys.stdout.isatty():
        sys.stdout.write("\r\033[K" + ("  " + words if words else ""))
        sys.stdout.flush()
    elif words:
        say("  " + words)


def _works(inside: Path) -> bool:
    if not inside.exists():
        return False
    try:
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.call([str(inside), "-c", "import pip"], **silent) == 0
    except OSError:
        return False


def _read(stamp: Path) -> dict[str, str]:
    try:
        return json.loads(stamp.read_text())
    except (FileNotFoundError, ValueError):
        return {}


def _digest(name: str, use: dict[str, str]) -> str:
    return hashlib.sha256(_text(name, use).encode()).hexdigest()


def _text(name: str, use: dict[str, str]) -> str:
    """The file's text, with what it includes and with the other requirements of `use`."""
    lines = []
    for line in (ROOT / name).read_text().splitlines():
        if line.startswith("-r "):
            lines += _text(line[3:].strip(), use).splitlines()
        else:
            lines.append(use.get(line.split("=")[0].strip(), line))
    return "\n".join(lines) + "\n"
