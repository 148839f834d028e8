"""Server time of the inbox with a million approvals stored, a tenth of them open.

    python -m bench.inbox [--approvals 1000000] [--repeats 9] [--json]

A private PostgreSQL is filled by SQL, then each page is asked for in this process, through all of Django, once to warm
up and then `--repeats` times; what is told is the median, in milliseconds. Half of all is asked of the group `pm`, the
rest of 200 teams of ten; one in a hundred has no deadline. Seven people look: `pm` (half of everything), `member` of
one team, `rare` (one in fifty thousand), `overseer`, who sees all runs, `fifty`, who is in fifty teams, `barred`, who
is in pm and excluded from every open one, and `nobody`, whom nothing is asked.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
TEAMS, PEOPLE, GRAPHS = 200, 10, 50
OPEN = 10  # one in so many
MOST_MILLISECONDS = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--approvals", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.inside:
        print(json.dumps(measure(wanted.approvals, wanted.repeats)))
        return
    found = in_own_process(wanted.approvals, wanted.repeats)
    print(json.dumps(found) if wanted.json else shown(found))


def in_own_process(approvals: int, repeats: int) -> dict[str, object]:
    sys.path.insert(0, str(ROOT))
    from tests.postgres import private_cluster

    with tempfile.TemporaryDirectory(prefix="bench-") as home, private_cluster() as url:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DURABLEWEB_")}
        environment = kept | {
            "DJANGO_SETTINGS_MODULE": "durableweb.settings",
            "DATABASE_URL": url,
            "DURABLEWEB_HOME": home,
            "DURABLEWEB_SECRET_KEY": "only for this measurement: gX2mQ9vL4tRw7yZcB5nKd8fGpEaU6iQo",
            "DURABLEWEB_ALLOWED_HOSTS": "testserver",
            "DURABLEWEB_HTTPS": "0",
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-m", "bench.inbox", "--inside"]
        command += ["--approvals", str(approvals), "--repeats", str(repeats)]
        done = subprocess.run(
            command, env=environment, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
        )
    return json.loads(done.stdout.splitlines()[-1])


# -- what is stored -----------------------------------------------------------------------------------------


def fill(approvals: int) -> dict[str, object]:
    """People, then runs, questions, approvals and reviewers, one of each an approval; the four who look, by name."""
    from django.contrib.auth.models import Group, Permission, User
    from django.db import connection

    from approvals import search_index

    search_index.remove()
    groups = Group.objects.bulk_create(
        [Group(name=name) for name in ("pm", "rare", *(f"team-{n}" for n in range(TEAMS)))]
    )
    users = User.objects.bulk_create([User(username=f"u{n}") for n in range(TEAMS * PEOPLE + 2 * PEOPLE)])
    User.groups.through.objects.bulk_create(
        User.groups.through(user=user, group=groups[number % len(groups)])
        for number, user in enumerate(users)
    )
    fifty, barred, nobody = (User.objects.create(username=name) for name in ("fifty", "barred", "nobody"))
    fifty.groups.set(groups[2:52])
    barred.groups.set([groups[0], Group.objects.create(name="banned")])
    overseer = User.objects.create(username="overseer")
    overseer.user_permissions.add(Permission.objects.get(codename="view_all"))
    with connection.cursor() as cursor:
        for statement in statements(approvals, users[0].pk, users[-1].pk):
            cursor.execute(statement)
        cursor.execute("ANALYZE")
    connection.set_autocommit(True)
    search_index.install()
    with connection.cursor() as cursor:
        cursor.execute(
            "VACUUM"
        )  # all that the database would do beside the first pages, as they were just stored
        cursor.execute("CHECKPOINT")
    named = {"pm": users[0], "member": users[9], "rare": users[1]}
    return named | {"overseer": overseer, "fifty": fifty, "barred": barred, "nobody": nobody}


def statements(approvals: int, first_user: int, last_user: int) -> Iterator[str]:
    """INSERTs of `approvals` rows each. Row i is open if OPEN divides it; ids grow with time, as uuid7 does."""
    from approvals.models import Approval, Reviewer
    from runs.models import LedgerEntry, Run

    key = "(lpad(to_hex(1760000000000 + i * 20), 12, '0') || '7000' || '8000' || lpad(to_hex(i), 12, '0'))::uuid"
    is_open = f"i % {OPEN} = 0"
    opened = f"now() - interval '1 hour' - ({approvals} - i) * interval '20 seconds'"
    graph = f"'graph-' || (hashint8(i) & 1023) % {GRAPHS}"
    who = f"{first_user} + (hashint8(i + 7) & 65535) % {last_user - first_user + 1}"
    yield insert(Run, approvals, id=key, root=key, graph=graph, version="1", node="'email'", attempt="1",
                 status=f"CASE WHEN {is_open} THEN 'waiting' ELSE 'completed' END", created_at=opened,
                 finished_at=f"CASE WHEN {is_open} THEN NULL ELSE {opened} + interval '1 hour' END",
                 created_by=who)  # fmt: skip
    yield insert(LedgerEntry, approvals, id="i", run=key, step="1", key="'question#1'", kind="'interrupt'",
                 name="'question'", request="'{}'", request_digest="'x'", opened_at=opened)  # fmt: skip
    yield insert(Approval, approvals, id=key, run=key, entry="i", graph=graph, opened_at=opened,
                 title="'Send letter ' || i || ' to customer ' || hashint8(i + 3) % 10000 || '?'",
                 body="'They **asked** for it on the phone; the address is the one on file. ' || md5(i::text)",
                 verdicts="""'["approve", "edit", "reject"]'::jsonb""", proposal_digest="'x'",
                 risk="(ARRAY['low', 'medium', 'high'])[1 + (hashint8(i + 5) & 1023) % 3]",
                 due_at="CASE WHEN i % 100 = 0 THEN NULL ELSE now() + (hashint8(i) & 1048575) * interval '1 second'"
                        " - interval '1 day' END",
                 outcome=f"CASE WHEN {is_open} THEN '' ELSE 'approved' END",
                 decided_at=f"CASE WHEN {is_open} THEN NULL ELSE {opened} + interval '1 hour' END")  # fmt: skip
    team = f"'team-' || (hashint8(i + 1) & 65535) % {TEAMS}"
    yield insert(Reviewer, approvals, id="i", approval=key, live=is_open,
                 name=f"CASE WHEN i % 50000 = 0 THEN 'rare' WHEN (hashint8(i + 2) & 1) = 0 THEN 'pm' ELSE {team} END",
                 )  # fmt: skip
    yield insert(Reviewer, approvals // OPEN, id=f"{approvals} + i", name="'banned'", excluded="true",
                 approval=f"(SELECT run_id FROM approvals_approval WHERE entry_id = i * {OPEN})")  # fmt: skip


def insert(model: type, rows: int, **given: str) -> str:
    """One INSERT of many rows: SQL in `given` by field, the fields' defaults otherwise."""
    from django.db import connection

    columns, values = [], []
    for field in model._meta.concrete_fields:
        columns.append(connection.ops.quote_name(field.column))
        if field.name in given:
            values.append(given[field.name])
            continue
        default = field.get_db_prep_save(field.get_default(), connection)
        values.append("NULL" if default is None else sql_text(default))
    table = connection.ops.quote_name(model._meta.db_table)
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM generate_series(1, {rows}) AS i"


