"""Leases, deaths and poison: what happens to a run whose worker is gone (cases E*, R*)."""

from __future__ import annotations

import sys

import pytest

from runs import END, Ask, Found, Graph, registry, start, tool
from runs.core.outcomes import Lost, Waits
from runs.engine.claim import MOST_DEATHS
from runs.models import LedgerEntry, Remark, Run
from tests.runs.driving import answer, claim, drive, kinds, pass_lease, pass_time, registered
from tests.runs.posting import sent
from tests.runs.states import Log

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


def looked_up(idempotency_key, arguments):
    return Found("found") if idempotency_key in sent else None


@tool(kind="write", reconcile=looked_up)
def post(text: str, idempotency_key: str) -> str:
    sent.append(idempotency_key)
    return text


@tool(kind="write")
def post_blindly(text: str) -> str:
    sent.append(text)
    return text


posting = Graph("posting", state=Log, operators="ops")


@posting.node
def publish(run, state):
    state.log.append(run.call(post, text="hello"))


blind = Graph("blind", state=Log, operators="ops")


@blind.node
def publish_blindly(run, state):
    state.log.append(run.call(post_blindly, text="hello"))


def die_in_call(run: Run, before: bool) -> None:
    """A worker commits the intent, then is gone: before the provider was called, or right after."""
    held = claim(run, "doomed")
    ledger_entries = {}

    class Gone(BaseException):
        pass

    def fn(**arguments):
        if not before:
            ledger_entries["result"] = real(**arguments)
        raise Gone

    graph = held.lease.graph
    made = post if graph is posting else post_blindly
    real = made.fn
    object.__setattr__(made, "fn", fn)
    original = held._excused
    held._excused = lambda questions, error: (_ for _ in ()).throw(error)
    try:
        with pytest.raises(Gone):
            held.run()
    finally:
        object.__setattr__(made, "fn", real)
        held._excused = original


@pytest.mark.parametrize("before", [True, False])
def test_a_write_found_open_after_a_crash_is_looked_up_and_made_once(before):
    """MISSION A6: after the tool's limit and a lease the provider is asked (reconcile); the effect happens once."""
    with registered(posting):
        run = start("posting", {})
        die_in_call(run, before)
        pass_lease()
        assert isinstance(drive(run, "w2"), Waits), "until then 'not found' means nothing"
        assert (run.status, claim(run)) == ("waiting", None)
        pass_time(63)
        drive(run, "w3")
    assert run.status == "completed"
    assert len(sent) == 1
    assert run.state_at()["log"] == [("found" if not before else "hello")]


@pytest.mark.parametrize(
    ("outcome", "result", "log", "times"),
    [("happened", "it said", ["it said"], 1), ("not_happened", None, ["hello"], 2), ("give_up", None, [], 1)],
)
def test_a_write_that_nobody_can_look_up_is_settled_by_a_person(outcome, result, log, times):
    """In doubt: a question to the operators, whose answer settles the entry; never a silent repeat."""
    with registered(blind):
        run = start("blind", {})
        die_in_call(run, before=False)
        pass_lease()
        drive(run, "w2")
        pass_time(63)
        assert isinstance(drive(run, "w3"), Waits)
        question = run.entries.get(kind="interrupt")
        assert question.key.endswith("!")
        assert question.request_value()["reviewers"] == ["ops"]
        assert LedgerEntry.objects.in_doubt().count() == 1
        answer(run, verdict="respond", payload={"outcome": outcome, "result": result}, by="olga")
        drive(run, "w4")
    assert run.state_at()["log"] == log
    assert len(sent) == times
    assert run.status == ("failed" if outcome == "give_up" else "completed")


def test_a_result_that_comes_after_the_lease_was_lost_is_a_remark_and_not_the_outcome():
    """E20: the late result is evidence."""
    with registered(posting):
        run = start("posting", {})
        held = claim(run, "slow")
        real = post.fn

        def slow(**arguments):
            made = real(**arguments)
            pass_lease()
            with_another = claim(run, "w2")
            assert with_another is not None
            assert isinstance(with_another.run(), Waits)
            return made

        object.__setattr__(post, "fn", slow)
        try:
            assert isinstance(held.run(), Lost)
        finally:
            object.__setattr__(post, "fn", real)
        assert Remark.objects.get().kind == "late_result"
        pass_time(63)
        drive(run, "w3")
    assert run.status == "completed"
    assert len(sent) == 1


def test_a_run_whose_driver_keeps_dying_is_failed_as_poison_before_it_runs_again():
    """R3, P5: bounded deaths; the last node and worker stay as evidence; claims are spaced out."""
    with registered(posting):
        run = start("posting", {})
        delays = []
        while run.status != "failed":
            if (taken := claim(run, f"victim-{len(kinds(run))}")) is not None:
                assert taken.lease.alone == (len(delays) > 0)
            pass_lease()
            claim(run, "finder")
            run.refresh_from_db()
            if run.wake_at is not None and run.leased_by is None:
                delays.append(round((run.wake_at - run.checkpoints.latest("seq").at).total_seconds()))
                pass_time(delays[-1])
        assert delays == [1, 2, 4], "at once after the first silent end, then after a growing delay"
    assert (run.status, run.error_kind, run.deaths) == ("failed", "poison", MOST_DEATHS + 1)
    assert "publish" in run.error and "victim-" in run.error
    assert sent == []
    assert kinds(run).count("claim") == MOST_DEATHS + 2
    with registered(posting):
        run.retry("olga", "what killed them is mended")
        assert (run.deaths, run.silent, run.alone) == (0, 0, False)
        assert claim(run, "w2", alone=False).run() is not None, "it is no suspect any more"
    run.refresh_from_db()
    assert (run.status, len(sent)) == ("completed", 1)


