"""Forms that no page of ours would send: each is refused in words, changes nothing, and is never an error of ours."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from approvals.models import Activity, Approval, Decision
from runs.errors import Conflict, Invalid, NotAllowed
from runs.models import LedgerEntry, Run
from tests.amounts import some_of
from tests.approvals.browser_post import posted_by
from tests.approvals.cases import answer_of, ask
from tests.approvals.pages import as_person
from tests.runs.driving import drive, pass_time
from tests.security.letters import posted, waiting_letter
from tests.security.test_routes import FORM, unmoved

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("letters_known", "alone")]

NESTED = {depth: "[" * depth + "]" * depth for depth in (150, 1_000, 20_000)}


@pytest.fixture
def client(ada: Any) -> Client:
    return as_person(ada)


def form_of(client: Client, approval: Approval, form_id: str = "decision") -> Any:
    return posted_by(client.get(approval.get_absolute_url()).content.decode(), form_id=form_id)


def send(client: Client, approval: Approval, entries: Any, what: str = "decision") -> Any:
    """A draft is asked for as the page's script does, which gets the form alone."""
    address = f"{approval.get_absolute_url()}{what}/"
    headers = {"x-requested-with": "fetch"} if what == "draft" else {}
    return client.post(address, entries.urlencode(), content_type=FORM, headers=headers)


def refused(answer: Any, *codes: int) -> bool:
    """A code of the client's fault, and a page that says something."""
    assert answer.status_code in (codes or (400, 409, 422)), answer.status_code
    assert len(answer.content) > 200
    return True


def payloads() -> dict[str, str]:
    """Texts that are no payload of a letter, whatever they are."""
    letter = {"to": "helen@example.com", "copies": 7, "note": "as agreed"}
    text = json.dumps(letter)
    return {
        "a key more": json.dumps({**letter, "bcc": "eve@example.com"}),
        "a key less": json.dumps({"to": "helen@example.com", "copies": 7}),
        "a key in another script": json.dumps({**letter, "tо": "eve@example.com"}),
        "a key twice": text.replace('"copies": 7', '"copies": 7, "copies": 70'),
        "the prototype": json.dumps({**letter, "__proto__": {"to": "eve"}}),
        "NaN": text.replace("7", "NaN"),
        "infinity": text.replace("7", "-Infinity"),
        "too large a number": text.replace("7", "1e999"),
        "too long a number": text.replace("7", "7" * 5_000),
        "a fraction": text.replace("7", "7.5"),
        "a flag": text.replace("7", "true"),
        "nested 150": text.replace("7", NESTED[150]),
        "nested 1000": text.replace("7", NESTED[1_000]),
        "nested 20000": text.replace("7", NESTED[20_000]),
        "only nested": NESTED[1_000],
        "objects nested": '{"a":' * 1_000 + "1" + "}" * 1_000,
        "no object": "[]",
        "nothing": "null",
        "empty": "",
        "cut off": text[:-1],
        "two": text + text,
        "a comment": text + "// x",
        "raw NUL": text.replace("as", "\x00"),
        "a mark": json.dumps({**letter, "copies": {"$": "decimal", "v": "7"}}),
        "a wrong mark": json.dumps({**letter, "copies": {"$": "nonsense", "v": 1}}),
        "a broken mark": json.dumps({**letter, "copies": {"$": "decimal"}}),
        "a class": json.dumps({**letter, "note": {"$": "model", "c": "os:system", "v": {"command": "id"}}}),
        "an enum": json.dumps({**letter, "note": {"$": "enum", "c": "subprocess:Popen", "v": "id"}}),
        "a blob": json.dumps(
            {**letter, "note": {"$": "blob", "sha256": "0" * 64, "size": 1, "media_type": "x"}}
        ),
        "an offloaded text": json.dumps(
            {**letter, "note": {"$": "offloaded", "sha256": "0" * 64, "size": 1}}
        ),
        "a mark alone": json.dumps({**letter, "note": {"$": 7}}),
    }


