from __future__ import annotations

from datetime import timedelta

import pytest

from approvals.models import Activity, Decision
from approvals.words import VIAS
from runs import secrets
from runs.core import codec
from runs.errors import Conflict, Invalid
from runs.models import LedgerEntry, Run
from tests.approvals.cases import MAIL, answer_of, ask, close, told
from tests.approvals.langchain_requests import BATCHED, PAY

pytestmark = pytest.mark.django_db


def test_an_approval_answers_the_run_with_the_proposal(ada):
    approval = ask()
    decision = approval.decide(by=ada, verdict="approve")
    approval.refresh_from_db()
    assert (approval.outcome, approval.revision) == ("approved", 2)
    assert answer_of(approval) == {
        "outcome": "approved",
        "verdict": "approve",
        "payload": MAIL,
        "reason": "",
        "by": "ada",
    }
    assert approval.conclusion == decision
    assert approval.decided_at == decision.at


def test_the_answer_wakes_the_run_when_nobody_can_undo_it_any_more(ada, settings):
    settings.DURABLEWEB = {**settings.DURABLEWEB, "undo_seconds": 8}
    approval = ask()
    decision = approval.decide(by=ada, verdict="approve")
    run = Run.objects.get(pk=approval.run_id)
    assert run.wake_at == decision.at + timedelta(seconds=8)
    assert run.answers == 1


def test_a_signed_decision_takes_effect_at_once(ada, settings):
    settings.DURABLEWEB = {**settings.DURABLEWEB, "undo_seconds": 8}
    approval = ask(sign=True)
    decision = approval.decide(by=ada, verdict="approve", password="ada")
    assert LedgerEntry.objects.get(pk=approval.entry_id).effective_at == decision.at


def test_what_was_approved_is_bound_by_its_digest(ada):
    """P8, A5: the digest in the ledger is that of the payload's canonical text."""
    approval = ask()
    approval.decide(by=ada, verdict="approve", payload={**MAIL, "to": "jose@example.com"})
    text = codec.dumps({**MAIL, "to": "jose@example.com"})
    entry = LedgerEntry.objects.get(pk=approval.entry_id)
    approval.refresh_from_db()
    assert entry.approved_digest == codec.digest(text)
    assert entry.approval_head == approval.head


def test_an_edit_keeps_its_types(ada):
    """A13: 7 stays a whole number, 7.0 a number, null nothing."""
    payload = {"copies": 7, "price": 7.0, "when": None, "rush": True, "to": "a"}
    approval = ask(payload)
    approval.decide(by=ada, verdict="edit", payload={**payload, "to": "b"})
    answer = answer_of(approval)
    assert answer["outcome"] == "approved_with_edits"
    assert {key: (type(value), value) for key, value in answer["payload"].items()} == {
        "copies": (int, 7),
        "price": (float, 7.0),
        "when": (type(None), None),
        "rush": (bool, True),
        "to": (str, "b"),
    }


@pytest.mark.parametrize(
    "reason",
    ["  zu lang\r\n\tund \u201eso\u201c ", "a\x00b", "\ud800", "x" * 20_000, "e\u0301 is not \u00e9"],
)
def test_the_reason_of_a_rejection_reaches_the_run_byte_for_byte(ada, reason):
    """A13, D1"""
    approval = ask()
    approval.decide(by=ada, verdict="reject", reason=reason)
    answer = answer_of(approval)
    assert (answer["outcome"], answer["verdict"], answer["reason"]) == ("rejected", "reject", reason)
    assert LedgerEntry.objects.get(pk=approval.entry_id).approved_digest == ""


def test_an_answer_in_ones_own_words_is_the_payload(ada):
    approval = ask(None, verdicts=["respond", "reject"])
    approval.decide(by=ada, verdict="respond", payload="On Friday.")
    answer = answer_of(approval)
    assert (answer["outcome"], answer["payload"]) == ("responded", "On Friday.")


@pytest.mark.parametrize(
    "payload", [None, 7, "text", [], {}, [1, {"a": [None]}], {"": {"\u00fc": -1.5}}, 2**200]
)
def test_a_payload_of_any_shape_can_be_answered(ada, payload):
    """A9"""
    approval = ask(payload)
    assert approval.payload == payload
    approval.decide(by=ada, verdict="approve", payload=approval.payload)
    assert answer_of(approval)["payload"] == payload


