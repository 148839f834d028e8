"""Documentation is tested: what it leaves out, or says wrongly, is a red test, and its examples are run.

Settings and dependencies have their own tests (tests/durableweb/test_settings.py).
"""

from __future__ import annotations

import ast
import inspect
import re
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

import runs
import runs.testing
from approvals.chain import link
from approvals.models import Activity, Decision
from approvals.words import OUTCOMES
from runs import agent, errors
from runs.core import ask, child, context, mapping, retry
from runs.core import errors as core_errors
from runs.core.chain import Link
from runs.core.rehearsal import rehearse
from runs.engine import blobs
from runs.engine.starting import start
from runs.model_endpoint import Endpoint
from runs.models import checkpoint, entry, statuses
from runs.testing import crash_everywhere, drive
from tests.conftest import ROOT
from tests.documents import (
    PAGES,
    anchors,
    blocks,
    codes,
    documented,
    links,
    named,
    page,
    rows,
    run_blocks,
    section,
)
from tests.runs.driving import registered

OUR_APPS = ("durableweb", "runs", "approvals", "examples")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|tmp|home|root|usr|opt|mnt|srv|Users)/|[A-Z]:\\")


# -- pages ----------------------------------------------------------------------------------------------------


def test_every_page_is_reached_from_the_readme():
    reached, ahead = set(), [ROOT / "README.md"]
    while ahead:
        at = ahead.pop()
        reached.add(at)
        targets = (at.parent / target.partition("#")[0] for target in links(at))
        ahead += {target.resolve() for target in targets if target.suffix == ".md"} - reached
    assert set(PAGES) - reached == set()


@pytest.mark.parametrize("at", PAGES, ids=named)
def test_every_link_and_picture_leads_somewhere(at):
    for target in links(at):
        path, _, anchor = target.partition("#")
        there = (at.parent / path).resolve() if path else at
        assert there.exists(), f"{named(at)} links {target}, which is not there"
        if anchor:
            assert anchor in anchors(there), (
                f"{named(at)} links {target}, and {named(there)} has no such heading"
            )


@pytest.mark.parametrize("at", PAGES, ids=named)
def test_no_page_names_a_folder_of_somebodys_machine(at):
    assert MACHINE_PATH.findall(at.read_text()) == []


def test_every_picture_is_shown_somewhere():
    shown = {(at.parent / target).resolve() for at in PAGES for target in links(at)}
    made_for_both_themes = {
        ROOT / "docs/images" / f"{name}-{theme}.png"
        for name in ("inbox", "run")
        for theme in ("light", "dark")
    }
    assert set(ROOT.glob("docs/images/*")) == made_for_both_themes <= shown


def test_python_on_a_page_is_python_that_a_test_runs():
    assert {named(at) for at in PAGES if "```python" in at.read_text()} == {
        "README.md",
        "docs/guide.md",
        "docs/audit.md",
    }


@pytest.mark.parametrize("at", PAGES, ids=named)
def test_every_command_that_a_page_names_exists(at):
    assert set(re.findall(r"manage\.py ([a-z]\w+)", at.read_text())) <= set(get_commands())


@pytest.mark.parametrize("at", PAGES, ids=named)
def test_every_file_of_ours_that_a_page_names_exists(at):
    files = re.findall(
        r"`((?:bin|bench|examples|runs|approvals|durableweb|docs|tests)/[\w./-]+)`", at.read_text()
    )
    places = (ROOT, ROOT / "templates")
    assert [file for file in files if not any((place / file).exists() for place in places)] == []


@pytest.mark.parametrize("at", sorted(ROOT.glob("docs/adr/[0-9]*.md")), ids=named)
def test_a_decision_says_why_what_was_given_up_and_how_to_notice(at):
    parts = re.findall(r"^\*\*(.+?)\*\*", at.read_text(), re.MULTILINE)
    assert parts == ["Context.", "Decision.", "What we gave up.", "How we would notice that it was wrong."]
    assert len(at.read_text().splitlines()) <= 60
    assert at.read_text().startswith(f"# {int(at.name[:4])}. ")