@pytest.mark.once  # it is refused before any row is written
def test_a_payload_that_is_none_is_refused(client: Client, run: Run) -> None:
    """A9: in the page's JSON, and in the JSON from which a form says that it was made."""
    approval = Approval.objects.get(run=run)
    entries = form_of(client, approval)
    entries["verdict"], entries["view"] = "approve", "json"
    for name, text in some_of("payloads as JSON", [*payloads().items()]):
        entries["json"] = text
        answer = send(client, approval, entries)
        assert answer.status_code == 422, (name, answer.status_code)
        assert answer.context["page"].trouble.message, name
        preview = send(client, approval, entries, "draft")
        assert preview.status_code == 200, name
    entries["view"], entries["json"] = "form", ""
    for name, text in some_of("payloads of forms", [*payloads().items()]):
        entries["base"] = text
        for what in ("decision", "draft"):
            answer = send(client, approval, entries, what)
            if answer.status_code == 302:  # what cannot be read as JSON is not what the form was made from
                assert Decision.objects.get().payload == json.dumps(
                    approval.payload, separators=(",", ":")
                ), name
                approval.undo(by=Decision.objects.get().by)
                return
            assert answer.status_code in (200, 422), (name, what)
    assert unmoved(run)


ANY_TEXT = (
    "a\x00b",
    "\ud800",
    "\ud800 \udfff",
    "‮evil",
    "é" * 3,
    "</script><!--",
    "{{ 7*7 }}{% x %}",
    "\r\n\t\x1b[2J",
    "",
)


def test_any_text_is_a_value_and_reaches_the_run_as_it_was(client: Client) -> None:
    """A13: as values and as keys, written as JSON escapes where a form could not carry them."""
    for text in some_of("any text", ANY_TEXT, 1 / 4):
        approval = ask({"text": "x", "keys": {text: 1}})
        entries = form_of(client, approval)
        entries["verdict"], entries["view"] = "approve", "json"
        entries["json"] = json.dumps({"text": text, "keys": {text: 1}})
        answer = send(client, approval, entries)
        assert answer.status_code == 302, (text, answer.context["page"].trouble)
        expected = json.loads(json.dumps({"text": text, "keys": {text: 1}}))
        assert answer_of(approval)["payload"] == expected
        assert client.get(approval.get_absolute_url()).status_code == 200
        assert client.get(f"/runs/{approval.run_id}/?entry={approval.entry_id}").status_code == 200


def test_any_reason_and_comment_is_kept_and_can_be_shown(client: Client) -> None:
    for text in ("a\x00b", "‮evil", "</script><!--", "{{ 7*7 }}", "\x1b[2J\x07", "﷽" * 500, "x" * 20_000):
        approval = ask({"text": "x"})
        said = send_fields(client, approval, "comments", text=text)
        assert said.status_code == 302, text
        entries = form_of(client, approval, "reject")
        entries["verdict"], entries["reason"] = "reject", text
        assert send(client, approval, entries).status_code == 302, text
        assert answer_of(approval)["reason"] == text
        assert client.get(approval.get_absolute_url()).status_code == 200


def send_fields(client: Client, approval: Approval, what: str, **fields: str) -> Any:
    return client.post(f"{approval.get_absolute_url()}{what}/", fields)


def test_a_form_with_wrong_fields_is_refused(client: Client, run: Run) -> None:
    approval = Approval.objects.get(run=run)
    right = {"verdict": "approve", "revision": "1", "view": ""}
    cases: list[dict[str, str]] = [
        *(
            {"revision": text}
            for text in ("", "x", "-1", "0", "2", "1.5", "9" * 5_000, "9" * 30, "1\x00", "0x1")
        ),
        *(
            {"verdict": text}
            for text in ("", "respond", "expire", "auto_approved", "APPROVE", "x" * 100_000, "\x00")
        ),
        *({"operation_id": text} for text in ("x" * 201, "a\x00b", "a\nb", "  ", "\u202e")),
        *({"verdict": "reject", "reason": text} for text in ("", "  \r\n", "x" * 20_001, "x" * 1_000_000)),
        {"view": "form"},
        {"view": "form", "$.to": "a", "$.copies": "seven", "$.note": ""},
        {"view": "form", "$.to": "a", "$.copies": "7", "$.note": "", "$.bcc": "eve"},
        {"view": "form", "$.to": "a", "$.copies": "7", "$.note": "", "$": "{}"},
        {"view": "form", "$.to": "a", "$.copies": "1e3", "$.note": "", "$.to[]": "0"},
        {"view": "json"},
        {"view": "json", "json": "{}"},
    ]
    for given in some_of("wrong fields", cases):
        answer = client.post(f"{approval.get_absolute_url()}decision/", {**right, **given})
        assert refused(answer, 409, 422), given
    approval.refresh_from_db()
    assert approval.is_open
    assert not Decision.objects.exists()
    assert not posted


