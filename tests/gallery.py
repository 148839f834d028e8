"""Every page in every state, as rows, for `bin/screenshots --all`. Prints {name: [person, address]} and sessions."""

from __future__ import annotations

import json
from datetime import timedelta

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import Group, User  # noqa: E402
from django.test import Client  # noqa: E402

from approvals.models import Absence, SavedFilter  # noqa: E402
from runs import END, Ambiguous, Graph, Permanent, Retry, Transient, registry, start, tool  # noqa: E402
from runs.engine import clock  # noqa: E402
from runs.models import Run, Worker  # noqa: E402
from tests.approvals.cases import ask, close, waiting_run  # noqa: E402
from tests.runs.driving import drive  # noqa: E402

LONG = (
    "A sentence that goes on for as long as somebody who is in a hurry would ever write one, and then some. "
    * 12
)
CALL = {"tool": "send_mail", "kind": "write", "key": "k", "description": "One e-mail goes out to two people."}
LETTER = {
    "to": ["helen@example.com", "jose@example.com"],
    "subject": "Brief: which package carries our background work",
    "body": "Dear Helen,\n\nCorvid is 38 % cheaper.\n\nUse Corvid for everyone else.",
    "copies": 7,
}
KINDS = {
    "title": "Launch",
    "body": LONG,
    "count": 3,
    "price": 2.5,
    "urgent": True,
    "day": "2026-12-01",
    "moment": "2026-12-01T09:30:00+01:00",
    "plan": "pro",
    "tags": ["one", "two"],
    "nested": {"street": "Main Street 1", "deep": [{"a": [1, {"b": 2}]}]},
    "nothing": None,
}
SCHEMA = {
    "type": "object",
    "required": ["title"],
    "properties": {
        "title": {"type": "string", "maxLength": 40, "description": "As it stands in the calendar."},
        "count": {"type": "integer", "minimum": 1, "maximum": 10},
        "price": {"type": "number"},
        "day": {"type": "string", "format": "date"},
        "moment": {"type": "string", "format": "date-time"},
        "plan": {"enum": ["free", "pro", "team"]},
        "country": {"enum": [f"Country number {number}" for number in range(1, 51)]},
    },
}
ARABIC = {
    "إلى": "هيلين@example.com",
    "الموضوع": "ملخص",
    "النص": "عزيزتي هيلين،\n\nالعرض أرخص بنسبة ٣٨٪ من Corvid.",
}


fates = Graph("parcels", viewers="pm", operators="ops", state=None)


@tool(kind="write")
def charge_card(number: str) -> str:
    raise Ambiguous("no answer within 30 s")


@fates.node(then=("send",), retry=Retry(attempts=2, first=3600))
def check(run, state):
    if state["fate"] == "fail":
        raise Permanent("the currency does not match")
    if state["fate"] == "retry":
        raise Transient("the warehouse is closed")
    if state["fate"] == "doubt":
        run.call(charge_card, number="A-17")
    return "send"


@fates.node(then=END)
def send(run, state):
    if state["fate"] != "complete":
        run.interrupt("Send the parcel?", payload={"number": "A-17"}, reviewers="pm", due=timedelta(hours=8))
    return END


def fill() -> dict[str, tuple[str, str]]:
    pm = User.objects.get(username="pm")
    Group.objects.get_or_create(name="finance")
    others = [_person(name, "pm") for name in ("mara", "tomas")]
    pages = {**_approvals(pm, others), **_runs(pm), **_lists(pm)}
    SavedFilter.keep(pm, "High risk today", "?risk=high")
    pages |= {
        "notices": ("pm", "/notices/"),
        "away": ("pm", "/away/"),
        "account": ("pm", "/account/"),
        "account-password": ("pm", "/account/password/"),
        "account-confirm": ("pm", "/account/confirm/"),
        "account-passkeys": ("pm", "/account/passkeys/"),
        "sign-in": ("", "/login/"),
        "sign-in-forgotten": ("", "/login/forgotten/"),
        "sign-in-failed": ("", "/login/failed/"),
        "sign-in-switched-off": ("", "/login/switched-off/"),
        "error-404": ("pm", "/nowhere/"),
        "admin": ("ops", "/admin/"),
        "admin-schedules": ("ops", "/admin/runs/schedule/"),
        "admin-limits": ("ops", "/admin/runs/queuelimit/"),
        "admin-stops": ("ops", "/admin/runs/graphstop/"),
        "error-403": ("ops", "/admin/auth/user/"),
    }
    Absence.plan(tomas := others[1], deputy=pm, since=clock.now(), until=clock.now() + timedelta(days=3))
    pages["away-planned"] = (tomas.username, "/away/")
    newcomer = _person("newcomer", "")
    pages["inbox-empty"], pages["runs-empty"] = (newcomer.username, "/"), (newcomer.username, "/runs/")
    return pages