def test_approving_another_payload_is_an_edit(ada):
    approval = ask()
    decision = approval.decide(by=ada, verdict="approve", payload={**MAIL, "copies": 8})
    assert decision.verdict == "edit"
    approval.refresh_from_db()
    assert approval.outcome == "approved_with_edits"


def test_an_edit_that_changes_nothing_is_an_approval(ada):
    approval = ask()
    assert approval.decide(by=ada, verdict="edit", payload=dict(reversed(MAIL.items()))).verdict == "approve"
    approval.refresh_from_db()
    assert approval.outcome == "approved"


def test_another_payload_is_refused_where_edits_are_not_offered(ada):
    approval = ask(verdicts=["approve", "reject"])
    with pytest.raises(Invalid, match="may not be edited"):
        approval.decide(by=ada, verdict="approve", payload={**MAIL, "copies": 8})
    assert told(approval) == ["opened"]


@pytest.mark.parametrize("verdict", ["respond", "yes", "", None, 1, True])
def test_a_verdict_that_is_not_offered_is_refused(ada, verdict):
    approval = ask()
    with pytest.raises(Invalid, match="choose approve, edit or reject") as refused:
        approval.decide(by=ada, verdict=verdict)
    assert list(refused.value.fields) == ["verdict"]
    assert answer_of(approval) is None


@pytest.mark.parametrize("via", VIAS)
def test_a_rejection_without_a_reason_is_refused_on_every_path(ada, via):
    approval = ask()
    for reason in ("", " \n\t"):
        with pytest.raises(Invalid, match="Say why") as refused:
            approval.decide(by=ada, verdict="reject", reason=reason, via=via)
        assert list(refused.value.fields) == ["reason"]
    assert told(approval) == ["opened"]


def test_unknown_and_missing_keys_are_named(ada):
    """A9: without a schema the proposal's own keys are known, at every depth."""
    approval = ask({"mail": {"to": "a", "subject": "b"}, "copies": 1})
    with pytest.raises(Invalid) as refused:
        approval.decide(by=ada, verdict="edit", payload={"mail": {"to": "a", "subjekt": "b"}, "copy": 1})
    assert set(refused.value.fields) == {"$.mail.subject", "$.mail.subjekt", "$.copies", "$.copy"}
    assert "subjekt" in refused.value.fields["$.mail.subjekt"][0]
    assert answer_of(approval) is None
    assert told(approval) == ["opened"]


SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "format": "email"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    },
    "required": ["to"],
}


@pytest.mark.parametrize(
    ("payload", "paths"),
    [
        ({"to": 7}, {"$.to"}),
        ({"to": "nobody"}, {"$.to"}),
        ({}, {"$.to"}),
        ({"to": "a@b.c", "bcc": "x"}, {"$.bcc"}),
        ({"to": "a@b.c", "lines": [{"n": 1}, {"n": "1"}]}, {"$.lines[1].n"}),
        ({"to": "a@b.c", "lines": [{"m": 1}]}, {"$.lines[0].m"}),
        ([], {"$"}),
        (None, {"$"}),
    ],
)
def test_an_edit_that_does_not_fit_its_schema_names_the_fields(ada, payload, paths):
    """A9: field errors, still open, the run untouched."""
    approval = ask({"to": "a@b.c", "lines": []}, schema=SCHEMA)
    with pytest.raises(Invalid) as refused:
        approval.decide(by=ada, verdict="edit", payload=payload)
    assert set(refused.value.fields) == paths
    assert answer_of(approval) is None
    assert not Decision.objects.exists()


@pytest.mark.parametrize(
    "payload", [float("nan"), {"a": float("inf")}, {"$": "no such form"}, object(), {1: object()}]
)
def test_a_payload_that_cannot_be_stored_is_refused(ada, payload):
    """D2, D5"""
    approval = ask(None, verdicts=["respond"])
    with pytest.raises(Invalid):
        approval.decide(by=ada, verdict="respond", payload=payload)
    assert not Decision.objects.exists()


def test_a_payload_nested_without_end_is_refused(ada):
    nested: list = []
    for _ in range(100_000):
        nested = [nested]
    approval = ask(None, verdicts=["respond"])
    with pytest.raises(Invalid):
        approval.decide(by=ada, verdict="respond", payload=nested)


