"""The inbox, many at once, the list of runs, and the admin site."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

from django.contrib.auth.models import User

from approvals.models import Approval, Target
from runs.models import GraphStop, QueueLimit, Run, Schedule
from tests.approvals.cases import ask, waiting_run
from tests.gallery.questions import LETTER, LONG, UNBROKEN
from tests.gallery.shown import Act, Pages, Shown

PICKS = ".inbox-row-pick input"
LETTERS = "/?q=Send+letter"


def list_pages(pm: User) -> Pages:
    run = waiting_run(created_by=None)
    for number in range(1, 15):
        payload = {
            **LETTER,
            "to": [f"person{number}@example.com"],
            "copies": number % 3,
            "body": f"{LETTER['body']} {LONG if number == 3 else ''}",
        }
        ask(
            payload,
            question=f"Send letter {number}?",
            run=run,
            due=timedelta(days=number),
            reasons=["Too late"],
        )
    for number in range(3):
        ask({UNBROKEN: f"{UNBROKEN}{number}", "n": number}, question=f"{UNBROKEN}?", why=UNBROKEN, run=run)
    before_the_last_three = Approval.objects.order_by("-opened_at")[3].opened_at.isoformat()
    return {
        "inbox": Shown("pm", "/"),
        "inbox-new": Shown(
            "pm",
            "/",
            (
                (
                    "set",
                    "#inbox-list",
                    "data-live-url",
                    f"/inbox/list/?until={quote(before_the_last_three)}&beside=1",
                ),
                ("wake", ""),
                ("see", ".new-items"),
            ),
        ),
        "inbox-teams": Shown("pm", "/?scope=teams"),
        "inbox-all": Shown("ops", "/?scope=all"),
        "inbox-filtered": Shown("pm", "/?risk=high&due=7d"),
        "inbox-no-match": Shown("pm", "/?q=nothing-fits-this"),
        "inbox-decided": Shown("pm", "/?scope=decided"),
        "inbox-attention": Shown("pm", "/?scope=attention"),
        "inbox-empty": Shown("newcomer", "/"),
        "inbox-selected": Shown("pm", LETTERS, _picked(3)[:-2]),
        "inbox-filter-open": _opened("/", "[popovertarget=filter]", "#filter"),
        "inbox-saved-open": _opened("/", "[popovertarget=saved]", "#saved"),
        "bulk": Shown("pm", LETTERS, _picked(4)),
        "bulk-reject": Shown("pm", LETTERS, (*_picked(4), ("press", "[name=verdict][value=reject]"))),
        "bulk-number": Shown(
            "pm", LETTERS, (*_picked(12), ("press", ".action-bar .button-primary"), ("see", ".error"))
        ),
        "bulk-done": Shown(
            "pm",
            LETTERS,
            (*_picked(4), ("press", ".action-bar .button-primary"), ("see", ".bulk-results")),
            after=(("press", "[data-key=z]"), ("see", ".bulk-results")),
        ),
        "bulk-partly-done": Shown(
            "pm",
            LETTERS,
            (
                *_picked(4),
                ("stale", "#bulk [name=pick]"),
                ("press", ".action-bar .button-primary"),
                ("see", ".bulk-refused"),
            ),
            after=(("press", "[data-key=z]"), ("see", ".bulk-results")),
        ),
        "bulk-unbroken": Shown("pm", f"/?q={UNBROKEN[:20]}", _picked(3)),
        "inbox-unbroken": Shown("pm", f"/?graph={UNBROKEN}&requester={UNBROKEN}&due=7d"),
        "runs": Shown("pm", "/runs/"),
        "runs-failed": Shown("pm", "/runs/?status=failed"),
        "runs-no-match": Shown("pm", "/runs/?q=nothing-fits-this"),
        "runs-empty": Shown("newcomer", "/runs/"),
        "runs-filter-open": _opened("/runs/", "[popovertarget=filter]", "#filter"),
    }


def admin_pages() -> Pages:
    schedule = Schedule.objects.make("parcels", "nightly", "30 2 * * 1-5", zone="Europe/Berlin")
    limit = QueueLimit.objects.put("letters", at_once=3, starts=100, per_seconds=60)
    stop = GraphStop.objects.stop("parcels", "chief", "The warehouse is under water.")
    target = Target(name="team chat", channel="webhook")
    target.url = "https://chat.example.com/hook"
    target.save()
    run = Run.objects.filter(status="failed").first()
    at = {
        "index": "",
        "runs": "runs/run/",
        "run": f"runs/run/{run.pk}/change/",
        "keep": f"runs/run/{run.pk}/keep_it/",
        "erase": f"runs/run/{run.pk}/erase_it/",
        "schedules": "runs/schedule/",
        "schedule": f"runs/schedule/{schedule.pk}/change/",
        "schedule-new": "runs/schedule/add/",
        "limits": "runs/queuelimit/",
        "limit": f"runs/queuelimit/{limit.pk}/change/",
        "stops": "runs/graphstop/",
        "stop": f"runs/graphstop/{stop.pk}/change/",
        "targets": "approvals/target/",
        "target": f"approvals/target/{target.pk}/change/",
        "notices": "approvals/notice/",
        "people": "auth/user/",
        "factors": "mfa/authenticator/",
    }
    return {f"admin-{name}": Shown("chief", f"/admin/{path}") for name, path in at.items()}


def _opened(where: str, button: str, shown: str) -> Shown:
    return Shown("pm", where, (("press", button), ("see", shown)))


def _picked(many: int) -> tuple[Act, ...]:
    return (("tick", PICKS, str(many)), ("press", "#picked [type=submit]"), ("see", "#bulk"))
