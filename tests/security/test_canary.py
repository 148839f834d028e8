"""O4: a secret that gets where it should not is refused or made unreadable, and a search of everything finds nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from approvals.models import Activity, Approval, Decision
from runs import registry, start
from runs.errors import Invalid
from runs.models import Blob, LedgerEntry, Remark, Run
from tests.approvals.browser_post import posted_by
from tests.runs.driving import drive, pass_time, registered
from tests.security import leaking
from tests.security.canary import CANARY, dump, files, found_in, pages

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_is_left(canary: str, root: Any, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """After each test: database, files, pages, `show` and the log, all searched for every form."""
    caplog.set_level(logging.DEBUG)
    leaking.called.clear()
    with registered(leaking.leaking):
        yield
        assert found_in(dump()) == []
        client = Client()
        client.force_login(root)
        for address, text in pages(client):
            assert found_in(text) == [], address
        for run in Run.objects.all():
            for options in ({"json": True}, {}):
                shown = StringIO()
                call_command("show", str(run.pk), stdout=shown, **options)
                assert found_in(shown.getvalue()) == []
        assert found_in(caplog.text) == []
        for name, content in files():
            assert found_in(content) == [], name


@pytest.fixture
def signed_in(ada: Any) -> Client:
    client = Client()
    client.force_login(ada)
    return client


def driven(where: str) -> Run:
    run = start("leaking", {"where": where})
    for _time in range(4):
        drive(run)
        pass_time(200)
    return run


def test_a_search_of_the_dump_would_find_it() -> None:
    """The search itself: what stands in a column, also as bytes of JSON in base64, is found."""
    run = start("leaking", {"where": "people"})
    for text in (CANARY, json.dumps({"a": CANARY})):
        Run.objects.filter(pk=run.pk).update(error=text)
        assert found_in(dump())
    Run.objects.filter(pk=run.pk).update(error="")


@pytest.mark.parametrize(
    ("where", "path"),
    [
        ("state plain", "$.deep[0]"),
        ("state key", "$.keys["),
        ("state bytes", "$.raw"),
        ("state long", "$.text"),
        ("state json", "$.text"),
        ("argument read", "$.headers.auth"),
        ("argument write", "$.text"),
        ("argument gated", "$.text"),
        ("argument gathered", "$.text"),
        ("argument long", "$.text"),
        ("argument key", "key"),
        ("question text", "$.question"),
        ("question why", "$.why"),
        ("question payload", "$.payload.a[0]"),
        ("question name", "key"),
        ("question reviewers", "$.reviewers[0]"),
        ("note", "note"),
        ("blob content", "blob"),
        ("blob type", "media type"),
        ("once name", "key"),
    ],
)
def test_what_holds_it_is_refused_by_path_and_nothing_is_called(where: str, path: str) -> None:
    run = driven(where)
    assert (run.status, run.error_kind) == ("failed", "permanent"), run.error
    assert "holds the value of the secret CANARY" in run.error
    assert path in run.error
    assert leaking.called in ([], [("look", "fine")])
    assert not Approval.objects.filter(run=run).exists()
    assert not Blob.objects.exists()


@pytest.mark.parametrize("form", ["plain", "bytes", "nested", "long", "url", "base64"])
def test_a_result_is_redacted_before_anybody_gets_it(form: str) -> None:
    run = driven(f"result {form}")
    assert run.status == "completed", run.error
    entry = LedgerEntry.objects.get(run=run, name="answer")
    assert "«secret:CANARY»" in json.dumps(entry.result_value(), ensure_ascii=False, default=str)


@pytest.mark.parametrize("where", ["once value", "spend"])
def test_a_recorded_value_is_redacted(where: str) -> None:
    assert driven(where).status == "completed"


@pytest.mark.parametrize(
    "where",
    [
        *(f"tool {how}" for how in ("permanent", "transient", "ambiguous", "other")),
        *(f"node {how}" for how in ("plain", "transient", "late", "later", "model")),
        "target",
    ],
)
def test_an_error_is_redacted_wherever_it_was_raised(where: str) -> None:
    run = driven(where)
    assert run.status in ("failed", "waiting")
    entries = LedgerEntry.objects.filter(run=run)
    told = run.error + "".join(entry.error + entry.request for entry in entries)
    assert "«secret:CANARY»" in told or where in ("node late", "node later", "node model")
    for beginning in (CANARY[:10], CANARY[-10:]):  # neither is a piece of it left by a cut
        assert beginning not in told


def test_what_a_later_execution_words_anew_is_kept_redacted_beside_the_record(ada: Any) -> None:
    run = driven("reworded")
    Approval.objects.get(run=run).decide(by=ada, verdict="approve")
    pass_time(10)
    drive(run)
    assert Remark.objects.get(run=run).body == '{"text":"«secret:CANARY»","token":""}'
    assert leaking.called == [("send", ("hello", ""))]


def test_a_secret_that_is_named_reaches_the_tool_and_travels_as_a_reference() -> None:
    run = driven("used")
    assert run.status == "completed", run.error
    assert leaking.called == [("send", ("hello", CANARY))]
    request = LedgerEntry.objects.get(run=run, name="send").request
    assert json.loads(request) == {"text": "hello", "token": {"$": "secret", "name": "CANARY"}}


def test_a_named_secret_is_approved_unseen_and_may_stand_beside_an_edit(signed_in: Client) -> None:
    run = driven("asked")
    approval = Approval.objects.get(run=run)
    entries = posted_by(signed_in.get(approval.get_absolute_url()).content.decode())
    entries["$.text"], entries["verdict"] = "good-bye", "approve"
    answer = signed_in.post(reverse("approvals:decision", args=[approval.pk]), entries.dict())
    assert answer.status_code == 302, answer.context["page"].trouble
    pass_time(10)
    drive(run)
    assert run.status == "completed", run.error
    assert leaking.called == [("send", ("good-bye", CANARY))]


# -- at the door --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"input": {"where": "x", "headers": {"auth": CANARY}}}, "$.headers.auth"),
        ({"input": {"where": "x", "text": f"{'x' * 40_000}{CANARY}"}}, "$.text"),
        ({"input": {"where": "x"}, "key": f"customer {CANARY}"}, "key"),
        ({"input": {"where": "x"}, "labels": {"customer": CANARY}}, "labels"),
    ],
)
def test_a_start_that_holds_it_is_refused(asked: dict[str, Any], path: str) -> None:
    with pytest.raises(Invalid, match="holds? the value of the secret CANARY") as refused:
        start("leaking", **asked)
    assert path in refused.value.message
    assert found_in(refused.value.message) == []
    assert not Run.objects.exists()


@pytest.mark.parametrize("command", ["start", "cancel", "decide"])
def test_a_command_that_holds_it_says_so_without_repeating_it(command: str, ada: Any) -> None:
    run = driven("people")
    approval = str(Approval.objects.get(run=run).pk)
    said = {
        "start": (["leaking"], {"input": json.dumps({"where": CANARY})}),
        "cancel": ([str(run.pk)], {"reason": f"it was {CANARY}"}),
        "decide": ([approval], {"verdict": "reject", "by": "ada", "reason": CANARY}),
    }[command]
    with pytest.raises(CommandError, match="holds the value of the secret CANARY") as refused:
        call_command(command, *said[0], **said[1])
    assert found_in(str(refused.value)) == []
    run.refresh_from_db()
    assert (run.status, Run.objects.count(), Decision.objects.count()) == ("waiting", 1, 0)


# -- what people write --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "typed", "path"),
    [
        ("approve", {"$.to": f"helen {CANARY}"}, "$.to"),
        ("approve", {"view": "json", "json": json.dumps({"to": CANARY, "amount": 7})}, "$.to"),
        ("reject", {"reason": f"the key is {CANARY}"}, "reason"),
        ("reject", {"preset": CANARY}, "reason"),
        ("approve", {"operation_id": "c4nary", "reason": CANARY}, "reason"),
    ],
)
def test_a_decision_that_holds_it_is_refused_at_its_field(
    signed_in: Client, verdict: str, typed: dict[str, str], path: str
) -> None:
    approval = Approval.objects.get(run=driven("people"))
    html = signed_in.get(approval.get_absolute_url()).content.decode()
    entries = posted_by(html, form_id="reject" if verdict == "reject" else "decision")
    for name, value in {**typed, "verdict": verdict}.items():
        entries[name] = value
    answer = signed_in.post(reverse("approvals:decision", args=[approval.pk]), entries.dict())
    assert answer.status_code == 422
    trouble = answer.context["page"].trouble
    assert "holds the value of the secret CANARY" in trouble.message
    assert path in trouble.message
    assert not Decision.objects.exists()
    assert Activity.objects.count() == 1


def test_an_operation_id_that_holds_it_is_refused(ada: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    approval = Approval.objects.get(run=driven("people"))
    with pytest.raises(Invalid, match="operation_id: .* secret CANARY"):
        approval.decide(by=ada, verdict="approve", operation_id=CANARY.replace("é", "é"))
    assert not Decision.objects.exists()


def test_a_comment_and_a_cancellation_that_hold_it_are_refused(signed_in: Client, olga: Any) -> None:
    run = driven("people")
    approval = Approval.objects.get(run=run)
    said = signed_in.post(
        reverse("approvals:comments", args=[approval.pk]), {"text": f"use {CANARY}, please"}
    )
    assert said.status_code == 422
    assert Activity.objects.count() == 1
    operator = Client()
    operator.force_login(olga)
    answer = operator.post(
        reverse("runs:cancellation", args=[run.pk]), {"reason": f"it was {CANARY}"}, follow=True
    )
    assert "holds the value of the secret CANARY" in answer.content.decode()
    assert found_in(answer.content) == []
    run.refresh_from_db()
    assert run.status == "waiting"


def test_a_refused_attempt_in_the_trail_does_not_repeat_it(signed_in: Client, bob: Any) -> None:
    """Who comes second is in the trail with what was refused, not with what they wrote."""
    approval = Approval.objects.get(run=driven("people"))
    entries = posted_by(signed_in.get(approval.get_absolute_url()).content.decode())
    approval.decide(by=bob, verdict="approve")
    entries["verdict"], entries["$.to"] = "approve", CANARY
    answer = signed_in.post(reverse("approvals:decision", args=[approval.pk]), entries.dict())
    assert answer.status_code in (409, 422)


def test_the_tools_of_the_graph_are_known() -> None:
    assert registry.get("leaking") is leaking.leaking
