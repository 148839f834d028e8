"""The promises of approvals as a person meets them: over the pages, from the button to what the run then did."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.test import Client

from approvals.bulk import Pick
from approvals.forms.values import same
from approvals.models import Activity, Approval, Decision
from runs import start
from runs.core import codec
from runs.models import LedgerEntry, Run
from tests.amounts import THOROUGH, some_of
from tests.approvals.browser_post import posted_by
from tests.approvals.cases import answer_of, ask, told
from tests.approvals.pages import as_person, press
from tests.runs.driving import drive, killed_at, pass_lease, pass_time
from tests.security.letters import posted, waiting_letter
from tests.security.test_routes import FORM, RULES, unmoved

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("letters_known", "alone")]

SCANNERS = (
    "Mozilla/5.0 (compatible; Microsoft Office SafeLinks)",
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "Mimecast-URL-Protect",
    "Barracuda Sentinel (EE)",
    "GoogleImageProxy",
)


@pytest.fixture
def client(ada: Any) -> Client:
    return as_person(ada)


def test_after_a_rejection_no_kill_brings_the_effect_back(client: Client, run: Run) -> None:
    """A1: once before the node saw it, and once when it was about to commit.

    Without the page, and on both databases: tests/approvals/test_runs_go_on.py.
    """
    approval = Approval.objects.get(run=run)
    press(client, approval, "reject", reason="Wrong address.")
    pass_time(10)
    killed_at(run, "node")
    killed_at(run, "commit complete")
    for _time in range(5):
        drive(run)
        pass_lease()
    assert run.status == "completed"
    assert run.state_at()["rejected"] == ["Wrong address.", "ada"]
    assert not LedgerEntry.objects.filter(run=run, kind="effect").exists()
    [decision] = Decision.objects.all()
    assert (decision.verdict, decision.by.username, decision.reason) == ("reject", "ada", "Wrong address.")
    assert told(approval) == ["opened", "reject by ada"]
    assert posted == []


def links_of(client: Client, *paths: str) -> set[str]:
    """Every address of this site that stands on these pages."""
    found = set(paths)
    for path in paths:
        text = client.get(path).content.decode()
        for link in re.findall(r'(?:href|action|data-live-url)="([^"#]+)', text):
            if link.startswith(("/", "?")) and not link.startswith("/static/"):
                found.add(html.unescape(link if link.startswith("/") else path + link))
    return found


@pytest.mark.once  # they only read
def test_following_links_decides_nothing_and_spends_nothing(
    client: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A2: GET and HEAD of every link and form on our pages, fifty times, by scanners signed in or not."""
    monkeypatch.undo()  # of the lists, too
    approval = Approval.objects.get(run=run)
    links = links_of(client, "/", approval.get_absolute_url(), f"/runs/{run.pk}/", "/runs/")
    links |= {
        f"{approval.get_absolute_url()}{what}/?verdict=approve" for what in ("decision", "undo", "claim")
    }
    assert f"{approval.get_absolute_url()}decision/" in " ".join(links)
    asked = sorted(link for link in links if str(approval.pk) in link)
    before = client.get(approval.get_absolute_url()).content.decode()
    links -= {"/logout/"}
    for number in (0, *some_of("scanners", range(1, 50), 1 / 6)):
        visitor = Client() if number % 25 else client
        agent = {"user-agent": SCANNERS[number % len(SCANNERS)]}
        for link in {*asked, *sorted(links)[number % 10 :: 10]}:
            for ask_for in (visitor.get, visitor.head):
                assert ask_for(link, headers=agent).status_code in (200, 302, 404, 405), link
    assert unmoved(run)
    after = client.get(approval.get_absolute_url()).content.decode()
    assert before.count("<form") == after.count("<form")
    assert press(client, approval).status_code == 302


