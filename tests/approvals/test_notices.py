"""Who is told of what, once, and never after the decision: from the change that asks to the mail that goes."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client

from approvals.models import Approval, Decision, Notice, NoticeWish, Occasion
from approvals.models.notice import PAUSES
from approvals.notices import channels
from runs import chores
from runs.engine import clock
from tests.approvals.cases import ask, close, told, waiting_run
from tests.runs.driving import do_due, pass_time

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def clock_is_put_back():
    yield
    clock.AHEAD = timedelta()


@pytest.fixture
def on(settings):
    """The site knows its address, so notices are on."""
    settings.DURABLEWEB = settings.DURABLEWEB | {"site_url": "https://approvals.example"}


def sent() -> list[tuple[str, str]]:
    """(to whom, what it begins with) of each mail, and forget them."""
    found = sorted(
        (message.to[0].partition("@")[0], message.subject.partition(":")[0]) for message in mail.outbox
    )
    mail.outbox.clear()
    return found


# -- who, and when -------------------------------------------------------------------------------------------


def test_without_an_address_of_the_site_nothing_is_noted_or_sent(ada):
    ask()
    do_due()
    assert not Occasion.objects.exists() and sent() == []


def test_all_who_may_decide_are_asked_once(on, ada, bob, eve):
    ask(run=waiting_run(created_by=bob))
    do_due()
    assert sent() == [("ada", "For you to decide")]
    do_due()
    assert sent() == []


def test_the_occasion_is_written_with_the_change_or_not_at_all(on, ada, monkeypatch):
    monkeypatch.setattr(Occasion, "save", lambda self, **_how: (_ for _ in ()).throw(RuntimeError("no room")))
    with pytest.raises(RuntimeError):
        ask()
    assert not Approval.objects.exists()


def test_nothing_that_asks_is_sent_after_the_decision(on, ada, bob):
    """Neither what was not addressed yet, nor what waits to be sent."""
    first = ask()
    first.decide(by=ada, verdict="approve")
    second = ask()
    chores.known()
    Occasion.objects.filter(approval=first).exclude(kind="decided").get()
    for occasion in Occasion.objects.filter(kind="asked"):
        from approvals.notices.addressing import address

        address(occasion.pk)
    assert set(Notice.objects.values_list("approval", flat=True)) == {second.pk}
    Approval.objects.get(pk=second.pk).decide(by=ada, verdict="reject", reason="no")
    do_due()
    assert sent() == []
    assert set(Notice.objects.values_list("status", "error")) == {("dropped", "decided")}


def test_who_has_voted_is_not_asked_and_an_edit_asks_again(on, ada, bob, person):
    carol = person("carol", "pm")
    approval = ask(quorum=2)
    do_due()
    assert sent() == [(name, "For you to decide") for name in ("ada", "bob", "carol")]
    approval.decide(by=ada, verdict="approve")
    Approval.objects.get(pk=approval.pk).decide(
        by=bob, verdict="edit", payload=approval.proposal | {"subject": "Other"}
    )
    do_due()
    assert sent() == [("ada", "For you to decide"), ("carol", "For you to decide")]
    Approval.objects.get(pk=approval.pk).decide(by=carol, verdict="approve")
    do_due()
    assert sent() == []


def test_reminders_go_to_who_has_it_or_to_all_who_have_not_decided(on, ada, bob):
    open_to_all, taken = ask(due=8 * HOUR), ask(due=8 * HOUR)
    do_due()
    taken.claim(bob)
    sent()
    pass_time(6 * 3600 + 1)
    do_due()
    assert sent() == [("ada", "Reminder"), ("bob", "Reminder"), ("bob", "Reminder")]
    open_to_all.decide(by=ada, verdict="approve")
    pass_time(3600)
    do_due()
    assert sent() == [("bob", "Reminder")]


def test_all_are_reminded_of_what_was_taken_by_somebody_who_can_decide_nothing_any_more(on, ada, bob, person):
    gone, left = person("gone", "pm"), ask(due=8 * HOUR)
    switched_off = ask(due=8 * HOUR)
    do_due()
    left.claim(bob)
    switched_off.claim(gone)
    bob.groups.clear()
    User.objects.filter(pk=gone.pk).update(is_active=False)
    sent()
    pass_time(6 * 3600 + 1)
    do_due()
    assert sent() == [("ada", "Reminder")] * 2


def test_an_escalation_tells_those_who_were_not_asked_before(on, ada, eve):
    ask(escalate={"to": ["eve", "pm"], "after": 7200})
    do_due()
    sent()
    pass_time(7201)
    do_due()
    assert sent() == [("eve", "Nobody has decided yet")]


def test_what_is_handed_over_is_told_to_who_gets_it(on, ada, bob, eve):
    approval = ask()
    do_due()
    sent()
    approval.assign(ada, bob)
    do_due()
    assert sent() == [("bob", "Given to you")]
    Approval.objects.get(pk=approval.pk).delegate(ada, eve)
    do_due()
    assert sent() == [("eve", "Given to you")]
    Approval.objects.get(pk=approval.pk).claim(bob)
    do_due()
    assert sent() == []
    another = ask(reviewers=("bob",))
    do_due()
    sent()
    another.assign(bob, bob)
    do_due()
    assert sent() == [], "one knows what one has taken oneself"


def test_who_asked_hears_of_the_end_once_it_cannot_be_undone(on, ada, bob, eve):
    decided = ask(run=waiting_run(created_by=eve, on_behalf_of=bob))
    do_due()
    sent()
    decided.decide(by=ada, verdict="approve")
    do_due()
    assert sent() == []
    pass_time(10)
    do_due()
    assert sent() == [("bob", "Approved"), ("eve", "Approved")]
    undone = ask(run=waiting_run(created_by=eve))
    undone.decide(by=ada, verdict="approve")
    Approval.objects.get(pk=undone.pk).undo(ada)
    pass_time(10)
    do_due()
    assert ("eve", "Approved") not in sent()
    Approval.objects.get(pk=undone.pk).decide(by=ada, verdict="approve")
    Approval.objects.get(pk=undone.pk).undo(ada)
    Approval.objects.get(pk=undone.pk).decide(by=ada, verdict="reject", reason="No.")
    pass_time(10)
    do_due()
    assert [one for one in sent() if one[0] == "eve"] == [("eve", "Rejected")], "of what stands, and once"


def test_what_expires_is_told_to_who_asked_and_what_is_superseded_to_nobody(on, ada, eve):
    expired, superseded = ask(run=waiting_run(created_by=eve)), ask(run=waiting_run(created_by=eve))
    do_due()
    sent()
    close(expired, "expired")
    close(superseded, "superseded")
    do_due()
    assert sent() == [("eve", "Expired")]


def test_a_notice_whose_receiver_may_not_decide_any_more_is_dropped(on, ada, bob, monkeypatch):
    approval = ask()
    occasion = Occasion.objects.get()
    from approvals.notices.addressing import address

    address(occasion.pk)
    ada.groups.clear()
    do_due()
    assert sent() == [("bob", "For you to decide")]
    assert Notice.objects.get(person=ada).error == "it is not theirs to decide any more"
    assert approval.is_open


# -- wishes --------------------------------------------------------------------------------------------------


def test_a_person_gets_no_mail_that_they_do_not_want(on, ada, bob):
    client = Client()
    client.force_login(ada)
    page = client.get("/notices/").content.decode()
    assert page.count(" checked") >= 6 and "ada@example.com" in page
    assert client.post("/notices/", {"mail": ["reminded"]}).status_code == 302
    assert NoticeWish.objects.get().unwanted == [
        "asked",
        "assigned",
        "decided",
        "escalated",
        "expired",
        "mentioned",
    ]
    ask(due=8 * HOUR)
    do_due()
    assert sent() == [("bob", "For you to decide")]
    pass_time(6 * 3600 + 1)
    do_due()
    assert sent() == [("ada", "Reminder"), ("bob", "Reminder")]


def test_who_has_no_address_or_no_account_any_more_gets_nothing(on, ada, bob):
    ada.email = ""
    ada.save()
    bob.is_active = False
    bob.save()
    ask()
    do_due()
    assert sent() == [] and not Notice.objects.exists()


def test_the_page_says_when_notices_are_off_or_did_not_arrive(ada, settings):
    client = Client()
    client.force_login(ada)
    assert "DURABLEWEB_SITE_URL" in client.get("/notices/").content.decode()
    settings.DURABLEWEB = settings.DURABLEWEB | {"site_url": "https://approvals.example"}
    notice = Notice(
        approval=ask(), occasion="asked", round=0, channel="mail", person=ada, made_at=clock.now()
    )
    notice.status, notice.error = "failed", "the mail server refuses the address (550)"
    notice.save()
    assert "(550)" in client.get("/notices/").content.decode()


# -- trying again --------------------------------------------------------------------------------------------


def test_a_mail_that_fails_is_tried_again_ever_later_and_then_given_up(on, ada, monkeypatch):
    tried = []

    def fails(notice):
        tried.append(clock.now())
        raise channels.NotSent("the mail server cannot be reached (ConnectionRefusedError)")

    monkeypatch.setitem(channels.SENDERS, "mail", fails)
    ask()
    do_due()
    notice = Notice.objects.get()
    for number, pause in enumerate(PAUSES, 1):
        notice.refresh_from_db()
        assert (notice.status, notice.tries, len(tried)) == ("waiting", number, number)
        pass_time(pause.total_seconds() - 30)
        do_due()
        assert len(tried) == number
        pass_time(60)
        do_due()
    notice.refresh_from_db()
    assert (notice.status, notice.send_at, notice.tries) == ("failed", None, len(PAUSES) + 1)
    assert "ConnectionRefusedError" in notice.error


def test_what_fails_for_good_is_not_tried_again(on, ada, monkeypatch):
    def fails(notice):
        raise channels.NotSent("the mail server refuses the address (550)", is_final=True)

    monkeypatch.setitem(channels.SENDERS, "mail", fails)
    ask()
    do_due()
    assert Notice.objects.values_list("status", "tries").get() == ("failed", 1)


def test_a_fault_of_ours_is_no_leak_and_is_tried_again(on, ada, monkeypatch):
    def fails(notice):
        raise ValueError("https://hooks.example/secret-token")

    monkeypatch.setitem(channels.SENDERS, "mail", fails)
    ask()
    do_due()
    assert Notice.objects.values_list("status", "error").get() == ("waiting", "ValueError")


# -- links ---------------------------------------------------------------------------------------------------

SCANNERS = (
    "Mozilla/5.0 (compatible; Barracuda)",
    "Slackbot-LinkExpanding 1.0",
    "Microsoft Office/16 SafeLinks",
)


@pytest.mark.once
def test_opening_every_link_fifty_times_decides_nothing(on, ada, bob):
    """A2: by GET and HEAD, as mail scanners do, as a stranger and as who is signed in."""
    approval = ask()
    do_due()
    message = mail.outbox[0]
    html = message.alternatives[0][0]
    links = set(re.findall(r"https://approvals\.example(/[^\s\"<]*)", message.body + html))
    assert links == {f"/approvals/{approval.pk}/", "/notices/"}
    signed_in = Client()
    signed_in.force_login(ada)
    before = told(approval)
    for number in range(50):
        for client in (Client(),) if number % 25 else (Client(), signed_in):
            for link in links:
                agent = SCANNERS[number % len(SCANNERS)]
                for method in (client.get, client.head):
                    assert method(link, headers={"user-agent": agent}).status_code in (200, 302)
    approval.refresh_from_db()
    assert approval.is_open and told(approval) == before and not Decision.objects.exists()
    assert not NoticeWish.objects.exists()