def test_a_suspect_is_not_driven_beside_other_runs():
    with registered(posting):
        run = start("posting", {})
        claim(run, "gone")
        pass_lease()
        assert claim(run, "w2", alone=False) is None
        run.refresh_from_db()
        assert (run.silent, run.leased_by) == (1, None)
        assert claim(run, "w2", alone=False) is None
        assert claim(run, "w2", alone=True).lease.alone
    assert kinds(run) == ["start", "claim", "lost", "claim"]


def test_progress_clears_the_suspicion():
    graph = Graph("two", state=Log)

    @graph.node(then="second")
    def first(run, state): ...

    @graph.node
    def second(run, state): ...

    with registered(graph):
        run = start("two", {})
        claim(run, "gone")
        pass_lease()
        taken = claim(run, "w2")
        taken.most_steps = 1
        taken.run()
        run.refresh_from_db()
        assert (run.silent, run.deaths) == (0, 0)
        assert claim(run, "w3", alone=False) is not None


def test_a_decision_while_the_node_runs_is_seen_after_the_next_claim_and_the_node_runs_once_more():
    """E11 with decisions: five answers come while a node runs; it is not run in parallel, and none is lost."""
    graph = Graph("busy", state=Log)
    bodies = []

    @graph.node
    def ask(run, state):
        bodies.append(1)
        asks = [Ask(f"Question {n}?", name=f"q{n}") for n in range(5)]
        if len(bodies) == 2:
            for n in range(5):
                answer(Run.objects.get(pk=run.id), f"q{n}")
        run.gather(*asks)
        state.log.append("all")

    with registered(graph):
        run = start("busy", {})
        drive(run)
        run.wake_at = None
        Run.objects.filter(pk=run.pk).update(wake_at=run.created_at)
        assert claim(run) is None, "nothing is answered: it parks again without calling the node"
        assert len(bodies) == 1
        # a worker that is inside the node when the answers come
        LedgerEntry.objects.filter(run=run).update(awaited=False)
        Run.objects.filter(pk=run.pk).update(wake_at=run.created_at)
        drive(run)
        assert run.status == "waiting" and run.wake_at is not None, "answers came: due at once"
        drive(run)
    assert run.status == "completed"
    assert len(bodies) == 3


def test_runs_of_a_graph_that_this_worker_does_not_serve_are_left_alone():
    """R5, R7: status unchanged, nothing is failed."""
    with registered(posting):
        run = start("posting", {})
    assert registry.find("posting", 1) is None
    assert claim(run) is None
    run.refresh_from_db()
    assert (run.status, run.seq) == ("created", 0)


@pytest.mark.parametrize(
    ("kept", "named"),
    [
        ('{"$":"enum","c":"os:system","v":"true"}', "os:system"),
        ('{"$":"enum","c":"tests.runs.moved_away:Colour","v":"RED"}', "tests.runs.moved_away:Colour"),
    ],
    ids=["no class of ours", "a class that has moved"],
)
def test_a_stored_state_that_cannot_be_read_fails_the_run_and_calls_nothing(kept, named):
    """D5: the path and the class are named, nothing is imported for it, what is stored stays as it was; and a repair
    with another state lets it go on.
    """
    graph = Graph("spoilt")

    @graph.node(then=("go", END))
    def go(run, state):
        sent.append(state["a"])
        return END

    body = '{"a":[1,' + kept + "]}"
    with registered(graph):
        run = start("spoilt", {"a": 1})
        from runs.engine import triggers

        triggers.remove()
        run.checkpoints.update(body=body)
        triggers.install()
        assert claim(run) is None
        run.refresh_from_db()
        assert (run.status, run.error_kind, kinds(run)) == ("failed", "bad_state", ["start", "claim", "fail"])
        assert "$.a[1]" in run.error and named in run.error
        run.retry("olga", "as it is")
        assert claim(run) is None
        run.refresh_from_db()
        assert (run.status, run.error_kind, sent) == ("failed", "bad_state", [])
        run.retry("olga", "without what cannot be read", state={"a": 2})
        drive(run)
    assert (run.status, sent, run.state_at()) == ("completed", [2], {"a": 2})
    assert run.checkpoints.get(kind="start").body == body
    assert "tests.runs.moved_away" not in sys.modules


def test_an_effect_may_not_be_opened_that_is_not_what_was_approved():
    """P8: the database refuses it, whoever inserts it."""
    from django.db import DatabaseError, IntegrityError

    graph = Graph("gated", state=Log)

    @graph.node
    def propose(run, state):
        run.call(post, text="hello", approve=Ask("Post?"))

    with registered(graph):
        run = start("gated", {})
        drive(run)
        question = answer(run)
        with pytest.raises((DatabaseError, IntegrityError), match="not what was approved"):
            LedgerEntry.objects.create(
                run=run, step=1, key="x", kind="effect", name="post", request='{"text":"bye"}',
                request_digest="0" * 64, opened_at=run.created_at, decided_by=question,
            )  # fmt: skip
