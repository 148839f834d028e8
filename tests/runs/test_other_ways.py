"""A node may catch a failure and go another way: what it did there is done, whatever is repaired or forked (O2)."""

from __future__ import annotations

import pytest

from runs import Permanent, start
from runs.engine.forking import would_send
from runs.engine.verify import first_bad_row
from runs.errors import Conflict, Invalid
from runs.models import LedgerEntry, Run
from tests.runs.driving import answer, drive
from tests.runs.travel import happened
from tests.runs.trips import started
from tests.runs.workshop import done, faults

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("empty_workshop", "trips_known"),
]


def failed(graph: str, *items: str) -> Run:
    faults.update({item: [Permanent("the saw is broken")] for item in items})
    run = start(graph, {})
    drive(run)
    assert run.status == "failed", run.error
    return run


@pytest.mark.parametrize("way", ["retry", "fork"])
def test_a_failure_that_the_node_had_caught_is_not_tried_again_beside_what_it_did_instead(way):
    run = failed("workshop-careful", "wood", "chair")
    assert done == ["sold scrap for 1"]
    if way == "retry":
        run.retry("olga", "the saw is mended")
    else:
        run = run.fork("olga", "the saw is mended")
    drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["scrap sold", "CHAIR"])
    assert done == ["sold scrap for 1", "chair"]
    assert first_bad_row(run) is None


def test_a_failure_that_the_node_had_caught_is_tried_again_where_nothing_was_done_instead():
    run = failed("workshop-careful", "wood", "scrap")
    run.retry("olga", "the saw is mended")
    drive(run)
    assert (run.status, done) == ("completed", ["wood", "chair"])


@pytest.mark.parametrize("way", ["retry", "fork"])
def test_of_several_at_once_only_what_failed_is_tried_again(way):
    """The ones after it were called all the same, so that they are done after it had failed."""
    run = failed("workshop-side-by-side", "wood", "lamp")
    assert done == ["chair"]
    for _again in range(2):
        run = run.fork("olga", "mended") if way == "fork" else run
        if way == "retry":
            run.retry("olga", "mended")
        drive(run)
        if run.status == "completed":
            break
        faults.clear()
    assert run.state_at()["log"] == ["WOOD", "CHAIR", "LAMP"]
    assert sorted(done) == ["chair", "lamp", "wood"], "each once"


@pytest.mark.parametrize(("kind", "anew"), [("step", []), ("wait", ["chair"])])
def test_an_authors_key_that_was_done_before_a_fork_is_done_for_the_fork_as_well(kind, anew):
    """It holds in the whole run, so for a fork, and a fork of that, in what came before it: asked again later, it is
    neither done a second time nor proposed to people anew. The fork begins after the step that did it, or in it."""
    run = start("workshop-once-more", {})
    drive(run)
    answer(run, "plan:{run_id}?", "approve")
    drive(run)
    assert (run.status, done) == ("completed", ["wood", "sold plan for 1", "chair"]), run.error
    place = run.checkpoints.filter(kind=kind).order_by("seq")[0].seq
    assert len(would_send(run, place)) == len(anew)
    fork = run.fork("olga", "another chair", place)
    for forks in (1, 2):
        drive(fork)
        assert (fork.status, done[3:]) == ("completed", anew * forks), fork.error
        assert first_bad_row(fork) is None
        fork = fork.fork("olga", "and another", 0)
    run.erase("asked for", "iris")
    drive(fork)
    assert (fork.status, done[3:]) == ("failed", anew * 3)
    assert "its result was erased" in fork.error


def test_an_authors_key_that_a_repair_had_asked_anew_is_done_for_a_fork_as_well():
    run = failed("workshop-once-more", "wood")
    run.retry("olga", "mended")
    drive(run)
    answer(run, "plan:{run_id}?", "approve")
    drive(run)
    assert (run.status, done) == ("completed", ["wood", "sold plan for 1", "chair"]), run.error
    fork = run.fork("olga", "look again", run.checkpoints.filter(kind="step").order_by("seq")[0].seq)
    drive(fork)
    assert (fork.status, len(done)) == ("completed", 3), fork.error


def test_a_run_that_was_undone_is_forked_only_from_before_that():
    run = started()
    drive(run)  # undoes
    assert run.status == "failed" and "cancelled FLIGHT" in happened, run.error
    with pytest.raises(Conflict, match="Fork it from before"):
        run.retry("olga", "again")
    for look in (lambda: run.fork("olga", "again"), lambda: would_send(run)):
        with pytest.raises(Conflict, match=r"was undone \(book:.*checkpoint [01], or an earlier one"):
            look()
    before = run.checkpoints.filter(kind="step").get().seq - 1
    assert {one.name for one in would_send(run, before)} == {"book", "tell"}
    fork = run.fork("olga", "again", before)
    assert not LedgerEntry.objects.filter(run=fork).exists(), "nothing stands that it could take over"
    drive(fork)
    assert first_bad_row(fork) is None


def test_long_names_and_odd_numbers_are_no_error_of_the_database():
    run = failed("workshop", "chair")
    run.retry("y" * 500, "mended")
    told = run.checkpoints.get(kind="repair").actor
    assert told.startswith("y" * 160) and "500 characters" in told
    drive(run)
    for seq in (True, "a", 1.5):
        with pytest.raises(Invalid, match="by its number"):
            run.fork("olga", "again", seq)