def sql_text(value: object) -> str:
    """A default as a literal: numbers, booleans, texts, and JSON as PostgreSQL's adapter wraps it."""
    if isinstance(value, bool | int):
        return str(value)
    text = json.dumps(value.obj) if hasattr(value, "obj") else str(value)
    quoted = "'" + text.replace("'", "''") + "'"
    return f"{quoted}::jsonb" if hasattr(value, "obj") else quoted


# -- what is asked ------------------------------------------------------------------------------------------


def measure(approvals: int, repeats: int) -> dict[str, object]:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connections
    from django.test import Client

    from approvals.context import badge
    from approvals.filters import Filter
    from approvals.listing import Listing
    from durableweb import web_connections
    from runs.engine import clock

    web_connections.share(connections)  # as the web process does
    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    begun = time.monotonic()
    people = fill(approvals)
    filled = time.monotonic() - begun
    earlier = quote((clock.now() - timedelta(minutes=61)).isoformat())
    found: dict[str, dict[str, object]] = {}
    for name, person in people.items():
        client = Client()
        client.force_login(person)
        pages = {
            "mine": "/",
            "my teams": "/?scope=teams",
            "all": "/?scope=all",
            "all, page 50": f"/?scope=all&after={far_down(person, 50)}",
            "decided": "/?scope=decided",
            "all, high risk": "/?scope=all&risk=high",
            "all, one graph": "/?scope=all&graph=graph-7",
            "all, for a person": "/?scope=all&requester=u77",
            "mine, search, many found": "/?q=customer",
            "mine, search, some found": "/?q=er+50",
            "mine, search, none found": "/?q=nowhere",
            "mine, search, two digits": "/?q=47",
            "mine, two letters, none": "/?q=qz",
            "mine, end of an id": "/?q=beef",
            "all, search, one found": f"/?scope=all&q=letter+{approvals // OPEN}0+to",
            "decided, search, some found": "/?scope=decided&q=er+500",
            "decided, search, none found": "/?scope=decided&q=nowhere",
            "decided, search, 1 % found": "/?scope=decided&q=customer+12",
            "decided, one frequent letter": "/?scope=decided&q=c",
            "mine, one frequent letter": "/?q=c",
            "mine, search, 1 % found": "/?q=customer+12",
            "all, for a person of none": "/?scope=all&requester=nobody",
            "all, one team is asked": "/?scope=all&reviewer=team-7",
            "all, none is asked": "/?scope=all&reviewer=nobody",
            "decided, one team was asked": "/?scope=decided&reviewer=team-7",
            "decided, graph and search": "/?scope=decided&graph=graph-7&q=customer+12",
            "decided, older than 7 days": "/?scope=decided&age=7d",
            "all, overdue": "/?scope=all&due=overdue",
            "all, no deadline": "/?scope=all&due=none",
            "mine, 3 new": f"/inbox/new/?until={earlier}",
            "mine, live": f"/inbox/list/?until={earlier}",
            "all, live": f"/inbox/list/?scope=all&until={earlier}",
            "decided, 3 new": f"/inbox/new/?scope=decided&until={earlier}",
            "the badge": "/inbox/count/",
            "attention": "/?scope=attention",
            "attention, search": "/?scope=attention&q=customer+12",
        }
        listed = Listing(person, Filter(scope="all")).rows
        if listed:
            pages["an approval's state"] = f"{listed[0].get_absolute_url()}parts/state/"
        found[name] = {
            "open": str(badge(person)),
            "pages": {page: timed(partial(read, client, at), repeats) for page, at in pages.items()},
        }
    return {"approvals": approvals, "filled_seconds": round(filled), "people": found}