@pytest.mark.once  # it is refused before any row is asked for
def test_a_body_that_is_no_form_is_refused(client: Client, run: Run) -> None:
    approval = Approval.objects.get(run=run)
    for body, kind in (
        ("verdict=approve&revision=1" + "&a=b" * 2_000, FORM),
        ("verdict=approve&revision=1&json=" + "x" * 10_000_000, FORM),
        (b"verdict=approve&revision=%FF&reason=\xff\xfe", FORM),
        ('{"verdict": "approve", "revision": 1}', "application/json"),
        ("--x\r\nnonsense", "multipart/form-data; boundary=x"),
        ("--x\r\nnonsense", "multipart/form-data"),
        ("verdict=approve", "text/plain"),
        ("", ""),
        ("verdict=approve&revision=1", "application/x-www-form-urlencoded; charset=nonsense"),
    ):
        for what in ("decision", "draft", "comments", "undo", "claim"):
            headers = {"x-requested-with": "fetch"} if what == "draft" else {}
            at = f"{approval.get_absolute_url()}{what}/"
            answer = client.generic("POST", at, body, kind, headers=headers)
            expected = (
                {200, 302, 400, 403, 409, 415, 422}
                if what in ("draft", "claim")
                else {400, 403, 409, 415, 422}
            )
            assert answer.status_code in expected, (str(body)[:60], kind, what, answer.status_code)
        send_fields(client, approval, "claim", release="1")
    approval.refresh_from_db()
    assert approval.is_open
    assert not Decision.objects.exists()


def test_rows_of_lists_and_drafts_are_anything(client: Client) -> None:
    approval = ask({"to": ["a", "b"], "deep": {"list": [{"x": 1}]}})
    entries = form_of(client, approval)
    for name in ("add", "remove"):
        for where in (
            "",
            "$",
            "$.to",
            "$.to[0]",
            "$.to[999]",
            "$.nothing",
            "[",
            "]",
            "\x00",
            "x" * 9_999,
            "$.deep.list[0]",
        ):
            given = entries.copy()
            given[name] = where
            assert send(client, approval, given, "draft").status_code == 200, (name, where)
    flooded = entries.copy()
    flooded.setlist("$.to[]", [f"n{number}" for number in range(900)])
    assert send(client, approval, flooded, "draft").status_code == 200
    flooded["verdict"] = "approve"
    refused(send(client, approval, flooded))
    assert answer_of(approval) is None


def test_a_large_payload_can_be_approved_as_it_is_and_a_larger_edit_is_refused(
    client: Client, ada: Any
) -> None:
    approval = ask({"text": "漢" * 380_000})
    entries = form_of(client, approval)
    entries["verdict"] = "approve"
    answer = send(client, approval, entries)
    assert answer.status_code == 302
    entry = LedgerEntry.objects.get(pk=approval.entry_id)
    assert entry.result_value()["payload"] == {"text": "漢" * 380_000}
    other = ask({"text": "short \ud800", "\ud800": 1})
    refused(
        send_fields(client, other, "decision", verdict="approve", revision="1", view="json", json="{}"), 422
    )
    with pytest.raises(Invalid, match="bytes"):
        other.decide(by=ada, verdict="edit", payload={"text": "x" * 9_000_000, "\ud800": 1})
    assert Approval.objects.get(pk=other.pk).is_open


# -- once, in time, by a person -----------------------------------------------------------------------------


