"""E14, E15 of notices: killed, or failed by the database, at every statement.

A change and its occasion are one, each person is told once in the outbox, and what was to be sent is sent.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import count

import pytest

from approvals.models import Approval, Decision, Notice, Occasion
from approvals.notices import channels
from approvals.notices.addressing import address
from approvals.notices.sending import send
from runs.engine import clock
from runs.testing import kill_at_statements
from runs.testing.faults import Check, Prepare
from tests.approvals.cases import ask
from tests.runs.disturbing import commits_of, fail_each_once, where_to_kill
from tests.runs.driving import do_due, pass_time

pytestmark = pytest.mark.django_db(transaction=True)

numbers = count(1)


@pytest.fixture(autouse=True)
def on(settings, person):
    settings.DURABLEWEB = settings.DURABLEWEB | {"site_url": "https://approvals.example"}
    person("ada", "pm")
    person("bob", "pm")
    yield
    clock.AHEAD = timedelta()


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Where each mail that goes, also from a child process, leaves the id of its notice."""
    file = tmp_path / "sent"
    file.touch()

    def sends(notice):
        with file.open("a") as lines:
            lines.write(f"{notice.pk}\n")

    monkeypatch.setitem(channels.SENDERS, "mail", sends)
    return file


def kill_in(prepare: Prepare, check: Check) -> int:
    """How many statements the verb has."""
    chosen = where_to_kill(prepare.__name__, commits_of(prepare))
    Occasion.objects.update(look_at=None)  # what the undisturbed ones have left to be done
    return kill_at_statements(prepare, check, chosen)


def decide():
    from django.contrib.auth.models import User

    approval, ada = ask(), User.objects.get(username="ada")
    key = f"op-{next(numbers)}"
    return str(approval.pk), lambda: Approval.objects.get(pk=approval.pk).decide(
        by=ada, verdict="approve", operation_id=key
    )


def tell_whom():
    approval = ask()
    occasion = Occasion.objects.get(approval=approval)
    return str(approval.pk), lambda: address(occasion.pk)


def send_one():
    approval = ask()
    address(Occasion.objects.get(approval=approval).pk)
    notice = Notice.objects.filter(approval=approval).order_by("pk").first()
    Notice.objects.filter(approval=approval).exclude(pk=notice.pk).delete()
    return str(approval.pk), lambda: send(notice.pk)


def send_several():
    """One of three that were held for ada until just now."""
    from django.contrib.auth.models import User

    from approvals.models import NoticeWish

    ada = User.objects.get(username="ada")
    Notice.objects.all().update(lead=None)
    Notice.objects.all().delete()
    NoticeWish.keep(ada, [])
    now = clock.now()
    approvals = [ask() for _one in range(3)]
    Occasion.objects.update(look_at=None)  # nobody else is told of them
    notices = Notice.objects.bulk_create(
        Notice(
            approval=approval,
            occasion="asked",
            round=0,
            channel="mail",
            person=ada,
            held=True,
            made_at=now,
            send_at=now,
        )
        for approval in approvals
    )
    return str(notices[0].pk), lambda: send(notices[0].pk)


def is_decided_and_noted_or_neither(pk, where):
    decided = Decision.objects.filter(approval=pk).count()
    assert Occasion.objects.filter(approval=pk, kind="decided").count() == decided, where


def is_told_to_all_or_still_due(pk, where):
    due = Occasion.objects.filter(approval=pk, look_at__isnull=False).count()
    told = Notice.objects.filter(approval=pk).count()
    assert (due, told) in ((1, 0), (0, 2)), where
    do_due()
    assert Notice.objects.filter(approval=pk).count() == 2, where


def test_a_change_and_its_occasion_are_one_transaction():
    assert kill_in(decide, is_decided_and_noted_or_neither) > 5
    assert fail_each_once(decide, is_decided_and_noted_or_neither) > 2


def test_each_is_told_once_wherever_who_addresses_dies(log):
    assert kill_in(tell_whom, is_told_to_all_or_still_due) > 3
    assert fail_each_once(tell_whom, is_told_to_all_or_still_due) > 2


def test_what_was_to_be_sent_is_sent_wherever_who_sends_dies(log):
    """At least once, always under the same id; a try that was begun is counted."""

    def is_sent_in_the_end(pk, where):
        notice = Notice.objects.get(approval=pk)
        sent = log.read_text().split().count(str(notice.pk))
        assert sent <= notice.tries <= 1, f"{where}: counted before it is made"
        assert notice.status in ("waiting", "sent"), where
        pass_time(60 * 60)
        do_due()
        notice.refresh_from_db()
        assert notice.status == "sent", where
        assert 1 <= log.read_text().split().count(str(notice.pk)) <= 2, where
        clock.AHEAD = timedelta()

    assert kill_in(send_one, is_sent_in_the_end) > 3


def test_a_mail_of_several_is_sent_wherever_who_sends_dies(log):
    """Whoever dies on the way: each stands in one mail, and that goes under one id."""

    def is_sent_in_the_end(pk, where):
        pass_time(60 * 60)
        do_due()
        assert set(Notice.objects.values_list("status", flat=True)) == {"sent"}, where
        ids = log.read_text().split()
        log.write_text("")
        assert len(set(ids)) == 1 and 1 <= len(ids) <= 2, where
        clock.AHEAD = timedelta()

    chosen = where_to_kill("send several", commits_of(send_several))
    log.write_text("")
    assert kill_at_statements(send_several, is_sent_in_the_end, chosen) > 5


def attach():
    from django.contrib.auth.models import User

    from approvals.files import Sent

    approval, ada = ask(), User.objects.get(username="ada")
    return str(approval.pk), lambda: Approval.objects.get(pk=approval.pk).comment(
        ada, "Here, @bob.", [Sent("a.txt", b"one"), Sent("b.txt", str(approval.pk).encode())]
    )


def test_a_comment_its_files_and_its_occasion_are_one_transaction(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path

    def is_all_or_nothing(pk, where):
        approval = Approval.objects.get(pk=pk)
        parts = (
            approval.activities.filter(kind="commented").count(),
            approval.activities.filter(kind="attached").count(),
            approval.attachments.count(),
            Occasion.objects.filter(approval=pk, kind="mentioned").count(),
        )
        assert parts in ((0, 0, 0, 0), (1, 2, 2, 1)), where

    assert kill_in(attach, is_all_or_nothing) > 5
    assert fail_each_once(attach, is_all_or_nothing) > 2
