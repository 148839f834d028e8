"""Steps a second of one run, beside the floor that the database itself allows.

    python -m bench.steps [--json] [--steps 1000] [--repeats 5] [--only sqlite|postgresql]

Floor: one UPDATE under a fence and one INSERT a step on one plain connection (PostgreSQL: one statement, prepared,
autocommit; SQLite: WAL, synchronous=FULL, IMMEDIATE). Engine: a real run through start, claim, a pydantic state,
codec, patch, digest and commit. Floor and engine alternate in one process, so that noise hits both; what counts is
their ratio: the median of the neighbours', and that of the best of each, which a noisy machine changes least.
"trivial" adds one to a number; "growing" appends 1 KB of hardly compressible text to a list each step.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=("sqlite", "postgresql"))
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.inside:
        print(json.dumps(measure(wanted.inside, wanted.steps, wanted.repeats)))
        return
    results = []
    for vendor in [wanted.only] if wanted.only else ["sqlite", "postgresql"]:
        results.append(in_own_process(vendor, wanted.steps, wanted.repeats))
    if wanted.json:
        print(json.dumps({"steps": wanted.steps, "repeats": wanted.repeats, "results": results}))
    else:
        for result in results:
            show(result)


def in_own_process(vendor: str, steps: int, repeats: int) -> dict[str, object]:
    """A fresh process with a fresh database of that kind."""
    with tempfile.TemporaryDirectory(prefix="bench-") as home:
        environment = fresh(home)
        command = [sys.executable, "-m", "bench.steps", "--inside", vendor, "--steps", str(steps)]
        command += ["--repeats", str(repeats)]
        if vendor == "sqlite":
            return run(command, environment)
        sys.path.insert(0, str(ROOT))
        from tests.postgres import private_cluster

        with private_cluster(durable=True) as url:
            return run(command, environment | {"DATABASE_URL": url})


def fresh(home: str) -> dict[str, str]:
    """The environment of an installation of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DURABLEWEB_")}
    environment.pop("DATABASE_URL", None)
    return environment | {
        "DJANGO_SETTINGS_MODULE": "durableweb.settings",
        "DURABLEWEB_HOME": home,
        "DURABLEWEB_SECRET_KEY": "only for this measurement",
        "PYTHONPATH": str(ROOT),
    }