def test_without_a_person_there_is_no_decision(run: Run, settings: Any) -> None:
    """A3: two hundred requests, without a sign-in, with made-up sessions, and with the token of a machine."""
    settings.DURABLEWEB = {**settings.DURABLEWEB, "tick_token": "machine-token"}
    approval = Approval.objects.get(run=run)
    said = {"verdict": "approve", "revision": "1", "operation_id": "x"}
    proofs = (
        {},
        {"authorization": "Bearer machine-token"},
        {"authorization": "Token agent"},
        {"authorization": "Basic YWRhOmFkYQ=="},
        {"x-forwarded-user": "ada", "remote-user": "ada"},
        {"cookie": "sessionid=ada; csrftoken=x"},
        {"x-real-ip": "127.0.0.1", "x-requested-with": "fetch", "hx-request": "true"},
        {"x-http-method-override": "POST"},
    )
    for number in range(200 if THOROUGH else len(proofs) * 5):  # each address with each of them
        what = ("decision", "undo", "claim", "comments", "draft")[number % 5]
        answer = Client().post(
            f"{approval.get_absolute_url()}{what}/", said, headers=proofs[number % len(proofs)]
        )
        assert answer.status_code == 302
        assert answer["Location"].startswith("/login/")
    assert unmoved(run)
    assert not Decision.objects.exists()


@pytest.mark.parametrize("role", ["by", "on_behalf_of"])
def test_nobody_decides_for_themselves_on_any_path(role: str, ada: Any, bob: Any) -> None:
    """A4: page, with another's form; many at once; command; and no taking over, though of the group that may.

    There is no decision over the API, by a link or in the admin.
    """
    run = start("letters", {}, **{role: ada})
    drive(run)
    approval = Approval.objects.get(run=run)
    mine, theirs = as_person(ada), as_person(bob)
    page = mine.get(approval.get_absolute_url()).content.decode()
    assert 'value="approve"' not in page and 'name="verdict"' not in page
    entries = posted_by(theirs.get(approval.get_absolute_url()).content.decode())
    for verdict in ("approve", "edit", "reject"):
        entries["verdict"], entries["reason"], entries["operation_id"] = verdict, "x", verdict
        answer = mine.post(f"{approval.get_absolute_url()}decision/", entries.urlencode(), content_type=FORM)
        assert answer.status_code == 403
        with pytest.raises(CommandError, match="four eyes"):
            given = {"payload": json.dumps(approval.payload | {"copies": 8})} if verdict == "edit" else {}
            call_command("decide", str(approval.pk), verdict=verdict, by="ada", reason="x", **given)
    bulk = f"/inbox/bulk/?pick={Pick(approval.pk, approval.revision)}"
    entries = posted_by(theirs.get(bulk).content.decode(), form_id="bulk")
    entries["verdict"] = "approve"
    said = mine.post("/inbox/bulk/", entries.urlencode(), content_type=FORM).content.decode()
    assert "0 approved, 1 not" in said, said
    assert mine.post(f"{approval.get_absolute_url()}claim/").status_code == 403
    assert not Decision.objects.exists()
    press(theirs, approval)
    assert mine.post(f"{approval.get_absolute_url()}undo/").status_code == 403
    assert Decision.objects.get().by == bob


def test_the_page_shows_what_will_run_defaults_included(client: Client, run: Run) -> None:
    """A5: and the digest of what was approved is that of the effect."""
    approval = Approval.objects.get(run=run)
    page = client.get(approval.get_absolute_url()).content.decode()
    for shown in ("helen@example.com", "as agreed", "Post a letter.", f"letter:{run.pk}"):
        assert shown in page, shown
    press(client, approval)
    pass_time(10)
    drive(run)
    assert posted == [{"to": "helen@example.com", "copies": 7, "note": "as agreed"}]
    effect, question = (LedgerEntry.objects.get(run=run, kind=kind) for kind in ("effect", "interrupt"))
    decision = Decision.objects.get()
    assert (
        effect.request_digest
        == question.approved_digest
        == decision.payload_digest
        == approval.proposal_digest
    )
    assert effect.request == decision.payload == codec.dumps(posted[0])
    assert json.loads(decision.seen)["payload"] == posted[0]