def test_the_decisions_are_listed_in_their_order():
    decisions = [at.name for at in sorted(ROOT.glob("docs/adr/[0-9]*.md"))]
    assert re.findall(r"^(\d+)\. \[.+\]\((.+)\)$", page("docs/adr/README.md"), re.MULTILINE) == [
        (f"{int(name[:4])}", name) for name in decisions
    ]


# -- examples -------------------------------------------------------------------------------------------------

REFUND = {"order": "A-17", "amount": 30}
LESS = {"verdict": "edit", "payload": {"order": "A-17", "amount": 20}, "by": "ada"}
NO = {"verdict": "reject", "reason": "no receipt", "by": "bob"}
ANSWERS = [({"refund:{run_id}?": LESS}, "receipt for 20"), ({"refund:{run_id}?": NO}, "not paid: no receipt")]


@pytest.fixture(scope="module")
def readme():
    return run_blocks("README.md", "graph_of_the_readme")


@pytest.fixture(scope="module")
def guide():
    return run_blocks("docs/guide.md", "graphs_of_the_guide")


def test_the_first_graph_has_at_most_twenty_lines():
    ((_, source),) = blocks("README.md")
    assert len([line for line in source.splitlines() if line.strip()]) <= 20


@pytest.mark.parametrize(("answers", "outcome"), ANSWERS)
def test_the_first_graph_can_be_rehearsed(readme, answers, outcome):
    done = rehearse(readme.refund, REFUND, answers)
    assert (done.status, done.state.outcome) == ("completed", outcome)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("answers", "outcome"), ANSWERS)
def test_the_first_graph_runs_on_rows(readme, answers, outcome):
    with registered(readme.refund):
        run = drive(readme.refund, REFUND, answers)
    assert (run.status, run.state_at()["outcome"]) == ("completed", outcome)


def test_the_first_graph_pays_once_where_nobody_knows_whether_a_call_arrived(readme, monkeypatch):
    keys: list[str] = []

    def cut_off_once(order, amount, idempotency_key):
        keys.append(idempotency_key)
        if len(keys) == 1:
            raise core_errors.Ambiguous("the process was killed")
        return readme_pay_back.fn(order, amount, idempotency_key)

    readme_pay_back = readme.pay_back
    monkeypatch.setattr(readme, "pay_back", replace(readme_pay_back, fn=cut_off_once))
    done = rehearse(readme.refund, REFUND, {"refund:{run_id}?": LESS})
    assert (done.status, done.state.outcome) == ("completed", "receipt for 20")
    assert len(keys) == 2 and len(set(keys)) == 1


def test_the_guide_can_be_typed_from_top_to_bottom(guide):
    assert guide.done.status == "completed"


def test_the_guides_own_tests_are_known_here(guide):
    assert {name for name in vars(guide) if name.startswith("test_")} == set(TESTS_OF_THE_GUIDE)


TESTS_OF_THE_GUIDE = (
    "test_a_customer_is_forgotten",
    "test_a_failed_run_is_repaired",
    "test_a_large_customer_lets_the_others_pass",
    "test_a_parcel_arrives",
    "test_everybody_is_greeted",
    "test_money_that_comes_is_booked",
    "test_no_crash_sends_a_letter_twice",
    "test_what_is_done_outside_of_a_tool_is_done_again",
)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", TESTS_OF_THE_GUIDE)
def test_the_guides_own_tests_pass(guide, name, tmp_path, monkeypatch):
    """Of their kills some: that there is one everywhere is tested with the kit itself."""
    monkeypatch.setattr(guide, "crash_everywhere", partial(crash_everywhere, kills=12))
    test = getattr(guide, name)
    with registered(guide.tracking, guide.exports, guide.mending):
        test(*[tmp_path for _ in inspect.signature(test).parameters])


@pytest.mark.django_db(transaction=True)
def test_the_guides_way_to_start_a_run_starts_one(guide, ada):
    with registered(guide.orders):
        run = guide.order_placed(ada, "A-17", 30)
        assert guide.order_placed(ada, "A-17", 30) == run
        signal = guide.money_came(run.pk, 30, "payment-1")
        assert guide.money_came(run.pk, 30, "payment-1") == signal
    assert (run.key, run.created_by, run.state_at()["amount"]) == ("order:A-17", ada, 30)