def test_an_over_long_reason_is_refused(ada):
    with pytest.raises(Invalid) as refused:
        ask().decide(by=ada, verdict="reject", reason="x" * 20_001)
    assert list(refused.value.fields) == ["reason"]


def test_a_known_secret_is_refused_in_payload_and_reason(ada, monkeypatch):
    """O4: named by path and name, never by value; nothing of it is kept, also not in the trail."""
    canary = "canary-4f9c2e71"
    monkeypatch.setenv("DURABLEWEB_SECRET_MAIL", canary)
    secrets.forget()
    approval = ask()
    try:
        with pytest.raises(Invalid, match="MAIL") as in_payload:
            approval.decide(by=ada, verdict="edit", payload={**MAIL, "body": f"key={canary}"})
        with pytest.raises(Invalid, match="MAIL") as in_reason:
            approval.decide(by=ada, verdict="reject", reason=canary)
    finally:
        monkeypatch.delenv("DURABLEWEB_SECRET_MAIL")
        secrets.forget()
    assert list(in_payload.value.fields) == ["$.body"]
    assert list(in_reason.value.fields) == ["reason"]
    assert canary not in str(in_payload.value) + str(in_reason.value)
    assert told(approval) == ["opened"]


def test_a_reference_to_a_secret_cannot_be_written_into_an_edit(ada):
    """Else a reviewer could have the run mail them a secret that they never see."""
    approval = ask({"body": "hello", "key": codec.SecretRef("MODEL")})
    with pytest.raises(Invalid) as refused:
        approval.decide(by=ada, verdict="edit", payload={**approval.payload, "body": approval.payload["key"]})
    assert list(refused.value.fields) == ["$.body"]
    approval.decide(by=ada, verdict="edit", payload={**approval.payload, "body": "bye"})
    assert answer_of(approval)["payload"] == {"body": "bye", "key": codec.SecretRef("MODEL")}


def test_a_reference_to_a_secret_cannot_be_written_into_an_answer(ada):
    """Nor into that of a card of LangChain's, whose arguments a tool is called with."""
    stolen = {"$": "secret", "v": "MODEL"}
    approval = ask({"body": "hello"}, verdicts=["approve", "respond"])
    for answer, path in ((stolen, "$"), ({"words": [stolen]}, "$.words[0]")):
        with pytest.raises(Invalid) as refused:
            approval.decide(by=ada, verdict="respond", payload=answer)
        assert list(refused.value.fields) == [path]
    card = ask(BATCHED)
    edited = {"type": "edit", "edited_action": {"name": "pay", "args": {**PAY, "to": stolen}}}
    with pytest.raises(Invalid) as refused:
        card.decide(by=ada, verdict="respond", payload={"decisions": [edited, {"type": "reject"}]})
    assert list(refused.value.fields) == ["$.decisions[0].edited_action.args.to"]
    assert answer_of(approval) is None and answer_of(card) is None


def test_the_second_decision_is_told_who_decided_what_and_when(ada, bob):
    """B5: and both attempts are in the trail."""
    approval = ask()
    approval.decide(by=bob, verdict="approve", payload={**MAIL, "copies": 8})
    with pytest.raises(Conflict, match=r"bob approved this with edits at \d\d:\d\d:\d\d"):
        approval.decide(by=ada, verdict="reject", reason="no")
    assert told(approval) == ["opened", "edit by bob", "refused by ada"]
    assert "bob approved" in Activity.objects.get(kind="refused").text


def test_an_older_revision_is_refused_naming_who_changed_what(ada, bob):
    """A8: Ada opens, it is assigned to Bob, Ada submits."""
    approval = ask()
    seen = approval.revision
    approval.assign(by=bob, to=bob)
    with pytest.raises(Conflict, match="bob assigned this to bob"):
        approval.decide(by=ada, verdict="approve", revision=seen)
    assert answer_of(approval) is None
    approval.decide(by=ada, verdict="approve", revision=approval.revision)
    assert answer_of(approval)["by"] == "ada"


def test_comments_leave_the_revision(ada, bob):
    approval = ask()
    seen = approval.revision
    approval.comment(by=bob, text="Is the price right?")
    approval.decide(by=ada, verdict="approve", revision=seen)
    assert told(approval) == ["opened", "commented by bob", "approve by ada"]


