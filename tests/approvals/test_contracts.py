"""LangChain's human-in-the-loop requests: what is offered, what is refused, and what exactly the run gets back."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from approvals.contracts import contract_of, sheet
from approvals.drafts import give_back
from approvals.models import Approval, Decision, KeptDraft
from runs.core.errors import Permanent
from runs.errors import Invalid
from tests.approvals.cases import answer_of, ask, told
from tests.approvals.langchain_requests import (
    BATCHED,
    BY_CALL,
    BY_CALL_ANSWERS,
    INBOX,
    PAY,
    REJECT_ONLY,
)
from tests.approvals.pages import as_person, page_of, press, url

APPROVED = {"type": "approve"}
REFUSED = {"type": "reject", "message": "Not /etc."}
EDITED = {"type": "edit", "edited_action": {"name": "pay", "args": {"to": "bob", "amount": 9}}}


def contract(payload: Any, schema: Any = None):
    return contract_of({"payload": payload, "schema": schema})


def by_call(schema: Any = BY_CALL_ANSWERS):
    return contract(BY_CALL | {"response_schema": schema})


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (contract(BATCHED), {"decisions": [APPROVED, REFUSED]}),
        (contract(BATCHED), {"decisions": [EDITED, {"type": "respond", "message": "It is empty."}]}),
        (by_call(), EDITED),
        (by_call(), {"type": "reject"}),
        (contract(BY_CALL, BY_CALL_ANSWERS), APPROVED),
        (by_call(REJECT_ONLY), REFUSED),
        (contract(INBOX), [{"type": "accept", "args": None}]),
        (contract(INBOX), [{"type": "response", "args": "Use -la."}]),
        (contract(INBOX[0]), [{"type": "ignore", "args": None}]),
        (
            contract(INBOX),
            [
                {
                    "type": "edit",
                    "args": {"action": "run_command", "args": {"command": "ls", "args": ["-l", "-a"]}},
                }
            ],
        ),
    ],
)
def test_a_good_answer_is_handed_on_as_it_is_and_a_sheet_says_the_same(asked, answer):
    assert asked.fitting(answer) == answer
    assert sheet.answer(asked, sheet.filled(asked, asked.listen(answer))) == answer


@pytest.mark.parametrize(
    ("asked", "answer", "path"),
    [
        (contract(BATCHED), {"decisions": [APPROVED]}, "$"),
        (contract(BATCHED), {"decisions": [APPROVED, REFUSED, REFUSED]}, "$"),
        (contract(BATCHED), [APPROVED, REFUSED], "$"),
        (contract(BATCHED), {"decisions": [APPROVED, APPROVED]}, "$.decisions[1].type"),
        (contract(BATCHED), {"decisions": [{"type": "allow"}, REFUSED]}, "$.decisions[0].type"),
        (contract(BATCHED), {"decisions": [{"type": []}, REFUSED]}, "$.decisions[0].type"),
        (by_call(), {"type": {}}, "$.type"),
        (contract(BATCHED), {"decisions": [APPROVED | {"note": "x"}, REFUSED]}, "$.decisions[0]"),
        (contract(BATCHED), {"decisions": [APPROVED, {"type": "respond"}]}, "$.decisions[1].message"),
        (
            contract(BATCHED),
            {"decisions": [{"type": "edit", "edited_action": {"name": "wipe", "args": PAY}}, REFUSED]},
            "$.decisions[0].edited_action.name",
        ),
        (
            contract(BATCHED),
            {
                "decisions": [
                    {"type": "edit", "edited_action": {"name": "pay", "args": PAY | {"iban": "1"}}},
                    REFUSED,
                ]
            },
            "$.decisions[0].edited_action.args.iban",
        ),
        (
            by_call(),
            {"type": "edit", "edited_action": {"name": "pay", "args": PAY | {"amount": "9"}}},
            "$.edited_action.args.amount",
        ),
        (
            by_call(),
            {"type": "edit", "edited_action": {"name": "pay", "args": {"to": "bob"}}},
            "$.edited_action.args.amount",
        ),
        (by_call(), {"type": "edit", "edited_action": {"name": "wipe", "args": PAY}}, "$.edited_action.name"),
        (by_call(), {"type": "respond", "message": "no"}, "$.type"),
        (by_call(REJECT_ONLY), APPROVED, "$.type"),
        (contract(INBOX), [], "$"),
        (contract(INBOX), {"type": "accept", "args": None}, "$"),
        (contract(INBOX), [{"type": "accept", "args": "yes"}], "$[0].args"),
        (
            contract(INBOX),
            [{"type": "edit", "args": {"action": "rm", "args": {"command": "ls", "args": []}}}],
            "$[0].args.action",
        ),
    ],
)
def test_what_the_request_does_not_allow_is_refused_with_its_path(asked, answer, path):
    with pytest.raises(Invalid) as refused:
        asked.fitting(answer)
    assert path in refused.value.fields


@pytest.mark.parametrize(
    "payload",
    [
        {"action_requests": [], "review_configs": []},
        BATCHED | {"review_configs": [{"action_name": "pay", "allowed_decisions": ["approve"]}]},
        BATCHED | {"review_configs": [{"action_name": "pay", "allowed_decisions": ["delete"]}]},
        BATCHED | {"mail": "x"},
        BY_CALL,
        BY_CALL | {"response_schema": {"type": "object"}},
        BY_CALL | {"response_schema": {"oneOf": [{"$ref": "#/default"}], "default": {"properties": [1]}}},
        BY_CALL
        | {"response_schema": {"properties": {"type": {"$ref": "#/default"}}, "default": {"enum": 5}}},
        [INBOX[0] | {"config": {"allow_accept": False}}],
        [*INBOX, "and more"],
        {"type": "tool_approval"},
        None,
    ],
)
def test_what_is_no_whole_request_is_answered_as_any_payload(payload):
    assert contract(payload) is None


def test_a_gated_calls_arguments_are_its_own_whatever_they_look_like():
    assert contract_of({"payload": BATCHED, "schema": None, "call": {"tool": "pay"}}) is None


# -- on the page ----------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_each_action_is_a_card_and_the_run_gets_the_contracts_answer(ada):
    approval = ask(BATCHED)
    assert approval.verdicts == ["respond"]
    client = as_person(ada)
    page = page_of(client, approval)
    offered = re.findall(r'type="radio"[^>]* name="(\$[^"]*)" value="([a-z]+)"', page)
    assert offered == [
        ("$.action_1.decision", "approve"),
        ("$.action_1.decision", "edit"),
        ("$.action_1.decision", "reject"),
        ("$.action_2.decision", "reject"),
        ("$.action_2.decision", "respond"),
    ]
    assert page.count("Args: {") == 0, "langchain's own description only repeats the arguments"

    half = press(client, approval, "respond", page, **{"$.action_1.decision": "approve"})
    assert half.status_code == 422 and "Say what is to be done with this one." in half.content.decode()
    assert answer_of(approval) is None and not Decision.objects.exists()

    typed = {
        "$.action_1.decision": "approve",  # with other arguments: an edit
        "$.action_1.args.amount": "9",
        "$.action_2.decision": "reject",
        "$.action_2.message": "Not /etc.",
    }
    assert press(client, approval, "respond", **typed).status_code == 302
    given = answer_of(approval)
    assert given["payload"] == {"decisions": [EDITED, REFUSED]}
    assert given["verdict"] == "respond" and given["outcome"] == "responded"
    after = page_of(client, approval)
    assert "approved with edits" in after and "Not /etc." in after


def kinds(*words: str) -> dict[str, Any]:
    """A tool's arguments as pydantic describes them: every tool calls its definition Kind."""
    kind = {"enum": list(words), "type": "string"}
    properties = {"kind": {"$ref": "#/$defs/Kind"}, "then": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}
    return {"type": "object", "properties": properties, "required": ["kind"], "$defs": {"Kind": kind}}


