"""Mail in quiet hours is held, and comes as one; what a decision made useless is wanted again when that is undone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, time, timedelta
from time import monotonic

import psycopg
import pytest
from django.core import mail
from django.db import connection, transaction
from django.urls import reverse

from approvals.models import Absence, Approval, Notice, NoticeWish, Occasion
from approvals.notices import bundling, channels
from approvals.notices.addressing import address
from approvals.notices.quiet import Quiet
from approvals.notices.sending import send
from runs.engine import clock
from tests.approvals.cases import ask
from tests.approvals.pages import as_person
from tests.approvals.test_notices import clock_is_put_back as clock_is_put_back
from tests.approvals.test_notices import do_due, sent
from tests.approvals.test_notices import on as on
from tests.runs.driving import pass_time

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
BERLIN = "Europe/Berlin"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("quiet", "now", "ends"),
    [
        (Quiet(time(22), time(7), "UTC"), "2026-06-01T23:00", "2026-06-02T07:00"),
        (Quiet(time(22), time(7), "UTC"), "2026-06-02T06:59", "2026-06-02T07:00"),
        (Quiet(time(22), time(7), "UTC"), "2026-06-02T07:00", None),
        (Quiet(time(22), time(7), "UTC"), "2026-06-01T21:59", None),
        (Quiet(time(12), time(13), BERLIN), "2026-06-01T10:30", "2026-06-01T11:00"),
        (Quiet(time(12), time(13), BERLIN), "2026-06-01T12:30", None),
        # the clock is put on in that night, and back in that one
        (Quiet(time(22), time(7), BERLIN), "2026-03-28T22:00", "2026-03-29T05:00"),
        (Quiet(time(22), time(2, 30), BERLIN), "2026-10-25T00:10", "2026-10-25T00:30"),
        (Quiet(time(22), time(2, 30), BERLIN), "2026-10-25T01:10", "2026-10-25T01:30"),
    ],
)
def test_quiet_hours_end_by_the_clock_of_their_zone(quiet, now, ends):
    assert quiet.ends(at(now)) == (at(ends) if ends else None)


def quiet_now(person, hours: int = 4) -> datetime:
    """Quiet hours around now; when they end."""
    now = clock.now()
    end = (now + hours * HOUR).replace(second=0, microsecond=0)
    NoticeWish.keep(person, [], Quiet((now - HOUR).time(), end.time(), "UTC"))
    return end


def later(hours: float) -> None:
    pass_time(hours * 60 * 60)


def test_what_waits_in_quiet_hours_comes_as_one_mail_when_they_end(on, ada, bob):
    end = quiet_now(ada)
    first, second, third = ask(question="One?"), ask(question="Two?"), ask(question="Three?")
    do_due()
    assert sent() == [("bob", "For you to decide")] * 3
    held = Notice.objects.filter(person=ada)
    assert {(one.status, one.held, one.send_at) for one in held} == {("waiting", True, end)}

    third.decide(by=bob, verdict="approve")  # meanwhile, so it stands in no mail
    later(5)
    do_due()
    told = [one for one in mail.outbox if one.to == [ada.email]]
    assert len(told) == 1
    assert told[0].subject.startswith("2 notices from your quiet hours: For you to decide: ")
    for approval, is_in in ((first, True), (second, True), (third, False)):
        for body in (told[0].body, told[0].alternatives[0].content):
            assert (approval.get_absolute_url() in body) is is_in
    assert sorted(one.status for one in held.all()) == ["dropped", "sent", "sent"]
    lead = held.get(status="sent", lead=None)
    assert told[0].extra_headers["Message-ID"] == f"<{lead.pk}@approvals.example>"


def test_what_one_is_given_for_an_absence_comes_as_one_mail(on, ada, eve):
    """However much waits for who goes away, their deputy is not sent as many mails."""
    approvals = [ask(question=f"Letter {number}?", reviewers=("ada",)) for number in range(3)]
    do_due()
    sent()
    Absence.plan(ada, eve, clock.now(), clock.now() + timedelta(days=3))
    do_due()
    assert sent() == [] and Notice.objects.filter(person=eve, status="waiting").count() == 3
    later(1 / 60)
    do_due()
    (letter,) = mail.outbox
    assert letter.to == [eve.email] and letter.subject.startswith(
        "3 approvals for you: Given to you: Letter "
    )
    for body in (letter.body, letter.alternatives[0].content):
        assert all(approval.get_absolute_url() in body for approval in approvals)
        assert "This is given to you" in body and "quiet hours" not in body


def test_one_alone_is_an_ordinary_mail(on, ada):
    quiet_now(ada)
    ask()
    do_due()
    assert sent() == []
    later(5)
    do_due()
    assert sent() == [("ada", "For you to decide")]


def test_what_would_be_too_late_by_then_is_sent_at_once_and_says_so(on, ada):
    end = quiet_now(ada)
    ask(due=2 * HOUR)
    ask(due=9 * HOUR)
    do_due()
    assert len(mail.outbox) == 1
    said = f"The deadline is before your quiet hours end at {end:%H:%M} UTC, so this did not wait."
    assert said in mail.outbox[0].body and said in mail.outbox[0].alternatives[0].content


def test_other_hours_count_for_what_is_held_already(on, ada):
    quiet_now(ada)
    ask()
    do_due()
    NoticeWish.keep(ada, [])
    do_due()
    assert sent() == [("ada", "For you to decide")]


def test_a_mail_of_several_that_fails_tells_the_same_again_under_the_same_id(on, ada, tried):
    quiet_now(ada)
    ask()
    ask()
    do_due()
    later(5)
    do_due()
    ask()  # comes too late for that mail
    later(1)
    do_due()
    assert tried[0] == tried[1] and len(tried[0].tells) == 2
    assert Notice.objects.filter(status="sent").count() == 3


def test_two_that_were_held_and_are_taken_at_once_make_one_mail(on, ada, monkeypatch):
    """The second finds itself in the mail of the first."""
    sent_by = []
    monkeypatch.setitem(channels.SENDERS, "mail", lambda notice: sent_by.append(notice.pk))
    quiet_now(ada)
    ask()
    ask()
    do_due()
    later(5)
    one, other = Notice.objects.order_by("pk")
    send(one.pk)
    send(other.pk)
    assert sent_by == [one.pk]
    assert [notice.status for notice in Notice.objects.all()] == ["sent", "sent"]


def test_what_was_decided_between_two_tries_of_a_mail_is_told_once_that_is_undone(on, ada, bob, tried):
    """Its mail goes on without it: what stood there is told in another one."""
    quiet_now(ada)
    NoticeWish.keep(bob, ["asked", "reopened", "decided"])
    for number in range(3):
        ask(question=f"Send {number}?")
    do_due()
    later(5)
    do_due()
    first, *others = tried[0].tells
    pass_time(58)
    Approval.objects.get(pk=first).decide(by=bob, verdict="reject", reason="no")
    pass_time(4)
    do_due()
    assert [sorted(mail.tells) for mail in tried[1:]] == [sorted(others)]
    lead = Notice.objects.get(approval=first, occasion="asked", person=ada)
    assert (lead.status, lead.error) == ("dropped", "decided")
    Approval.objects.get(pk=first).undo(by=bob)
    do_due()
    assert [mail.tells for mail in tried[2:]] == [[first]]


def test_each_part_of_a_mail_is_dropped_for_its_own_reason(on, ada, bob, monkeypatch):
    def fails(notice):
        raise channels.NotSent("the mail server cannot be reached")

    monkeypatch.setitem(channels.SENDERS, "mail", fails)
    quiet_now(ada)
    ask()
    ask()
    do_due()
    later(5)
    do_due()
    lead = Notice.objects.get(person=ada, status="waiting")
    part = Notice.objects.get(person=ada, status="bundled")
    lead.approval.decide(by=bob, verdict="reject", reason="no")
    part.approval.reviewers.update(name="bob", group=False)
    later(1)
    do_due()
    reasons = [Notice.objects.get(pk=one.pk).error for one in (lead, part)]
    assert reasons == ["decided", "it is not theirs to decide any more"]


# -- undone ---------------------------------------------------------------------------------------------------


def test_a_mail_dropped_for_a_decision_is_sent_once_that_is_undone_under_its_id(on, ada, bob, eve):
    quiet_now(ada)
    approval = ask()
    do_due()
    sent()
    held = Notice.objects.get(person=ada)
    approval.decide(by=bob, verdict="approve")
    NoticeWish.keep(ada, [])  # due now, and of no use
    do_due()
    held.refresh_from_db()
    assert (held.status, held.error) == ("dropped", "decided") and sent() == []

    Approval.objects.get(pk=approval.pk).undo(by=bob)
    do_due()
    assert [one.to for one in mail.outbox] == [[ada.email]]
    assert mail.outbox[0].extra_headers["Message-ID"] == f"<{held.pk}@approvals.example>"
    assert sorted(Notice.objects.values_list("person__username", "status")) == [
        ("ada", "sent"),
        ("bob", "sent"),
    ]


def test_who_was_not_told_because_it_was_decided_at_once_is_asked_after_the_undo(on, ada, bob):
    approval = ask()
    approval.decide(by=bob, verdict="approve")
    address(Occasion.objects.get(approval=approval, kind="asked").pk)
    assert not Notice.objects.exists()
    Approval.objects.get(pk=approval.pk).undo(by=bob)
    do_due()
    assert sent() == [("ada", "For you to decide")], "bob, who undid it, knows"
    Approval.objects.get(pk=approval.pk).decide(by=bob, verdict="approve")
    Approval.objects.get(pk=approval.pk).undo(by=bob)
    do_due()
    assert sent() == [], "told once"


# -- the page -------------------------------------------------------------------------------------------------


def test_the_page_keeps_quiet_hours_and_says_what_is_wrong_with_them(on, ada):
    client, where = as_person(ada), reverse("approvals:notices")
    typed = {"mail": ["asked"], "quiet_from": "21:30", "quiet_until": "06:45", "zone": BERLIN}
    assert client.post(where, typed).status_code == 302
    kept = NoticeWish.objects.get(person=ada)
    assert kept.quiet == Quiet(time(21, 30), time(6, 45), BERLIN)
    assert "reminded" in kept.unwanted and "asked" not in kept.unwanted
    page = client.get(where).content.decode()
    assert 'value="21:30"' in page and f'value="{BERLIN}"' in page

    for fault, field in (
        ({"quiet_until": ""}, "quiet-until"),
        ({"quiet_until": "21:30"}, "quiet-until"),
        ({"quiet_from": "25:00"}, "quiet-from"),
        ({"zone": "Berlin"}, "quiet-zone"),
        ({"zone": "../etc/passwd"}, "quiet-zone"),
    ):
        answer = client.post(where, typed | fault)
        assert answer.status_code == 422 and f'id="{field}-error"' in answer.content.decode()
    assert NoticeWish.objects.get(person=ada).quiet == kept.quiet

    assert client.post(where, {"quiet_from": "", "quiet_until": "", "zone": "UTC"}).status_code == 302
    assert NoticeWish.objects.get(person=ada).quiet is None


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_two_mails_to_one_person_are_gathered_at_the_same_moment_without_a_deadlock(on, ada, monkeypatch):
    """Neither has wishes that could be locked; each would be put into the other's mail."""
    one, other = (
        Notice.objects.create(
            approval=ask(question=question),
            occasion="assigned",
            round=0,
            channel="mail",
            person=ada,
            held=True,
            made_at=clock.now(),
            send_at=clock.now(),
        )
        for question in ("One?", "Two?")
    )
    tries: list[int] = []
    once = bundling._gather
    monkeypatch.setattr(bundling, "_gather", lambda lead: (tries.append(lead.pk), once(lead))[1])

    def gathered(lead: Notice) -> bool:
        try:
            return bundling.gather(lead)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as aside:
        with transaction.atomic():  # somebody decides, so that both have begun before either gets any further
            Notice.objects.select_for_update().get(pk=one.pk)
            first = aside.submit(gathered, one)
            _wait_for_waiting(1)
            second = aside.submit(gathered, other)
            _wait_for_waiting(2)
        assert [first.result(60), second.result(60)] == [True, False]
    assert tries == [one.pk, other.pk], "a deadlock is tried again"
    assert list(one.bundled.values_list("pk", flat=True)) == [other.pk]


def _wait_for_waiting(count: int) -> None:
    """Until so many sessions of this database wait for a row that another one has."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as watcher:
        patience = monotonic() + 60
        while watcher.execute(waiting).fetchone()[0] < count:
            assert monotonic() < patience