def far_down(person: object, pages: int) -> str:
    """The place of the row at which that page of the scope All begins."""
    from approvals import place
    from approvals.listing import SHOWN
    from approvals.models import Approval
    from runs.engine import clock

    now = clock.now()
    rows = Approval.objects.in_scope("all", person, now).by_due(now)
    row = rows[pages * SHOWN : pages * SHOWN + 1].first() if rows.count() > pages * SHOWN else None
    return place.text_of(row, False) if row is not None else ""


def read(client: object, address: str) -> int:
    """One request, on a connection of the pool; ns that its backend worked for it."""
    from django.db import connection

    connection.close()  # as each request ends; it gets the same one back, for nobody else borrows here
    connection.ensure_connection()
    working = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat")
    before = int(working.read_text().split()[0])
    answer = client.get(address)
    assert answer.status_code == 200, (address, answer.status_code)
    return int(working.read_text().split()[0]) - before


def timed(act: Callable[[], int], repeats: int) -> dict[str, float]:
    """`worked`: processor time of this process and of the database's, which other work disturbs less."""
    act()
    passed, worked = [], []
    for _ in range(repeats):
        begun, busy = time.perf_counter(), time.process_time()
        database = act()
        worked.append((time.process_time() - busy) * 1000 + database / 1_000_000)
        passed.append((time.perf_counter() - begun) * 1000)
    return {
        "worked": round(statistics.median(worked), 1),
        "best": round(min(passed), 1),
        "median": round(statistics.median(passed), 1),
    }


def shown(found: dict) -> str:
    lines = [
        f"{found['approvals']:,} approvals, stored in {found['filled_seconds']} s; milliseconds a page: of processor"
        " time, and on the clock (median, best)"
    ]
    for name, person in found["people"].items():
        lines.append(f"\n{name}: {person['open']} open in Mine")
        for page, times in person["pages"].items():
            mark = "" if times["worked"] < MOST_MILLISECONDS else "  over the budget"
            lines.append(f"  {page:<26}{times['worked']:>8}{times['median']:>9} {times['best']:>8}{mark}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
