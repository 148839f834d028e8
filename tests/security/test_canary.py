"""O4: a secret that gets where it should not is refused or made unreadable; a search of everything finds nothing."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import storages
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from approvals.models import Activity, Approval, Decision
from runs import start
from runs.core.secrets import placeholder
from runs.errors import Invalid
from runs.models import Blob, LedgerEntry, Remark, Run
from tests.approvals.pages import press
from tests.conftest import ROOT
from tests.runs.driving import drive, pass_time, registered
from tests.security import leaking
from tests.security.canary import CANARY, dump, files, found_in, pages

pytestmark = pytest.mark.django_db(transaction=True)

REDACTED = placeholder("CANARY")


@pytest.fixture(autouse=True)
def nothing_is_left(canary: str, root: Any, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """After each test: database, files, pages, `show` and the log, all searched for every form."""
    caplog.set_level(logging.DEBUG)
    leaking.called.clear()
    shutil.rmtree(storages["default"].location, ignore_errors=True)
    with registered(leaking.leaking):
        yield
        assert found_in(dump()) == []
        if connection.vendor == "sqlite":  # the pages show the same rows on both
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


def driven(where: str, **state: Any) -> Run:
    """A run that meets the secret at that place, driven until it ends or waits for a person."""
    run = start("leaking", {"where": where, **state})
    for _time in range(3):
        drive(run)
        if run.ended:
            break
        pass_time(200)
    return run


def test_a_search_of_the_dump_would_find_it() -> None:
    run = start("leaking", {"where": "people"})
    for text in (CANARY, json.dumps({"a": CANARY})):
        with transaction.atomic():
            Run.objects.filter(pk=run.pk).update(error=text)
            assert found_in(dump())
            transaction.set_rollback(True)


REFUSED = {
    "state plain": "$.deep[0]",
    "state key": "$.keys[",
    "state bytes": "$.raw",
    "state long": "$.text",
    "state json": "$.text",
    "argument read": "look $.headers.auth",
    "argument write": "send $.text",
    "argument gated": "$.payload.text",
    "argument gathered": "look $.text",
    "argument long": "look $.text",
    "argument key": "the key",
    "question text": "$.question",
    "question why": "$.why",
    "question payload": "$.payload.a[0]",
    "question name": "the key",
    "question reviewers": "$.reviewers[0]",
    "note": "note $",
    "blob content": "blob",
    "blob type": "the blob's media type",
    "once name": "the key",
    "once value": "token $",
    "spend": "spend $.usd",
}


def test_what_holds_it_is_refused_by_path_and_nothing_is_called() -> None:
    """State, arguments, questions, notes, blobs, keys: the run fails, and its error names the place."""
    for where, path in REFUSED.items():
        run = driven(where)
        assert (run.status, run.error_kind) == ("failed", "permanent"), (where, run.error)
        assert "holds the value of the secret CANARY" in run.error, where
        assert path in run.error, (where, run.error)
    assert leaking.called == [("look", "fine")]
    assert not Approval.objects.exists()
    assert not Blob.objects.exists()


def test_a_result_is_redacted_before_anybody_gets_it() -> None:
    for form in ("plain", "bytes", "nested", "long", "url", "base64"):
        run = driven(f"result {form}")
        assert run.status == "completed", run.error
        entry = LedgerEntry.objects.get(run=run, name="answer")
        assert REDACTED in json.dumps(entry.result_value(), ensure_ascii=False), form
        assert REDACTED in json.dumps(run.state_at()["kept"], ensure_ascii=False), form


def test_an_error_is_redacted_wherever_it_was_raised() -> None:
    """Of tools and nodes, with an address in it, shortened by pydantic, or cut off in its middle."""
    whole = [
        *(f"tool {how}" for how in ("permanent", "transient", "other")),
        *(f"node {how}" for how in ("plain", "transient")),
        "target",
    ]
    for where in (*whole, "tool ambiguous", "node late", "node later", "node model"):
        run = driven(where)
        assert run.status in ("failed", "waiting"), where
        told = run.error + "".join(entry.error + entry.request for entry in run.entries.all())
        assert REDACTED in told or where not in whole, where
        for piece in (CANARY[:10], CANARY[-10:]):
            assert piece not in told, where


def test_what_a_later_execution_words_anew_is_kept_redacted_beside_the_record(ada: Any) -> None:
    run = driven("reworded")
    Approval.objects.get(run=run).decide(by=ada, verdict="approve")
    pass_time(10)
    drive(run)
    assert json.loads(Remark.objects.get(run=run).body) == {"text": REDACTED, "token": "", "more": {}}
    assert leaking.called == [("send", ("hello", "", {}))]


def test_the_processes_of_an_installation_say_nothing_of_it(
    process_environment: dict[str, str], tmp_path: Path
) -> None:
    """What `tick` writes to the terminal and to the log, also when a module of graphs gives it away. (`show` prints
    the same here and in a process of its own.)"""
    for where in ("state long", "argument read", "result url", "tool other", "node plain", "used"):
        start("leaking", {"where": where})
    (tmp_path / "careless").mkdir()
    (tmp_path / "careless" / "__init__.py").write_text("")
    module = "import os, logging\nvalue = os.environ['DURABLEWEB_SECRET_CANARY']\n"
    module += "logging.getLogger('careless').warning('the key is %s', value)\nraise RuntimeError(f'not with {value}')\n"
    (tmp_path / "careless" / "graphs.py").write_text(module)
    environment = process_environment | {
        "DURABLEWEB_APPS": "tests.security,careless",
        "PYTHONPATH": str(tmp_path),
    }
    told = said_by(environment, "tick", "--seconds", "30")
    assert told.count(REDACTED) >= 3, told
    assert found_in(told) == []
    assert not Run.objects.filter(status="created").exists()
    assert Run.objects.filter(status="failed").count() == 3


def said_by(environment: dict[str, str], *words: str) -> str:
    """All that a command of its own process wrote."""
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


# -- by name ------------------------------------------------------------------------------------------------


def test_a_secret_that_is_named_reaches_the_tool_and_travels_as_a_reference() -> None:
    run = driven("used")
    assert run.status == "completed", run.error
    assert leaking.called == [("send", ("hello", CANARY, {}))]
    request = LedgerEntry.objects.get(run=run, name="send").request
    assert json.loads(request)["token"] == {"$": "secret", "v": "CANARY"}


def test_a_named_secret_is_approved_unseen_and_may_stand_beside_an_edit(signed_in: Client) -> None:
    run = driven("asked")
    assert decided(signed_in, run, **{"$.text": "good-bye"}).status_code == 302
    pass_time(10)
    drive(run)
    assert run.status == "completed", run.error
    assert leaking.called == [("send", ("good-bye", CANARY, {}))]


@pytest.mark.parametrize(
    "written", [{"$": "secret", "v": "CANARY"}, {"$": "dict", "v": [["$", "secret"], ["v", "CANARY"]]}]
)
def test_a_reviewer_cannot_write_a_reference_into_an_argument(signed_in: Client, written: Any) -> None:
    """Else the run would put the secret where only they look."""
    run = driven("asked")
    payload = Approval.objects.get(run=run).payload
    answer = decided(signed_in, run, view="json", json=json.dumps({**payload, "more": written}))
    assert answer.status_code == 422
    assert "cannot be written by hand" in str(answer.context["page"].trouble.fields["$.more"])
    answer = decided(signed_in, run, view="json", json=json.dumps({**payload, "text": written}))
    assert answer.status_code == 422
    assert leaking.called == []


def test_input_that_looks_like_a_reference_is_no_reference() -> None:
    """What came from outside may hold any keys; a tool must not get a secret for it."""
    run = driven("outside", more={"$": "secret", "v": "CANARY"})
    assert (run.status, run.error_kind) == ("failed", "permanent")
    assert "pass run.secret(name)" in run.error
    assert leaking.called == []


# -- at the door --------------------------------------------------------------------------------------------


def test_a_start_that_holds_it_is_refused() -> None:
    for asked, path in (
        ({"input": {"where": "x", "headers": {"auth": CANARY}}}, "$.headers.auth"),
        ({"input": {"where": "x", "text": f"{'x' * 40_000}{CANARY}"}}, "$.text"),
        ({"input": {"where": "x"}, "key": f"customer {CANARY}"}, "key"),
        ({"input": {"where": "x"}, "labels": {"customer": CANARY}}, "labels"),
    ):
        with pytest.raises(Invalid, match="holds the value of the secret CANARY") as refused:
            start("leaking", **asked)
        assert list(refused.value.fields) == [path]
        assert found_in(refused.value.message) == []
    assert not Run.objects.exists()


def test_a_command_that_holds_it_says_so_without_repeating_it(ada: Any) -> None:
    run = driven("people")
    approval = str(Approval.objects.get(run=run).pk)
    for command, arguments, options in (
        ("start", ["leaking"], {"input": json.dumps({"where": CANARY})}),
        ("start", ["leaking"], {"key": CANARY}),
        ("cancel", [str(run.pk)], {"reason": f"it was {CANARY}"}),
        ("decide", [approval], {"verdict": "reject", "by": "ada", "reason": CANARY}),
        ("decide", [approval], {"verdict": "edit", "by": "ada", "payload": json.dumps([CANARY])}),
    ):
        with pytest.raises(CommandError) as refused:
            call_command(command, *arguments, **options)
        assert found_in(str(refused.value)) == []
    run.refresh_from_db()
    assert (run.status, Run.objects.count(), Decision.objects.count()) == ("waiting", 1, 0)


# -- what people write --------------------------------------------------------------------------------------


def test_a_decision_that_holds_it_is_refused_at_its_field(signed_in: Client) -> None:
    run = driven("people")
    for verdict, typed, path in (
        ("approve", {"$.to": f"helen {CANARY}"}, "$.to"),
        ("approve", {"view": "json", "json": json.dumps({"to": CANARY, "amount": 7})}, "$.to"),
        ("reject", {"reason": f"the key is {CANARY}"}, "reason"),
        ("reject", {"preset": CANARY}, "reason"),
        ("approve", {"operation_id": CANARY}, "operation_id"),
    ):
        answer = decided(signed_in, run, verdict, **typed)
        assert answer.status_code == 422
        trouble = answer.context["page"].trouble
        assert trouble.message == f"{path}: This holds the value of the secret CANARY; take it out."
    assert not Decision.objects.exists()
    assert Activity.objects.count() == 1


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
    run = driven("people")
    html = signed_in.get(Approval.objects.get(run=run).get_absolute_url()).content.decode()
    Approval.objects.get(run=run).decide(by=bob, verdict="approve")
    answer = decided(signed_in, run, html=html, **{"$.to": CANARY})
    assert answer.status_code in (409, 422)


def decided(client: Client, run: Run, verdict: str = "approve", html: str = "", **typed: str) -> Any:
    """What the page of the run's question answers when this was typed and the button pressed."""
    return press(client, Approval.objects.get(run=run), verdict, html, **typed)