@pytest.mark.django_db
@pytest.mark.parametrize(("typed", "code"), [("b", 302), ("x", 422)])
def test_definitions_of_one_name_from_two_tools_stay_apart(typed, code, ada):
    nested = {"kind": "a", "then": {"kind": "b", "then": None}}
    approval = ask(
        {
            "action_requests": [{"name": "one", "args": nested}, {"name": "two", "args": {"kind": "x"}}],
            "review_configs": [
                {"action_name": name, "allowed_decisions": ["approve", "edit"], "args_schema": kinds(*words)}
                for name, words in (("one", "ab"), ("two", "xy"))
            ],
        }
    )
    client = as_person(ada)
    page = page_of(client, approval)
    offered = [
        re.findall(r'<option value="[^"]*?(\w)[^"\w]*"', found)
        for found in re.findall(r'(?s)<select[^>]*name="\$\.action_\d\.args\.[^"]*".*?</select>', page)
    ]
    assert [sorted(set(words)) for words in offered] == [["a", "b"], ["a", "b"], ["x", "y"]]
    said = {"$.action_1.decision": "edit", "$.action_1.args.kind": typed, "$.action_2.decision": "approve"}
    assert press(client, approval, "respond", page, **said).status_code == code
    assert (answer_of(approval) is not None) == (code == 302)