def test_the_same_operation_says_the_same_thing_or_is_refused(client: Client, run: Run, bob: Any) -> None:
    approval = Approval.objects.get(run=run)
    entries = form_of(client, approval)
    entries["verdict"] = "approve"
    assert [send(client, approval, entries).status_code for _time in range(3)] == [302, 302, 302]
    entries["$.to"] = "eve@example.com"
    answer = send(client, approval, entries)
    assert answer.status_code == 409
    assert "used before" in answer.content.decode()
    assert send(as_person(bob), approval, entries).status_code == 409
    other = ask({"to": "x"})
    stolen = form_of(client, other)
    stolen["operation_id"], stolen["verdict"] = entries["operation_id"], "approve"
    assert send(client, other, stolen).status_code == 409
    assert Decision.objects.count() == 1
    assert Approval.objects.get(pk=other.pk).is_open


def test_what_has_moved_on_cannot_be_decided(client: Client, ada: Any, olga: Any) -> None:
    """After a cancellation, a deadline, a decision: 409 in words, with the attempt in the trail."""
    for moved in ("cancelled", "expired", "late", "decided", "stale"):
        run = waiting_letter()
        approval = Approval.objects.get(run=run)
        entries = form_of(client, approval)
        entries["verdict"] = "approve"
        if moved == "cancelled":
            run.cancel("user olga", "not needed")
        elif moved == "decided":
            approval.decide(by=ada, verdict="reject", reason="no")
        elif moved == "stale":
            approval.claim(by=ada)
        else:
            pass_time(3_601)
            if moved == "expired":
                drive(run)
        answer = send(client, approval, entries)
        assert answer.status_code == 409, moved
        assert answer.context["page"].trouble.message, moved
        assert (
            Activity.objects.filter(approval=approval, kind__in=("late", "refused"), by=ada).count() == 1
        ), moved
        undone = client.post(f"{approval.get_absolute_url()}undo/")
        assert undone.status_code == (302 if moved == "decided" else 409), moved
    assert posted == []


def test_who_is_switched_off_or_nobody_decides_nothing(run: Run, ada: Any, client: Client) -> None:
    approval = Approval.objects.get(run=run)
    entries = form_of(client, approval)
    entries["verdict"] = "approve"
    ada.is_active = False
    ada.save()
    assert send(client, approval, entries)["Location"].startswith("/login/")
    with pytest.raises(NotAllowed, match="switched off"):
        approval.decide(by=ada, verdict="approve")
    for nobody in (None, "ada", 1):
        with pytest.raises(NotAllowed):
            approval.decide(by=nobody, verdict="approve")
    assert unmoved(run)


def test_nothing_is_decided_twice_by_undoing_and_deciding_in_a_circle(client: Client, run: Run) -> None:
    """A16: each change has one row, and the run gets one answer."""
    approval = Approval.objects.get(run=run)
    for _round in range(3):
        entries = form_of(client, approval)
        entries["verdict"] = "approve"
        assert send(client, approval, entries).status_code == 302
        assert client.post(f"{approval.get_absolute_url()}undo/").status_code == 302
        assert client.post(f"{approval.get_absolute_url()}undo/").status_code == 409
    pass_time(20)
    assert drive(run) is None
    entries = form_of(client, approval)
    entries["verdict"] = "approve"
    send(client, approval, entries)
    pass_time(20)
    drive(run)
    assert len(posted) == 1
    with pytest.raises(Conflict):
        approval.undo(by=Decision.objects.last().by)
    approval.refresh_from_db()
    rows = [
        *approval.decisions.values_list("seq", flat=True),
        *approval.activities.values_list("seq", flat=True),
    ]
    assert sorted(rows) == list(range(1, approval.length + 1)) == list(range(1, 9))


def test_a_deadline_is_kept_to_the_moment(client: Client) -> None:
    """A decision that comes at the deadline is late, though no worker has looked."""
    approval = ask({"n": 1}, due=timedelta(seconds=100))
    entries = form_of(client, approval)
    entries["verdict"] = "approve"
    pass_time(100.5)
    assert send(client, approval, entries).status_code == 409
    assert Approval.objects.get(pk=approval.pk).is_open
