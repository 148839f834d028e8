"""Each rule on every path by which people decide: the real page, the real list of many, the real command.

What is refused leaves no decision and no answer. A new caller of `Approval.decide` is not known here, and red.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from approvals.bulk import Pick
from approvals.models import Approval, Decision
from approvals.words import VIAS
from runs import Graph
from runs.engine import clock
from tests.approvals.cases import MAIL, answer_of, ask, close, waiting_run
from tests.approvals.pages import as_person, overdue, url
from tests.runs.driving import registered

pytestmark = pytest.mark.django_db

HOUSE = Path(__file__).resolve().parents[2]
Way = Callable[[Approval, int, User, str, str], None]


def by_page(approval: Approval, revision: int, by: User, verdict: str, reason: str) -> None:
    said = {"verdict": verdict, "reason": reason, "revision": revision, "operation_id": uuid4().hex}
    as_person(by).post(url(approval, "decision"), said)


def by_list(approval: Approval, revision: int, by: User, verdict: str, reason: str) -> None:
    said = {"pick": str(Pick(approval.pk, revision)), "verdict": verdict, "reason": reason}
    as_person(by).post("/inbox/bulk/", {**said, "operation_id": uuid4().hex})


def by_command(approval: Approval, revision: int, by: User, verdict: str, reason: str) -> None:
    try:
        call_command(
            "decide", str(approval.pk), by=by.username, verdict=verdict, reason=reason, revision=revision
        )
    except CommandError:
        pass  # what was refused is seen in the rows


MAKING = ("create", "bulk_create", "get_or_create", "update_or_create")
PATHS: dict[str, Way] = {"page": by_page, "bulk": by_list, "command": by_command}


def test_every_caller_of_the_verb_is_one_of_the_paths() -> None:
    """With its own word for the trail; and nobody else makes a decision's row, or gives a question its answer.

    However it is called: whatever names the verb is found. `runs` knows no approvals (tests/durableweb/test_doors.py).
    """
    paths, makers, answerers = {}, set(), set()
    for room in ("approvals", "durableweb", "examples"):
        for file in sorted((HOUSE / room).rglob("*.py")):
            name, tree = str(file.relative_to(HOUSE)), ast.parse(file.read_text())
            for node in ast.walk(tree):
                if isinstance(node, ast.Attribute) and node.attr == "decide":
                    paths.setdefault(name, [])
                elif (
                    isinstance(node, ast.Attribute) and node.attr == "answer" and "entry" in ast.unparse(node)
                ):
                    answerers.add(name)
                if isinstance(node, ast.Call):
                    called, given = (
                        ast.unparse(node.func).split("."),
                        {word.arg: word.value for word in node.keywords},
                    )
                    if called[-1] == "decide":
                        paths[name] = [*paths.get(name, []), ast.unparse(given.get("via", ast.Constant("")))]
                    if (
                        called[-1] == "Decision"
                        or {"Decision", "decisions"} & set(called)
                        and called[-1] in MAKING
                    ):
                        makers.add(name)
    assert sorted(paths.values()) == sorted([repr(path)] for path in PATHS), f"an unknown caller: {paths}"
    assert makers == answerers == {"approvals/models/deciding.py"}
    assert PATHS.keys() <= set(VIAS)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_who_may_decides_on_each_path(ada: User, path: str, verdict: str) -> None:
    """Without it, nothing below would prove anything."""
    approval = ask()
    PATHS[path](approval, approval.revision, ada, verdict, "Not yet.")
    decision = Decision.objects.get()
    assert (decision.by, decision.verdict, decision.via) == (ada, verdict, path)
    assert answer_of(approval)["by"] == "ada"


def never(payload: dict) -> str:
    return "Never."


walked = Graph("walked", viewers="pm")


@walked.node
def walk(run, state):
    return None


@pytest.fixture
def walked_known() -> Iterator[None]:
    with registered(walked):
        yield
    clock.AHEAD = timedelta()


def stage(name: str) -> dict:
    return {"name": name, "reviewers": [name], "quorum": 1, "when": None, "needed": True}


def somebody_votes(approval: Approval, by: User) -> Approval:
    approval.decide(by=by, verdict="approve")
    return Approval.objects.get(pk=approval.pk)


def handed_on(approval: Approval, by: User, to: User) -> Approval:
    approval.delegate(by, to=to)
    return Approval.objects.get(pk=approval.pk)


def late(approval: Approval) -> Approval:
    overdue(approval)
    return approval


def ended(approval: Approval) -> Approval:
    close(approval, "cancelled")
    return approval


# rule -> makes what ada may not decide; `bob` and `eve` are others, bob a reviewer as she is. What the policy said is
# written when the question opens; an edit is judged anew (tests/approvals/test_rules.py).
RULES: dict[str, Callable[[User, User, User], Approval]] = {
    "four eyes": lambda ada, bob, eve: ask(run=waiting_run(created_by=ada), reviewers=("pm", "ada")),
    "on behalf of": lambda ada, bob, eve: ask(run=waiting_run(on_behalf_of=ada), reviewers=("pm", "ada")),
    "others are asked": lambda ada, bob, eve: ask(reviewers=("legal",), run=waiting_run(graph="walked")),
    "excluded": lambda ada, bob, eve: ask(exclude=["ada"]),
    "n distinct people": lambda ada, bob, eve: somebody_votes(ask(quorum=2), ada),
    "another stage's turn": lambda ada, bob, eve: ask(reviewers=(), stages=[stage("bob"), stage("ada")]),
    "one stage a person": lambda ada, bob, eve: somebody_votes(
        ask(reviewers=(), stages=[stage("pm"), stage("ada")]), ada
    ),
    "gave their part away": lambda ada, bob, eve: handed_on(ask(), ada, eve),
    "decided already": lambda ada, bob, eve: somebody_votes(ask(), bob),
    "too late": lambda ada, bob, eve: late(ask(due=timedelta(hours=1))),
    "closed": lambda ada, bob, eve: ended(ask()),
    "the policy": lambda ada, bob, eve: ask(
        run=waiting_run(graph="walked"), policy=f"{__name__}:never", objection="Never."
    ),
    "a signature": lambda ada, bob, eve: ask(sign=True),
}


@pytest.mark.usefixtures("walked_known")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_holds_on_each_path(ada: User, bob: User, eve: User, rule: str, path: str) -> None:
    """A4, A8, S9"""
    approval = RULES[rule](ada, bob, eve)
    before, answer = Decision.objects.count(), answer_of(approval)
    PATHS[path](approval, approval.revision, ada, "approve", "")
    assert Decision.objects.count() == before
    assert answer_of(approval) == answer


@pytest.mark.parametrize("path", PATHS)
def test_what_has_changed_is_decided_on_no_path(ada: User, bob: User, path: str) -> None:
    """A8: the revision that was looked at is not the one that stands."""
    approval = ask(MAIL)
    seen = approval.revision
    approval.assign(by=bob, to=bob)
    PATHS[path](approval, seen, ada, "approve", "")
    assert not Decision.objects.exists()


@pytest.mark.parametrize("path", PATHS)
def test_a_rejection_says_why_on_each_path(ada: User, path: str) -> None:
    approval = ask()
    for reason in ("", " \n\t"):
        PATHS[path](approval, approval.revision, ada, "reject", reason)
    assert not Decision.objects.exists()


@pytest.mark.parametrize("path", PATHS)
def test_who_is_switched_off_decides_on_no_path(ada: User, path: str) -> None:
    User.objects.filter(pk=ada.pk).update(is_active=False)
    approval = ask()
    PATHS[path](approval, approval.revision, ada, "approve", "")
    assert not Decision.objects.exists()