def _approvals(pm: User, others: list[User]) -> dict[str, tuple[str, str]]:
    mara, tomas = others
    hours = {"due": timedelta(hours=4)}
    asked = {
        "call": ask(
            LETTER,
            question="Send the brief?",
            call=CALL,
            risk="high",
            reasons=["Wrong people", "Wrong price"],
            **hours,
        ),
        "kinds": ask(KINDS, question="Enter the launch?", schema=SCHEMA, **hours),
        "long": ask({"text": LONG * 3}, question=LONG, why=LONG * 2),
        "right-to-left": ask(ARABIC, question="هل نرسل الملخص إلى هيلين؟", why="طلبته **اليوم**."),
        "broken-form": ask({"a": 1}, question="Is this right?", schema={"type": "nonsense"}),
        "in-words": ask(None, question="What shall the run do next?", verdicts=["respond", "reject"]),
        "signed": ask(LETTER, question="Sign the order?", sign=True),
        "two-votes": ask(LETTER, question="Pay 40,000 €?", quorum=2, risk="medium"),
        "own": ask(LETTER, question="My own run?", run=waiting_run(created_by=pm)),
        "claimed": ask(LETTER, question="Claimed by another"),
        "expired": ask(LETTER, question="Nobody came"),
        "rejected": ask(LETTER, question="Was rejected"),
        "edited": ask(LETTER, question="Was edited"),
        "undo": ask(LETTER, question="Just decided"),
        "conflict": ask(LETTER, question="Two press at once"),
        "stages": ask(
            LETTER,
            question="Two stages?",
            reviewers=(),
            stages=[
                {"name": name, "reviewers": [who], "quorum": 1, "when": None, "needed": True}
                for name, who in (("Legal", "pm"), ("Finance", "finance"))
            ],
        ),
    }
    asked["two-votes"].decide(by=mara, verdict="approve")
    asked["claimed"].claim(by=mara)
    asked["call"].comment(by=tomas, text="Helen is away until Thursday.\nJosé reads it first.")
    close(asked["expired"], "expired")
    asked["rejected"].decide(by=mara, verdict="reject", reason="Not a word of it is true.")
    asked["edited"].decide(by=mara, verdict="edit", payload={**LETTER, "copies": 2})
    asked["undo"].decide(by=pm, verdict="approve")
    return {f"approval-{name}": ("pm", each.get_absolute_url()) for name, each in asked.items()}


def _runs(pm: User) -> dict[str, tuple[str, str]]:
    registry.add(fates)
    now, later = clock.now(), clock.now() + timedelta(days=1)
    serves = json.dumps([["parcels", 1], ["mailing", 1]])
    Worker.objects.create(
        name="host:boot:1:1", host="host", boot_id="boot", pid=1, started_at=now, seen_at=later, serves=serves
    )
    made = {
        fate: start("parcels", {"fate": fate}, by=pm)
        for fate in ("fail", "retry", "doubt", "complete", "wait")
    }
    for run in made.values():
        drive(run)
    made["created"] = start("parcels", {"fate": "wait"}, by=pm)
    made["cancelled"] = start("parcels", {"fate": "wait"}, by=pm)
    made["cancelled"].cancel("user ops", "It was a test.")
    made["held"] = start("parcels", {"fate": "wait"}, by=pm)
    Run.objects.filter(pk=made["held"].pk).update(version=9)
    pages = {f"run-{name}": ("pm", run.get_absolute_url()) for name, run in made.items()}
    pages["run-checkpoint"] = ("pm", f"{made['wait'].get_absolute_url()}?at=1")
    return pages


def _lists(pm: User) -> dict[str, tuple[str, str]]:
    run = waiting_run()
    many = [ask(LETTER, question=f"Send letter {number}?", run=run) for number in range(1, 8)]
    picks = "&".join(f"pick={each.pk.hex}.{each.revision}" for each in many[:5])
    return {
        "inbox": ("pm", "/"),
        "inbox-filtered": ("pm", "/?risk=high&due=7d"),
        "inbox-no-match": ("pm", "/?q=nothing-fits-this"),
        "inbox-decided": ("pm", "/?scope=decided"),
        "inbox-attention": ("pm", "/?scope=attention"),
        "bulk": ("pm", f"/inbox/bulk/?{picks}"),
        "runs": ("pm", "/runs/"),
        "runs-failed": ("pm", "/runs/?status=failed"),
        "runs-no-match": ("pm", "/runs/?q=nothing-fits-this"),
    }


def _person(name: str, group: str) -> User:
    made = User.objects.create_user(name, f"{name}@example.com", "unused", first_name=name.title())
    if group:
        made.groups.add(Group.objects.get(name=group))
    return made


def _sessions(names: set[str]) -> dict[str, str]:
    found = {}
    for name in sorted(names - {""}):
        client = Client()
        client.force_login(
            User.objects.get(username=name), backend="django.contrib.auth.backends.ModelBackend"
        )
        found[name] = client.cookies[settings.SESSION_COOKIE_NAME].value
    return found


if __name__ == "__main__":
    filled = fill()
    print(
        json.dumps({"pages": filled, "sessions": _sessions({person for person, _address in filled.values()})})
    )