def run(command: list[str], environment: dict[str, str]) -> dict[str, object]:
    done = subprocess.run(command, env=environment, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(vendor: str, steps: int, repeats: int) -> dict[str, object]:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    floor = FLOORS[vendor]()
    cases = {"trivial": trivial, "growing": growing}
    rates: dict[str, list[float]] = {name: [] for name in cases}
    floors: list[float] = []
    for case in cases.values():  # warm up
        case(min(steps, 200))
    floor(min(steps, 200))
    for _ in range(repeats):
        for name, case in cases.items():
            floors.append(floor(steps))
            rates[name].append(case(steps))
    middle = statistics.median(floors)
    return {
        "database": vendor,
        "floor_steps_per_second": spread(floors),
        **{
            name: {
                "steps_per_second": spread(found),
                # each repeat against the floor sampled right before it
                "ratio_to_floor": round(
                    statistics.median(
                        rate / beside for rate, beside in zip(found, floors[place :: len(cases)], strict=True)
                    ),
                    3,
                ),
                # what neither was disturbed in: whatever else the machine does slows the longer way more
                "ratio_of_the_best": round(max(found) / max(floors), 3),
            }
            for place, (name, found) in enumerate(rates.items())
        },
        "floor_median": round(middle),
    }


def spread(rates: list[float]) -> dict[str, int]:
    return {"median": round(statistics.median(rates)), "min": round(min(rates)), "max": round(max(rates))}


# -- the engine


def trivial(steps: int) -> float:
    return driven(_graphs()[0], {"left": steps})


def growing(steps: int) -> float:
    return driven(_graphs()[1], {"left": steps})


def driven(graph: object, given: dict[str, int]) -> float:
    """Start, claim and drive one run in this thread; steps a second from claim to end."""
    from runs import start
    from runs.engine.claim import Claimer
    from runs.engine.drive import Drive
    from runs.models import Run

    run = start(graph, given)
    began = time.perf_counter()
    Drive(*Claimer("bench", [graph]).claim(alone=True, only=run.pk)).run()
    rate = given["left"] / (time.perf_counter() - began)
    ended = Run.objects.get(pk=run.pk)
    assert (ended.status, ended.step) == ("completed", given["left"]), ended.error
    return rate


def _graphs(made: list[object] = []) -> list[object]:  # noqa: B006 - made once a process
    if made:
        return made
    from pydantic import BaseModel

    from runs import END, Graph

    class Count(BaseModel):
        left: int
        done: int = 0

    class Messages(BaseModel):
        left: int
        messages: list[str] = []

    one = Graph("bench-trivial", state=Count, max_steps=1_000_000)

    @one.node(then=("add", END))
    def add(run: object, state: Count) -> str:
        state.done += 1
        return END if state.done >= state.left else "add"

    two = Graph("bench-growing", state=Messages, max_steps=1_000_000)

    @two.node(then=("append", END))
    def append(run: object, state: Messages) -> str:
        state.messages.append(letters())
        return END if len(state.messages) >= state.left else "append"

    made += [one, two]
    return made


def letters() -> str:
    return base64.b64encode(os.urandom(768)).decode()


# -- the floors: what any program pays that moves a run under its fence and keeps a row of each step. The two statements
#    and their tables are those that the peers were measured beside, so that our ratios can be set beside theirs.

MOVE = (
    "UPDATE floor_run SET step = step + 1, status = 'running', updated = {now}"
    " WHERE id = {place} AND fence = {place}"
)
KEPT = '{"ok": 1}'


def postgresql_floor() -> Callable[[int], float]:
    import psycopg
    from django.db import connection

    settings = connection.get_connection_params()
    wanted = {
        name: settings[name] for name in ("dbname", "user", "password", "host", "port") if settings.get(name)
    }
    plain = psycopg.connect(**wanted, autocommit=True, prepare_threshold=0)
    plain.execute("CREATE TABLE floor_run (id bigint PRIMARY KEY, step int NOT NULL, fence int NOT NULL,"
                  " status text NOT NULL, updated timestamptz NOT NULL DEFAULT now())")  # fmt: skip
    plain.execute("CREATE TABLE floor_checkpoint (run_id bigint NOT NULL, step int NOT NULL, name text NOT NULL,"
                  " output jsonb NOT NULL, created timestamptz NOT NULL DEFAULT now(),"
                  " PRIMARY KEY (run_id, step))")  # fmt: skip
    statement = (
        f"WITH moved AS ({MOVE.format(now='now()', place='%s')} RETURNING id, step)"
        " INSERT INTO floor_checkpoint (run_id, step, name, output) SELECT id, step, %s, %s::jsonb FROM moved"
    )
    number = 0

    def floor(steps: int) -> float:
        nonlocal number
        number += 1
        plain.execute("INSERT INTO floor_run VALUES (%s, 0, 1, 'pending')", [number])
        began = time.perf_counter()
        for _ in range(steps):
            plain.execute(statement, [number, 1, "step", KEPT])
        return steps / (time.perf_counter() - began)

    return floor


def sqlite_floor() -> Callable[[int], float]:
    import sqlite3

    path = Path(os.environ["DURABLEWEB_HOME"]) / "floor.sqlite3"
    plain = sqlite3.connect(path, isolation_level=None)
    plain.execute("PRAGMA journal_mode = WAL")
    plain.execute("PRAGMA synchronous = FULL")
    plain.execute("CREATE TABLE floor_run (id integer PRIMARY KEY, step int NOT NULL, fence int NOT NULL,"
                  " status text NOT NULL, updated text NOT NULL DEFAULT current_timestamp)")  # fmt: skip
    plain.execute("CREATE TABLE floor_checkpoint (run_id int NOT NULL, step int NOT NULL, name text NOT NULL,"
                  " output text NOT NULL, created text NOT NULL DEFAULT current_timestamp,"
                  " PRIMARY KEY (run_id, step)) WITHOUT ROWID")  # fmt: skip
    move = f"{MOVE.format(now='current_timestamp', place='?')} RETURNING step"
    number = 0

    def floor(steps: int) -> float:
        nonlocal number
        number += 1
        plain.execute("INSERT INTO floor_run (id, step, fence, status) VALUES (?, 0, 1, 'pending')", [number])
        began = time.perf_counter()
        for _ in range(steps):
            plain.execute("BEGIN IMMEDIATE")
            [step] = plain.execute(move, [number, 1]).fetchone()
            plain.execute(
                "INSERT INTO floor_checkpoint (run_id, step, name, output) VALUES (?, ?, ?, ?)",
                [number, step, "step", KEPT],
            )
            plain.execute("COMMIT")
        return steps / (time.perf_counter() - began)

    return floor


FLOORS = {"postgresql": postgresql_floor, "sqlite": sqlite_floor}


def show(result: dict[str, dict[str, object]]) -> None:
    print(f"{result['database']}: floor {result['floor_median']} steps/s")
    for name in ("trivial", "growing"):
        case = result[name]
        print(
            f"  {name}: {case['steps_per_second']['median']} steps/s, {case['ratio_to_floor']} of the floor,"
            f" the best {case['ratio_of_the_best']} of its best"
        )


if __name__ == "__main__":
    main()
