"""Runs in every state: parcels that are sent, stuck, lost, taken back, too old and too long."""

from __future__ import annotations

import json
from datetime import timedelta

from django.contrib.auth.models import User

from runs import END, Ambiguous, Graph, Permanent, Retry, Transient, registry, start, tool
from runs.engine import clock
from runs.models import LiveText, Run, Worker
from runs.models.live_text import Saying
from tests.gallery.questions import LONG, UNBROKEN
from tests.gallery.shown import Pages, Shown
from tests.runs.driving import claim, drive, pass_lease, pass_time

BEFORE = timedelta(minutes=20)  # how long ago the worst has happened

parcels = Graph("parcels", viewers="pm", operators="ops", state=None)
errands = Graph("errands", viewers="pm", operators="ops", state=None)
returns = Graph("returns", viewers="pm", operators="ops", state=None, on_failure="compensate")
GRAPHS = (parcels, errands, returns)


@tool(kind="write")
def charge_card(number: str) -> str:
    raise Ambiguous("no answer within 30 s")


@tool(kind="write")
def put_back(arguments: dict[str, str]) -> str:
    return f"{arguments['number']} is on its shelf"


@tool(kind="write", compensate=put_back)
def take_from_shelf(number: str) -> str:
    return f"{number} is taken"


@parcels.node(then=("send",), retry=Retry(attempts=2, first=3600))
def check(run, state):
    if state["fate"] == "fail":
        raise Permanent("the currency does not match")
    if state["fate"] == "long":
        raise Permanent(f"{LONG}\n{UNBROKEN}")
    if state["fate"] == "retry":
        raise Transient("the warehouse is closed")
    if state["fate"] == "doubt":
        run.call(charge_card, number="A-17")
    if state["fate"] == "signal":
        state["paid"] = run.wait_for("paid", timeout=timedelta(days=2))
    return "send"


@parcels.node(then=END)
def send(run, state):
    if state["fate"] != "complete":
        run.interrupt("Send the parcel?", payload={"number": "A-17"}, reviewers="pm", due=timedelta(hours=8))
    return END


@errands.node(then=END)
def each(run, state):
    run.join(*(run.start(parcels, {"fate": fate}) for fate in ("complete", "fail", "wait")))
    return END


@returns.node(then="pay")
def fetch(run, state):
    run.call(take_from_shelf, number="A-17")
    run.call(take_from_shelf, number="A-18")


@returns.node(then=END)
def pay(run, state):
    raise Permanent("the card was refused")


def run_pages(pm: User) -> Pages:
    for graph in GRAPHS:
        registry.add(graph)
    now, later = clock.now(), clock.now() + timedelta(days=1)
    serves = json.dumps([["parcels", 1], ["errands", 1], ["returns", 1], ["mailing", 1]])
    Worker.objects.create(
        name="host:boot:1:1", host="host", boot_id="boot", pid=1, started_at=now, seen_at=later, serves=serves
    )
    fates = ("fail", "long", "retry", "doubt", "complete", "wait", "signal")
    made = {fate: start("parcels", {"fate": fate}, by=pm) for fate in fates}
    for run in made.values():
        drive(run)
    made["created"] = start("parcels", {"fate": "wait"}, by=pm)
    made["cancelled"] = start("parcels", {"fate": "wait"}, by=pm)
    made["cancelled"].cancel("user ops", "It was a test.")
    made["signal"].signal("hint", {"colour": "green"}, by="user ops")
    made["signal"].signal("paid", {"amount": 12.5, "by": "invoice"}, key="invoice-7", by="shop")
    drive(made["signal"])
    made["kept"] = start("parcels", {"fate": "complete"}, by=pm)
    drive(made["kept"])
    made["kept"].keep("The court has asked for it.", "ops")
    made["repaired"] = start("parcels", {"fate": "fail"}, by=pm)
    drive(made["repaired"])
    made["repaired"].retry("user ops", "The currency is corrected.", state={"fate": "wait"})
    drive(made["repaired"])
    made["forked"] = made["repaired"].fork("user ops", "The customer wants one more.")
    drive(made["forked"])
    made["archived"] = start("parcels", {"fate": "complete"}, by=pm)
    drive(made["archived"])
    made["archived"].archive("It is long over.", "ops")
    made["erased"] = start("parcels", {"fate": "complete"}, by=pm)
    drive(made["erased"])
    made["erased"].erase("Helen has asked for it.", "ops")
    made["family"] = start("errands", {}, by=pm)
    drive(made["family"])
    children = list(Run.objects.filter(parent=made["family"]).order_by("created_at"))
    for child in children:
        drive(child)
    made["child"] = children[-1]
    made["undone"] = start("returns", {}, by=pm)
    for _ in range(4):
        drive(made["undone"])
    made["poison"] = _poisoned(pm)
    made["running"] = _speaking(pm)
    made["needs-deploy"] = start("parcels", {"fate": "wait"}, by=pm)
    Run.objects.filter(pk=made["needs-deploy"].pk).update(graph="crates", version=9)
    made["needs-migration"] = start("parcels", {"fate": "wait"}, by=pm)
    Run.objects.filter(pk=made["needs-migration"].pk).update(graph="competitive-brief", version=99)
    pages = {f"run-{name}": Shown("pm", run.get_absolute_url()) for name, run in made.items()}
    waits = made["wait"].get_absolute_url()
    pages["run-checkpoint"] = Shown("pm", f"{waits}?at=1")
    pages["run-compared"] = Shown("pm", f"{waits}?at=3&against=0")
    pages["run-entry"] = Shown("pm", made["doubt"].get_absolute_url(), (("scroll", "#ledger"),))
    pages["run-cancel-open"] = Shown("ops", waits, (("press", "[popovertarget=cancel]"), ("see", "#cancel")))
    return pages


def _poisoned(pm: User) -> Run:
    """Each worker that took it was lost, some time ago."""
    ahead, clock.AHEAD = clock.AHEAD, -BEFORE
    try:
        run = start("parcels", {"fate": "wait"}, by=pm)
        while run.status != "failed":
            claim(run, "host:boot:9:1")
            pass_lease()
            claim(run, "host:boot:1:1")
            run.refresh_from_db()
            if run.wake_at is not None and run.leased_by is None:
                pass_time((run.wake_at - clock.now()).total_seconds() + 1)
    finally:
        clock.AHEAD = ahead
    return run


def _speaking(pm: User) -> Run:
    """A worker holds it, and its model has said something."""
    run = start("parcels", {"fate": "wait"}, by=pm)
    lease = claim(run, "host:boot:1:1").lease
    Run.objects.filter(pk=run.pk).update(wake_at=clock.now() + timedelta(days=1))
    text = "Dear Helen,\n\nyour parcel is on its way. It should reach you"
    LiveText.objects.show(Saying(run.pk, lease.fence, 1, "write#1", "write", text, len(text)), clock.now())
    return run