def test_the_digests_that_audit_works_out_are_those_of_the_engine():
    worked = run_blocks("docs/audit.md", "example_of_the_audit_page")
    same = {
        "run": "01995d3a-5c00-7000-8000-0000003fa91c",
        "step": 0,
        "node": "pay",
        "version": 1,
        "attempt": 0,
    }
    before, digests = "", []
    for seq, kind, status, fence, actor, body, entries in (
        (0, "start", "created", 0, "user ada", worked.state, "[]"),
        (1, "claim", "running", 1, worked.worker, "", "[]"),
        (2, "wait", "waiting", 1, worked.worker, "", worked.entries),
    ):
        own = {"seq": seq, "kind": kind, "status": status, "fence": fence, "actor": actor, "reason": ""}
        kept = {"body": body, "snapshot": bool(body), "salt": bytes(range(16 * seq, 16 * seq + 16))}
        at = datetime(2026, 1, 5, 9, 30, 0, 250_000 * seq, tzinfo=UTC)
        before = Link(**same, **own, **kept, at=at, before=before, entries=entries).seal().digest
        digests.append(before)
    assert [worked.first, worked.second, worked.third] == digests


def test_the_approvals_chain_that_audit_works_out_is_that_of_the_engine():
    worked = run_blocks("docs/audit.md", "example_of_the_audit_page")
    approval = uuid.UUID("01995d3a-5c01-7000-8000-00000052bd07")
    opened = Activity(
        approval_id=approval,
        seq=1,
        kind="opened",
        revision=1,
        at=datetime(2026, 1, 5, 9, 30, 0, 400_000, tzinfo=UTC),
    )
    edited = Decision(
        approval_id=approval,
        seq=2,
        by_id=7,
        via="page",
        verdict="edit",
        payload_digest=worked.sha256(worked.payload),
        reason="only 20 €",
        operation_id="op-1",
        operation_digest=worked.sha256(worked.operation),
        revision=2,
        at=datetime(2026, 1, 5, 9, 41, 12, tzinfo=UTC),
        signed_in="password",
    )
    assert [worked.opened, worked.edited] == [link("", opened), link(worked.opened, edited)]


# -- the life of a run ----------------------------------------------------------------------------------------


def test_the_arrows_of_the_lifecycle_are_those_of_the_code():
    drawn = [
        tuple(codes(before) + codes(after))
        for before, after, _ in rows(section("docs/lifecycle.md", "Arrows"))
    ]
    known = {(before, after) for before, more in statuses.TRANSITIONS.items() for after in more}
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == known


@pytest.mark.parametrize(
    ("heading", "known"),
    [
        ("Statuses", statuses.STATUSES),
        ("Why a run failed", statuses.ERROR_KINDS),
        ("Checkpoints", checkpoint.KINDS),
        ("Ledger entries", entry.ENTRY_KINDS + entry.ENTRY_STATUSES),
        ("Approvals", OUTCOMES),
    ],
)
def test_the_lifecycle_names_each_word_once(heading, known):
    assert sorted(documented("docs/lifecycle.md", heading)) == sorted(known)


def test_the_glossary_has_one_meaning_for_a_word():
    words = [row[0] for row in rows(page("docs/glossary.md"))]
    assert len(words) == len(set(words)) > 40


# -- what authors write ---------------------------------------------------------------------------------------


def test_every_public_name_is_documented():
    assert sorted(documented("docs/reference.md", "Names")) == sorted(runs.__all__)
    assert sorted(documented("docs/reference.md", "runs.testing")) == sorted(runs.testing.__all__)
    assert sorted(documented("docs/reference.md", "runs.agent")) == sorted(agent.__all__)


@pytest.mark.parametrize(
    ("heading", "signed"),
    [
        ("Graph", runs.Graph),
        ("node", runs.Graph.node),
        ("every", runs.Graph.every),
        ("tool", runs.tool),
        ("Retry", retry.Retry),
        ("Rate", runs.Rate),
        ("Ask", ask.Ask),
        ("start", start),
        ("Agent", agent.Agent),
        ("Endpoint", Endpoint),
    ],
)
def test_every_option_is_documented_with_its_default(heading, signed):
    parameters = inspect.signature(signed).parameters
    options = {name: one.default for name, one in parameters.items() if name not in ("self", "fn")}
    table = {code: row[1] for row in rows(section("docs/reference.md", heading)) for code in codes(row[0])}
    assert set(table) == set(options)
    for name, shown in table.items():
        literal = re.fullmatch(r"`([^`]+)`", shown)
        if literal and re.fullmatch(r"[\d._]+|None|True|False|\"[^\"]*\"|\(\)", literal[1]):
            assert ast.literal_eval(literal[1]) == options[name], f"{heading}: the default of {name}"


