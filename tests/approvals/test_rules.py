"""An author's rules on the payload: asked when the question opens and for each edit; what is unclear is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from approvals.models import Approval
from runs import END, Ask, Graph, GraphError, Stage, registry, start, tool
from runs.core import codec
from runs.core.rehearsal import rehearse
from runs.engine import clock
from runs.errors import Invalid, NotAllowed
from runs.models import LedgerEntry, Remark
from runs.pages.asking import reviewers
from tests.approvals.cases import answer_of
from tests.approvals.pages import as_person, page_of, press
from tests.runs.driving import drive, pass_time, registered

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = 1000
paid: list[tuple[str, int]] = []
asked_about: list[object] = []


@tool(kind="write", honours_key=True)
def pay(to: str, amount: int, *, idempotency_key: str) -> str:
    """Pay an invoice."""
    paid.append((to, amount))
    return "paid"


def over_the_limit(payload: dict) -> bool:
    asked_about.append(payload["amount"])
    payload["amount"] = 0  # a rule gets a copy
    return asked_about[-1] > LIMIT


def only_known_vendors(payload: dict) -> str | None:
    if payload["to"] == "crash":
        raise KeyError("no such vendor")
    if payload["to"] == "odd":
        return 7
    return None if payload["to"] in ("acme", "globex") else f"{payload['to']} is no vendor of ours."


paying = Graph("paying", viewers="pm")


@paying.node(then=END)
def invoice(run, state):
    state["said"] = run.call(
        pay,
        key="pay:{run_id}",
        to=state["to"],
        amount=state["amount"],
        approve=Ask(
            "Pay the invoice?",
            stages=(Stage("pm"), Stage("finance", name="money", when=over_the_limit)),
            policy=only_known_vendors,
        ),
    )
    return END


@pytest.fixture(autouse=True)
def served() -> Iterator[None]:
    paid.clear()
    asked_about.clear()
    with registered(paying):
        yield
    clock.AHEAD = timedelta()


@pytest.fixture
def fay(person):
    return person("fay", "finance")


def asked(to="acme", amount=40):
    run = start(paying, {"to": to, "amount": amount})
    drive(run)
    return run, Approval.objects.get(run=run)


def ends(run):
    pass_time(10)
    drive(run)
    return run.status


def test_a_small_amount_needs_one_stage_and_a_large_one_both(ada, fay):
    run, small = asked()
    small.decide(by=ada, verdict="approve")
    assert ends(run) == "completed"
    run, large = asked(amount=4000)
    large.decide(by=ada, verdict="approve")
    assert (answer_of(large), large.stage, large.quorum) == (None, 2, 1)
    assert ends(run) == "waiting"
    large.decide(by=fay, verdict="approve")
    assert ends(run) == "completed"
    assert paid == [("acme", 40), ("acme", 4000)]


def test_an_edit_that_lifts_the_amount_over_the_limit_needs_the_second_approver_before_the_run_wakes(
    ada, fay
):
    """A7"""
    run, approval = asked()
    answers = run.answers
    approval.decide(by=ada, verdict="edit", payload={"to": "acme", "amount": 4000})
    run.refresh_from_db()
    assert (answer_of(approval), approval.stage, run.answers) == (None, 2, answers)
    assert ends(run) == "waiting"
    with pytest.raises(NotAllowed):
        approval.decide(by=ada, verdict="approve")
    approval.decide(by=fay, verdict="approve")
    assert ends(run) == "completed"
    assert paid == [("acme", 4000)]


def test_an_edit_below_the_limit_needs_the_second_approver_no_more(ada, person, fay):
    """The editor's own vote counts only where they are asked: fay is nobody of pm."""
    run, approval = asked(amount=4000)
    approval.decide(by=ada, verdict="approve")
    approval.decide(by=fay, verdict="edit", payload={"to": "acme", "amount": 50})
    assert (answer_of(approval), approval.stage) == (None, 1)
    approval.decide(by=ada, verdict="approve")
    assert ends(run) == "completed"
    both = person("both", "pm", "finance")
    run, approval = asked(amount=4000)
    approval.decide(by=ada, verdict="approve")
    approval.decide(by=both, verdict="edit", payload={"to": "acme", "amount": 60})
    assert answer_of(approval)["outcome"] == "approved_with_edits"
    assert ends(run) == "completed"
    assert paid == [("acme", 50), ("acme", 60)]


def test_an_edit_that_is_taken_back_needs_what_the_proposal_needs(ada, person):
    other = person("other", "pm")
    run, approval = asked()
    approval.decide(by=ada, verdict="edit", payload={"to": "acme", "amount": 4000})
    approval.take_back(ada)
    assert approval.stage == 1
    approval.decide(by=other, verdict="approve")
    assert ends(run) == "completed"
    assert paid == [("acme", 40)]