@pytest.mark.django_db
def test_no_other_way_in_takes_what_the_request_forbids(ada):
    approval = ask(BATCHED)
    swapped = copy.deepcopy(EDITED) | {"edited_action": {"name": "wipe", "args": {"path": "/"}}}
    for verdict, payload in (
        ("approve", None),
        ("reject", None),
        ("edit", BATCHED),
        ("respond", BATCHED),
        ("respond", {"decisions": [swapped, REFUSED]}),
    ):
        with pytest.raises(Invalid):
            approval.decide(by=ada, verdict=verdict, payload=payload, reason="So.", via="api")
    assert told(approval) == ["opened"] and answer_of(approval) is None


@pytest.mark.django_db
def test_what_json_says_beside_an_answer_is_refused_by_name(ada):
    """Whoever writes another tool's name would else believe that it is called."""
    approval = ask(BATCHED)
    sheet = {
        "action_1": {"decision": "edit", "name": "wipe", "args": {"to": "bob", "amount": 9}, "message": ""},
        "action_2": {"decision": "reject", "message": "", "args": {"path": "/"}},
        "action_3": {"decision": "approve"},
    }
    client = as_person(ada)
    refused = press(client, approval, "respond", view="json", json=json.dumps(sheet))
    said = refused.content.decode()
    assert refused.status_code == 422
    for path in ("$.action_1.name", "$.action_2.args", "$.action_3"):
        assert f"<code>{path}</code>" in said
    assert "A decision cannot change the tool: it stays pay." in said
    assert answer_of(approval) is None and not Decision.objects.exists()
    del sheet["action_1"]["name"], sheet["action_2"]["args"], sheet["action_3"]
    assert press(client, approval, "respond", view="json", json=json.dumps(sheet)).status_code == 302
    assert answer_of(approval)["payload"]["decisions"][0]["edited_action"]["name"] == "pay"


@pytest.mark.django_db
def test_what_is_missing_is_named_with_its_action(ada):
    approval = ask(BATCHED)
    client = as_person(ada)
    said = press(client, approval, "respond").content.decode()
    assert re.findall(r"data-to-field>([^<]+)</a>", said) == ["1. pay: Decision", "2. wipe: Decision"]
    assert "The run waits for your answer to: pay, wipe." in said


@pytest.mark.django_db
def test_an_undone_answer_is_a_draft_again(ada):
    approval = ask(BATCHED)
    said = approval.decide(by=ada, verdict="respond", payload={"decisions": [EDITED, REFUSED]})
    approval.undo(by=ada)
    give_back(Approval.objects.get(pk=approval.pk), ada, said)
    assert KeptDraft.of(approval, ada) is not None
    page = page_of(as_person(ada), approval)
    assert re.search(r'name="\$.action_1.decision" value="edit" checked', page)
    assert re.search(r'name="\$.action_1.args.amount" value="9"', page) and "Not /etc." in page


@pytest.mark.django_db
def test_the_second_of_two_finds_the_first_ones_answer_and_agrees(ada, bob):
    approval = ask(BATCHED, quorum=2)
    answer = {"decisions": [APPROVED, REFUSED]}
    approval.decide(by=ada, verdict="respond", payload=answer)
    assert answer_of(approval) is None
    assert press(as_person(bob), approval, "respond").status_code == 302
    assert answer_of(approval)["payload"] == answer


@pytest.mark.django_db
def test_who_may_not_decide_reads_the_cards(ada, eve):
    from tests.approvals.cases import waiting_run

    approval = ask(BATCHED, run=waiting_run(created_by=ada))
    client = Client()
    client.force_login(ada)
    page = client.get(url(approval)).content.decode()
    assert "Wipes everything below a path." in page and 'name="$.action_1.decision"' not in page


@pytest.mark.django_db
def test_it_cannot_be_approved_by_a_deadline():
    with pytest.raises(Permanent, match="cannot be approved by itself"), transaction.atomic():
        ask(BATCHED, on_expiry="auto_approve")
