"""The cost of a child, by how many of them one `run.map` has: it should not grow.

    python -m bench.fanout [--json] [--sizes 100 1000 10000] [--only sqlite|postgresql]

One parent maps that many trivial children (one node, one step) at 50 at once, and one worker's shift does all of it, as
in production: start, claim, step, the end that answers or counts, the next one's turn, and the parent that reads all
ends. "ms a child" is the whole time, from the parent's claim to its end, divided by the number of children. Where the
machine does other things as well, the processor's time is what can be compared.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time

from bench.steps import ROOT, fresh, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--only", choices=("sqlite", "postgresql"))
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.inside:
        print(json.dumps({"database": wanted.inside, "sizes": measure(wanted.sizes)}))
        return
    results = []
    for vendor in [wanted.only] if wanted.only else ["sqlite", "postgresql"]:
        results.append(in_own_process(vendor, wanted.sizes))
        if not wanted.json:
            show(results[-1])
    if wanted.json:
        print(json.dumps(results))


def show(result: dict[str, object]) -> None:
    print(f"{result['database']}:", flush=True)
    for size, cost in result["sizes"].items():
        found = f"{cost['ms_a_child']} ms a child, {cost['cpu_ms_a_child']} of them on the processor"
        print(f"  {int(size):>6,} children: {found}; {cost['seconds']} s in all", flush=True)


def in_own_process(vendor: str, sizes: list[int]) -> dict[str, object]:
    """A fresh process with a fresh database of that kind."""
    command = [sys.executable, "-m", "bench.fanout", "--inside", vendor, "--sizes", *map(str, sizes)]
    with tempfile.TemporaryDirectory(prefix="bench-") as home:
        if vendor == "sqlite":
            return run(command, fresh(home))
        sys.path.insert(0, str(ROOT))
        from tests.postgres import private_cluster

        with private_cluster(durable=True) as url:
            return run(command, fresh(home) | {"DATABASE_URL": url})


def measure(sizes: list[int]) -> dict[int, dict[str, float]]:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    mapped(_graph(), 20)  # warm up
    return {size: mapped(_graph(), size) for size in sizes}


def mapped(graph: object, size: int) -> dict[str, float]:
    from runs import start
    from runs.engine.shift import Shift
    from runs.models import Run

    run = start(graph, {"size": size})
    began, worked = time.perf_counter(), time.process_time()
    while not run.ended:
        Shift(linger=0).work()
        run.refresh_from_db()
    seconds, worked = time.perf_counter() - began, time.process_time() - worked
    ended = Run.objects.filter(parent=run, status="completed").count()
    assert (run.status, ended, run.state_at()["ended"]) == ("completed", size, size), run.error
    return {
        "seconds": round(seconds, 2),
        "ms_a_child": round(1000 * seconds / size, 2),
        "cpu_ms_a_child": round(1000 * worked / size, 2),
    }


def _graph(made: list[object] = []) -> object:  # noqa: B006 - made once a process
    if made:
        return made[0]
    from runs import Graph, registry

    child, parent = Graph("bench-child"), Graph("bench-parent")

    @child.node
    def double(run: object, state: dict[str, int]) -> None:
        state["n"] *= 2

    @parent.node
    def map_all(run: object, state: dict[str, int]) -> None:
        ends = run.map(child, [{"n": n} for n in range(state["size"])], at_once=50)
        state["ended"] = sum(end.result["n"] == 2 * n for n, end in enumerate(ends))

    for graph in (child, parent):
        registry.add(graph)
    made.append(parent)
    return parent


if __name__ == "__main__":
    main()