def test_a_policy_refuses_an_edit_with_its_own_words_and_the_form_stays_open(ada):
    """A9"""
    run, approval = asked()
    with pytest.raises(Invalid, match="initech is no vendor of ours") as refused:
        approval.decide(by=ada, verdict="edit", payload={"to": "initech", "amount": 40})
    assert refused.value.fields == {"$": ["initech is no vendor of ours."]}
    assert answer_of(approval) is None
    assert ends(run) == "waiting"


def test_what_a_policy_says_against_the_proposal_bars_approving_it_but_not_an_edit(ada):
    run, approval = asked(to="initech")
    for sent in ({}, {"payload": {"to": "initech", "amount": 40}}):
        with pytest.raises(Invalid, match="no vendor of ours"):
            approval.decide(by=ada, verdict="approve", **sent)
    approval.decide(by=ada, verdict="edit", payload={"to": "globex", "amount": 40})
    assert ends(run) == "completed"
    assert paid == [("globex", 40)]


@pytest.mark.parametrize(("to", "why"), [("crash", "KeyError.*no such vendor"), ("odd", "returned 7")])
def test_a_rule_that_fails_on_an_edit_refuses_it(ada, to, why):
    _, approval = asked()
    with pytest.raises(Invalid, match=f"only_known_vendors.*{why}"):
        approval.decide(by=ada, verdict="edit", payload={"to": to, "amount": 40})
    assert answer_of(approval) is None


def test_without_the_authors_code_what_stands_can_be_decided_and_an_edit_cannot(ada):
    run, approval = asked()
    registry.remove(paying)
    with pytest.raises(Invalid, match="not known here"):
        approval.decide(by=ada, verdict="edit", payload={"to": "globex", "amount": 40})
    approval.decide(by=ada, verdict="approve")
    registry.add(paying)
    assert ends(run) == "completed"


def test_a_row_names_a_rule_only_among_those_that_the_graph_reaches():
    assert registry.rule("paying", 1, f"{__name__}:over_the_limit") is over_the_limit
    for other in ("os:system", "subprocess:run", f"{__name__}:paying", f"{__name__}:nothing", "", "x"):
        assert registry.rule("paying", 1, other) is None
    assert registry.rule("other", 1, f"{__name__}:over_the_limit") is None


def test_rules_are_asked_once_for_a_question_however_often_the_node_is_executed(ada):
    run, approval = asked()
    assert asked_about == [40]
    approval.decide(by=ada, verdict="approve")
    assert ends(run) == "completed"
    assert asked_about == [40]
    assert not Remark.objects.filter(run=run).exists()


def test_rules_can_be_rehearsed():
    done = rehearse(paying, {"to": "acme", "amount": 4000}, {"pay:{run_id}?": {"verdict": "approve"}})
    assert done.status == "completed"
    request = codec.loads(done.ledger.past["pay:{run_id}?"].request)
    assert [(stage["name"], stage["needed"]) for stage in request["stages"]] == [
        ("pm", True),
        ("money", True),
    ]


async def later(payload):
    return True


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Ask("Go?", policy=lambda payload: None), "top of a module"),
        (lambda: Stage("pm", when=later), "top of a module"),
        (lambda: Ask("Go?", policy="over"), "top of a module"),
        (lambda: Stage(()), "nobody is named"),
        (lambda: Stage("pm", quorum=0), "at least one person"),
        (lambda: Ask("Go?", reviewers="pm", stages=(Stage("pm"),)), "beside stages"),
        (lambda: Ask("Go?", quorum=2, stages=(Stage("pm"),)), "beside stages"),
        (lambda: Ask("Go?", stages=("pm",)), "give Stage"),
        (lambda: Ask("Go?", stages=(Stage("pm", when=over_the_limit),)), "may need none"),
        (lambda: Ask("Go?", escalate_to="ops"), "belong together"),
        (lambda: Ask("Go?", escalate_after=timedelta(hours=1)), "belong together"),
        (lambda: Ask("Go?", escalate_to="ops", escalate_after=timedelta(0)), "positive"),
    ],
)
def test_a_question_that_cannot_be_asked_so_is_refused_where_it_is_written(make, why):
    with pytest.raises(GraphError, match=why):
        make()


def test_the_runs_page_says_for_whom_it_waits(ada):
    run, _ = asked(amount=4000)
    assert reviewers(LedgerEntry.objects.get(run=run, kind="interrupt").request_value()) == "pm, then finance"
    run, _ = asked()
    assert reviewers(LedgerEntry.objects.get(run=run, kind="interrupt").request_value()) == "pm"


def test_the_page_says_what_the_policy_objects_to(ada):
    _, approval = asked(to="initech")
    page = page_of(as_person(ada), approval)
    assert "As it stands, this may not be approved" in page and "initech is no vendor of ours." in page
    answer = press(as_person(ada), approval, **{"$.to": "hooli"})
    assert answer.status_code == 422
    assert "hooli is no vendor of ours." in answer.content.decode()
    assert press(as_person(ada), approval, **{"$.to": "acme"}).status_code == 302
    assert "As it stands" not in page_of(as_person(ada), approval)
