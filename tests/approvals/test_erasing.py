"""What becomes of approvals, and of what is told about them, when their run is erased."""

from __future__ import annotations

from datetime import timedelta

import pytest

from approvals.bulk import Pick, decide_all, undo_all
from approvals.models import Approval, KeptDraft, Notice, Occasion, Target
from approvals.models import draft as drafts
from approvals.notices import channels
from approvals.notices.addressing import address
from approvals.notices.sending import send
from runs.engine import clock
from runs.errors import Conflict
from runs.models import Run, Tombstone
from runs.models.tombstone import ERASED
from runs.testing.rows import all_rows
from tests.approvals.cases import ask
from tests.approvals.pages import as_person
from tests.approvals.test_notices import clock_is_put_back as clock_is_put_back
from tests.approvals.test_notices import do_due
from tests.approvals.test_notices import on as on
from tests.approvals.test_quiet_hours import later, quiet_now
from tests.at_once import at_once

pytestmark = pytest.mark.django_db

CANARY = "canary-51d0"


def rejected(approval: Approval, by) -> Approval:
    approval.decide(by=by, verdict="reject", reason=f"No {CANARY}", seen={"page": CANARY})
    Run.objects.filter(pk=approval.run_id).update(status="completed", finished_at=clock.now(), wake_at=None)
    return approval


def erase(approval: Approval) -> Approval:
    assert approval.run.erase("asked for", "olga").erased_at is not None
    return Approval.objects.get(pk=approval.pk)


@pytest.mark.parametrize("why", ["", f"Why {CANARY}"])
def test_a_question_that_reads_as_the_mark_of_an_erasure_is_emptied_as_well(ada, why):
    approval = ask(question=ERASED, why=why)
    approval.comment(ada, f"I think {CANARY}")
    KeptDraft.keep(approval, ada, comment=f"Or {CANARY}")
    of_reason = rejected(approval, ada).decisions.get()
    erase(approval)
    own = {table: rows for table, rows in all_rows().items() if table.startswith("approvals_")}
    assert CANARY not in str(own) and ERASED in str(own)
    of_reason.refresh_from_db()
    assert (of_reason.payload, of_reason.seen, of_reason.reason) == ("", "", ERASED)
    assert not KeptDraft.objects.exists()


def test_what_was_to_be_told_in_the_mail_of_an_erased_one_is_told_in_another(on, ada, tried):
    quiet_now(ada)
    for number in range(3):
        ask(question=f"Send {number}?", reviewers=("ada",))
    do_due()
    later(5)
    do_due()
    first, *others = tried[0].tells
    erase(rejected(Approval.objects.get(pk=first), ada))
    do_due()
    [again] = tried[1:]
    assert sorted(again.tells) == sorted(others), "in one mail, and no word of what was erased"
    assert set(
        Notice.objects.filter(approval__in=others, occasion="asked").values_list("status", flat=True)
    ) == {"sent"}


def test_nobody_is_told_of_an_erased_one(on, ada, monkeypatch):
    """Neither of what happened before the erasure, nor while it goes on; and the target of a webhook stays sound."""
    posted = []
    monkeypatch.setattr(channels, "_post", lambda *said: posted.append(said) or 200)
    target = Target(name="hook", channel="webhook", occasions=["decided", "asked"], is_on=True)
    target.url = "https://93.184.216.34/x"
    target.save()
    approval = ask()
    do_due()
    told = len(posted)
    assert told == 1
    rejected(approval, ada)
    late = Occasion.objects.get(approval=approval, kind="decided")
    address(late.pk)
    waiting = Notice.objects.get(target=target, occasion="decided")
    Tombstone.objects.create(run=approval.run, by="olga", reason="asked for", at=clock.now(), head="")
    send(waiting.pk)
    waiting.refresh_from_db()
    assert waiting.status == "dropped"

    Occasion.objects.filter(pk=late.pk).update(look_at=clock.now())
    Notice.objects.filter(pk=waiting.pk).delete()
    address(late.pk)
    assert not Notice.objects.filter(target=target, occasion="decided").exists()
    late.refresh_from_db()
    assert late.look_at is None and len(posted) == told


def test_an_occasion_that_nobody_looked_at_is_over_with_the_erasure(on, ada, monkeypatch):
    posted = []
    monkeypatch.setattr(channels, "_post", lambda *said: posted.append(said) or 200)
    target = Target(name="hook", channel="webhook", occasions=["decided"], is_on=True)
    target.url = "https://93.184.216.34/x"
    target.save()
    approval = rejected(ask(), ada)
    assert Occasion.objects.filter(approval=approval, look_at__isnull=False).exists()
    erase(approval)
    assert not Occasion.objects.filter(approval=approval, look_at__isnull=False).exists()
    later(1)
    do_due()
    target.refresh_from_db()
    assert posted == [] and target.failing_since is None


def test_an_erased_one_refuses_every_decision_and_leaves_its_trail_alone(ada, bob):
    approval = erase(rejected(ask(), ada))
    length = approval.length
    for verdict, payload in (
        ("approve", {}),
        ("edit", {"payload": {"to": "x"}}),
        ("reject", {"reason": "No."}),
    ):
        with pytest.raises(Conflict, match="erased together with its run"):
            approval.decide(by=bob, verdict=verdict, **payload)
    approval.refresh_from_db()
    assert approval.length == length


def test_in_a_selection_an_erased_one_is_not_there(ada):
    gone, left = erase(rejected(ask(), ada)), ask(reviewers=("ada",))
    picks = [Pick(gone.pk, gone.revision), Pick(left.pk, left.revision)]
    page = as_person(ada).get("/inbox/bulk/", {"pick": [str(pick) for pick in picks]})
    assert page.status_code == 200 and left.get_absolute_url() in page.text
    said = {"by": ada, "verdict": "approve", "reason": "", "operation_id": "all-of-them", "signed_in": ""}
    assert [result.is_done for result in decide_all(picks, **said)] == [False, True]
    assert [result.is_done for result in undo_all(picks, by=ada)] == [False, True]


def test_no_draft_is_kept_of_one_that_was_erased_while_it_was_read(ada, monkeypatch):
    approval = rejected(ask(), ada)
    real = drafts.storable_text

    def meanwhile(text: str) -> str:
        erase(approval)
        return real(text)

    monkeypatch.setattr(drafts, "storable_text", meanwhile)
    assert KeptDraft.keep(approval, ada, comment=CANARY) is None
    assert not KeptDraft.objects.exists()


def test_a_draft_of_one_that_was_decided_meanwhile_is_not_kept_for_ever(ada, bob):
    approval = ask()
    as_it_was_read = Approval.objects.get(pk=approval.pk)
    approval.decide(by=bob, verdict="approve")
    kept = KeptDraft.keep(as_it_was_read, ada, comment="Ask Jos")
    assert kept.forget_at - clock.now() > drafts.KEPT - timedelta(minutes=5)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("question", ["Send this?", ERASED])
def test_a_draft_and_an_erasure_at_the_same_moment_leave_no_draft(ada, question):
    for number in range(5):
        approval = rejected(ask(question=question), ada)
        ends = at_once(
            lambda approval=approval: erase(approval),
            lambda approval=approval, number=number: KeptDraft.keep(
                Approval.objects.get(pk=approval.pk), ada, comment=f"{CANARY} {number}"
            ),
        )
        assert not [end for end in ends if isinstance(end, Exception)], ends
        assert not KeptDraft.objects.exists()
