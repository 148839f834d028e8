from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from approvals.models import Decision
from tests.approvals.cases import MAIL, answer_of, ask, told, waiting_run

pytestmark = pytest.mark.django_db

EDITED = {**MAIL, "copies": 8}


def decide(approval, *options):
    out = io.StringIO()
    call_command("decide", str(getattr(approval, "pk", approval)), *options, stdout=out)
    return out.getvalue()


def test_it_decides_for_a_person_and_names_the_shell_too(ada):
    approval = ask()
    said = decide(approval, "--verdict", "reject", "--by", "ada", "--reason", " Too long. ")
    assert said == f"Send the mail? ({approval.short_id}): rejected by ada.\n"
    assert answer_of(approval)["reason"] == " Too long. "
    decision = Decision.objects.get()
    assert (decision.via, decision.by) == ("command", ada)
    assert decision.signed_in.startswith("shell of ")


def test_it_prints_one_json_object(ada):
    approval = ask()
    said = json.loads(decide(approval.short_id, "--verdict", "approve", "--by", "ada", "--json"))
    assert said == {
        "approval": str(approval.pk),
        "run": str(approval.run_id),
        "verdict": "approve",
        "by": "ada",
        "outcome": "approved",
        "revision": 2,
        "operation_id": said["operation_id"],
        "at": said["at"],
    }


def test_a_payload_comes_as_json_from_a_file_or_from_stdin(ada, tmp_path, monkeypatch):
    text = json.dumps(EDITED)
    (tmp_path / "edit.json").write_text(text)
    for given in (text, f"@{tmp_path / 'edit.json'}", "-"):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        approval = ask()
        decide(approval, "--verdict", "edit", "--by", "ada", "--payload", given)
        assert answer_of(approval)["payload"] == EDITED


def test_a_vote_says_how_many_are_missing(ada):
    assert "2 more needed" in decide(ask(quorum=3), "--verdict", "approve", "--by", "ada")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--verdict", "approve", "--by", "zoe"], "There is no user 'zoe'"),
        (["--verdict", "approve", "--by", ""], "There is no user ''"),
        (["--verdict", "maybe", "--by", "ada"], "--verdict: “maybe” is not offered here"),
        (["--verdict", "edit", "--by", "ada"], "send the payload"),
        (["--verdict", "edit", "--by", "ada", "--payload", "{"], "--payload is no JSON: Line 1"),
        (["--verdict", "edit", "--by", "ada", "--payload", "NaN"], "NaN is not a JSON value"),
        (["--verdict", "edit", "--by", "ada", "--payload", "@/no/such"], "/no/such cannot be read"),
        (["--verdict", "edit", "--by", "ada", "--payload", '{"to": 1}'], "$.subject"),
        (["--verdict", "approve", "--by", "eve"], "There is no approval"),
        (["--verdict", "approve", "--by", "olga"], "four eyes"),
        (
            ["--verdict", "approve", "--by", "ada", "--revision", "7"],
            "There is no revision 7 of this, it is at 1",
        ),
    ],
)
def test_bad_input_is_one_clear_line_and_changes_nothing(ada, eve, olga, options, said):
    approval = ask(run=waiting_run(created_by=olga))
    with pytest.raises(CommandError) as refused:
        decide(approval, *options)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert answer_of(approval) is None
    assert not Decision.objects.exists()


def test_an_unknown_or_ambiguous_id_is_said(ada):
    first, second = ask(), ask()
    with pytest.raises(CommandError, match="There is no approval 'zzzz'"):
        decide("zzzz", "--verdict", "approve", "--by", "ada")
    with pytest.raises(CommandError, match="fits several approvals") as refused:
        decide(str(first.pk)[:6], "--verdict", "approve", "--by", "ada")
    assert str(first.pk) in str(refused.value) and str(second.pk) in str(refused.value)
    assert told(first) == told(second) == ["opened"]