def test_the_same_operation_sent_again_has_the_same_result(ada):
    approval = ask()
    first = approval.decide(by=ada, verdict="reject", reason="no", operation_id="op-1", revision=1)
    again = approval.decide(by=ada, verdict="reject", reason="no", operation_id="op-1", revision=1)
    assert first == again
    assert told(approval) == ["opened", "reject by ada"]


def test_an_operation_id_is_not_taken_for_something_else(ada, bob):
    approval, other = ask(), ask()
    approval.decide(by=ada, verdict="reject", reason="no", operation_id="op-1")
    for by, which, reason in ((ada, approval, "yes"), (bob, approval, "no"), (ada, other, "no")):
        with pytest.raises(Conflict, match="operation id"):
            which.decide(by=by, verdict="reject", reason=reason, operation_id="op-1")
    assert Decision.objects.count() == 1
    assert answer_of(other) is None


@pytest.mark.parametrize("operation_id", ["", " ", "x" * 201, "a\x00b", "a\nb", 7])
def test_an_operation_id_is_a_short_text(ada, operation_id):
    with pytest.raises(Invalid) as refused:
        ask().decide(by=ada, verdict="approve", operation_id=operation_id)
    assert list(refused.value.fields) == ["operation_id"]


def test_a_decision_after_the_deadline_is_refused_and_in_the_trail_as_late(ada):
    """Also while no worker has expired the entry yet."""
    approval = ask(due=timedelta(seconds=-1))
    with pytest.raises(Conflict, match="Too late: the deadline was"):
        approval.decide(by=ada, verdict="approve")
    assert answer_of(approval) is None
    assert told(approval) == ["opened", "late by ada"]


def test_the_deadline_itself_is_too_late(ada, monkeypatch):
    approval = ask(due=timedelta(hours=1))
    run, due_at = Run.objects.get(pk=approval.run_id), approval.due_at
    monkeypatch.setattr(type(Run.objects.all()), "lock", lambda runs, pk: (run, due_at))
    monkeypatch.setattr(type(Run.objects), "lock", lambda runs, pk: (run, due_at))
    with pytest.raises(Conflict, match="Too late"):
        approval.decide(by=ada, verdict="approve")


@pytest.mark.parametrize(
    ("outcome", "kind", "attempt"),
    [
        ("expired", "expired", "late"),
        ("rejected", "expired", "late"),
        ("auto_approved", "expired", "late"),
        ("superseded", "closed", "refused"),
        ("cancelled", "closed", "refused"),
    ],
)
def test_what_the_engine_closed_stays_closed(ada, outcome, kind, attempt):
    """S5"""
    approval = ask()
    close(approval, outcome)
    with pytest.raises(Conflict, match="approved by its" if outcome == "auto_approved" else outcome):
        approval.decide(by=ada, verdict="approve")
    approval.refresh_from_db()
    assert approval.outcome == outcome
    assert told(approval) == ["opened", kind, f"{attempt} by ada"]


def test_two_questions_of_one_run_are_answered_each_by_its_own_id(ada):
    """S4"""
    first = ask({"n": 1})
    second = ask({"n": 2}, run=first.run)
    second.decide(by=ada, verdict="reject", reason="two")
    first.decide(by=ada, verdict="reject", reason="one")
    assert [answer_of(one)["reason"] for one in (first, second)] == ["one", "two"]


def test_what_was_seen_is_kept_with_its_digest(ada):
    decision = ask().decide(
        by=ada, verdict="approve", seen={"title": "Send?", "payload": MAIL}, signed_in="password"
    )
    decision.refresh_from_db()
    assert decision.seen == codec.dumps({"title": "Send?", "payload": MAIL})
    assert decision.seen_digest == codec.digest(decision.seen)
    assert decision.signed_in == "password"


def test_a_decision_costs_few_statements(ada, django_assert_max_num_queries):
    approval = ask()
    approval.decide(by=ada, verdict="reject", reason="warm")  # content types and permissions are read once
    approval = ask()
    with django_assert_max_num_queries(24):  # PostgreSQL is asked for its clock as well
        approval.decide(by=ada, verdict="approve", revision=1, operation_id="op")