def test_every_verb_of_run_and_part_of_an_answer_is_documented():
    verbs = {name for name in vars(context.Run) if not name.startswith("_")}
    assert set(documented("docs/reference.md", "run")) == verbs
    assert documented("docs/reference.md", "Answer") == list(inspect.signature(ask.Answer).parameters)
    parts = [*inspect.signature(child.ChildEnd).parameters, "completed"]
    assert sorted(documented("docs/reference.md", "ChildEnd")) == sorted(parts)


# -- errors ---------------------------------------------------------------------------------------------------


def below(cls: type) -> set[type]:
    return {cls}.union(*map(below, cls.__subclasses__()))


def test_every_error_of_the_engine_is_documented_with_its_kind():
    table = {
        codes(row[0])[0]: codes(row[2])
        for row in rows(section("docs/errors.md", "What authors raise and catch"))
    }
    known = {cls for cls in below(core_errors.DurableError) if cls.__module__.startswith("runs.")}
    assert blobs.BlobGone in known
    assert set(table) == {cls.__name__ for cls in known}
    for cls in known:
        if cls.error_kind is not None:
            assert cls.error_kind in table[cls.__name__], cls.__name__


def test_the_meaning_of_client_errors_is_documented():
    text = section("docs/errors.md", "What errors of clients mean")
    table = {code: codes(row[1])[0] for row in rows(text) for code in codes(row[0]) if "." in code}
    known = dict.fromkeys(mapping.NOT_SENT, "Transient")
    known |= dict.fromkeys(mapping.REFUSED, "Permanent")
    known |= dict.fromkeys(mapping.UNKNOWN, "Ambiguous")
    assert table == known
    ((surely_not_done, taken_as),) = [row for row in rows(text) if row[0][0].isdigit()]
    assert set(map(int, surely_not_done.split(", "))) == mapping.SURELY_NOT_DONE
    assert codes(taken_as) == ["Transient"]


def test_every_refusal_is_documented_with_its_status():
    table = {codes(row[0])[0]: int(row[1]) for row in rows(section("docs/errors.md", "What verbs refuse"))}
    known = {cls for cls in below(errors.Refusal) - {errors.Refusal} if cls.__module__ == "runs.errors"}
    assert table == {cls.__name__: cls.status for cls in known}


def test_every_system_check_is_documented():
    sources = [path.read_text() for app in OUR_APPS for path in (ROOT / app).rglob("*.py")]
    known = {name for text in sources for name in re.findall(r"\"(durableweb\.[EW]\d+)\"", text)}
    assert set(documented("docs/errors.md", "System checks")) == known


# -- commands -------------------------------------------------------------------------------------------------


def our_commands() -> dict[str, BaseCommand]:
    files = [path for app in OUR_APPS for path in (ROOT / app).glob("management/commands/[a-z]*.py")]
    return {path.stem: load_command_class(path.relative_to(ROOT).parts[0], path.stem) for path in files}


def test_every_command_is_documented():
    headings = re.findall(r"^## (.+)$", page("docs/commands.md"), re.MULTILINE)
    assert sorted(headings) == sorted(our_commands())


@pytest.mark.parametrize("name", sorted(our_commands()))
def test_every_option_of_a_command_is_documented(name):
    djangos = {
        option for action in BaseCommand().create_parser("", "")._actions for option in action.option_strings
    }
    actions = our_commands()[name].create_parser("manage.py", name)._actions
    options = {
        option for action in actions for option in action.option_strings if option.startswith("--")
    } - djangos
    assert set(documented("docs/commands.md", name)) == options
    for action in actions:
        if not action.option_strings:
            assert action.dest.upper() in section("docs/commands.md", name), (
                f"{name} takes {action.dest.upper()}"
            )