SHAPES = [
    {"to": "helen", "copies": 7},
    {},
    [],
    ["a", ["b", []], {}],
    "a text",
    "",
    0,
    -7,
    7.0,
    2**70,
    True,
    None,
    {"": {"": [None]}},
    {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": [1, {"i": "deep"}]}}}}}}}},
    {"$.to": 1, "to[0]": 2, "a b": 3, "é.ß": 4, "'\"": 5},
    [{"n": number} for number in range(100)],
]


@pytest.mark.once  # a payload is text to either database
@pytest.mark.long_list
@pytest.mark.django_db
@pytest.mark.parametrize("payload", SHAPES, ids=lambda payload: json.dumps(payload)[:30])
def test_a_payload_of_any_shape_is_seen_approved_edited_rejected_and_answered(
    client: Client, ada: Any, payload: Any
) -> None:
    """A9: without a schema, over the page's own forms; types stay (A13). What was said is taken back for the next."""
    approval = ask(payload)
    html = client.get(approval.get_absolute_url()).content.decode()

    def said(verdict: str, **typed: str) -> Any:
        approval.refresh_from_db()
        typed |= {"revision": str(approval.revision), "operation_id": verdict}
        return press(client, approval, verdict.partition(" ")[0], html, **typed)

    def shown_and_taken_back() -> None:
        assert client.get(approval.get_absolute_url()).status_code == 200
        approval.undo(ada)

    assert said("approve").status_code == 302
    assert same(answer_of(approval)["payload"], payload)
    shown_and_taken_back()
    other = (
        {**payload, **dict.fromkeys(payload, [1, 2.0, None])}
        if isinstance(payload, dict)
        else ["other", 1, 2.0, None]
    )
    shape = {"view": "json", "json": json.dumps(other)}
    answer = said("approve otherwise", **shape)
    if answer.status_code == 302:
        assert same(answer_of(approval)["payload"], other)
        outcome = "approved" if same(payload, other) else "approved_with_edits"
        assert answer_of(approval)["outcome"] == outcome
        shown_and_taken_back()
    else:  # an object within must stay one
        assert answer.status_code == 422
        assert "must stay an object" in answer.context["page"].trouble.message
    assert said("reject", reason="no").status_code == 302
    assert answer_of(approval)["outcome"] == "rejected"
    asked = ask(payload, verdicts=["respond"])
    mine = json.dumps({"mine": [7, 7.0]})
    assert press(client, asked, "respond", view="json", json=mine).status_code == 302
    assert same(answer_of(asked)["payload"], {"mine": [7, 7.0]})
    for decided in (approval, asked):
        assert client.get(decided.get_absolute_url()).status_code == 200


SCHEMAS = [
    (
        {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        {"n": 7},
        {"n": 8},
        {"n": "x"},
    ),
    ({"type": "array", "items": {"type": "string"}}, ["a"], ["a", "b"], [1]),
    ({"type": "string", "maxLength": 5}, "short", "other", "too long for it"),
    ({"type": "number", "maximum": 9}, 7, 8.5, 10),
    ({"type": ["null", "string"]}, None, "x", 7),
    ({"enum": ["a", 1, None]}, "a", 1, "b"),
    ({"anyOf": [{"type": "integer"}, {"type": "object", "required": ["x"]}]}, 7, {"x": 1}, {"y": 1}),
    ({}, {"a": 1}, {"a": 2}, {"b": 2}),
]


@pytest.mark.parametrize(
    ("schema", "payload", "fits", "wrong"), SCHEMAS, ids=lambda value: json.dumps(value)[:30]
)
def test_with_a_schema_what_fits_is_taken_and_what_does_not_is_refused_and_stays_open(
    client: Client, schema: Any, payload: Any, fits: Any, wrong: Any
) -> None:
    """A9"""
    approval = ask(payload, schema=schema)
    html = client.get(approval.get_absolute_url()).content.decode()
    answer = press(client, approval, html=html, view="json", json=json.dumps(wrong))
    assert answer.status_code == 422
    assert answer.context["page"].trouble.fields
    assert told(approval) == ["opened"]
    assert press(client, approval, html=html, view="json", json=json.dumps(fits)).status_code == 302
    assert same(answer_of(approval)["payload"], fits)


def test_a_reason_reaches_the_node_byte_for_byte_and_an_edit_keeps_its_types(client: Client) -> None:
    """A13: from the browser's form into the tool, and into the state."""
    reason = "  Corvid’s price\n\nis old — 38 €\t\u202enot\u202c ‮ 😀 a\x7fb "
    run = waiting_letter()
    press(client, Approval.objects.get(run=run), "reject", reason=reason.replace("\n", "\r\n"))
    pass_time(10)
    drive(run)
    assert run.state_at()["rejected"] == [reason, "ada"]
    run = waiting_letter()
    press(client, Approval.objects.get(run=run), **{"$.copies": "8", "$.note": "7"})
    pass_time(10)
    drive(run)
    assert posted == [{"to": "helen@example.com", "copies": 8, "note": "7"}]
    assert type(posted[0]["copies"]) is int


def test_each_press_leaves_exactly_one_row_in_the_trail(client: Client, bob: Any) -> None:
    """A16: and a press that is refused for what it says leaves none."""
    approval = ask({"n": 1}, quorum=2)
    other = as_person(bob)

    def leaves(rows: int, answer: Any) -> None:
        nonlocal before
        now = Decision.objects.count() + Activity.objects.count()
        assert (now - before, answer.status_code in (302, 200)) == (rows, answer.status_code < 400)
        before = now

    before = 1
    at = approval.get_absolute_url()
    leaves(1, client.post(f"{at}claim/"))
    leaves(0, client.post(f"{at}claim/"))
    leaves(1, client.post(f"{at}comments/", {"text": "Fine."}))
    leaves(0, client.post(f"{at}comments/", {"text": "  "}))
    leaves(0, press(client, approval, view="json", json="{}"))
    leaves(1, press(client, approval, view="json", json='{"n": 1}'))
    leaves(1, client.post(f"{at}undo/"))
    leaves(1, press(client, approval, view="json", json='{"n": 2}'))
    leaves(0, client.post(f"{at}claim/", {"release": "1"}))  # the claim ended with the vote
    leaves(1, press(other, approval))
    leaves(1, other.post(f"{at}undo/"))
    leaves(0, client.get(at))
    leaves(1, press(other, approval, "reject", reason="No."))
    leaves(0, other.post(f"{at}draft/", {"view": "json", "json": "{}"}))
    approval.refresh_from_db()
    assert approval.length == before == 9


def test_a_change_and_its_row_stand_or_fall_together(
    client: Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A16: the verb writes the row, in the transaction of the change.

    Killed, or failed by the database, at each of its statements, on both databases: tests/runs/test_faults.py, where
    approvals' verbs are a family, and the trail is looked through afterwards.
    """
    approval = Approval.objects.get(run=run)
    client.raise_request_exception = False

    def broken(*_given: Any, **_more: Any) -> None:
        raise OperationalError("disk full")

    for victim, verb in ((LedgerEntry, "answer"), (Approval, "change"), (Approval, "write_votes")):
        with monkeypatch.context() as patched:
            patched.setattr(victim, verb, broken)
            patched.setattr("runs.engine.durably.passing", lambda _error: False)
            assert press(client, approval).status_code == 500, verb
        assert unmoved(run), verb
        assert not Decision.objects.exists(), verb
    assert press(client, approval).status_code == 302
    monkeypatch.setattr(LedgerEntry, "reopen", broken)
    monkeypatch.setattr("runs.engine.durably.passing", lambda _error: False)
    assert client.post(f"{approval.get_absolute_url()}undo/").status_code == 500
    assert told(approval) == ["opened", "approve by ada"]
    assert not Approval.objects.get(pk=approval.pk).is_open


def test_every_route_that_decides_is_known_here() -> None:
    """Another path to a decision needs its own lines in these tests."""
    assert [route for route in RULES if "decision" in route] == ["approvals/<uuid:pk>/decision/"]
