"""What a reviewer reads at a glance: a row of the inbox, how a run got here, and what became of it afterwards."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest

from approvals.models import Approval
from runs import start
from runs.engine import clock
from tests.approvals.cases import MAIL, ask, waiting_run
from tests.approvals.pages import CALL, as_person, page_of, press
from tests.runs.driving import drive, pass_time, registered
from tests.security.letters import letters, posted

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def clock_is_put_back():
    yield
    clock.AHEAD = timedelta()


def words(html: str) -> str:
    """What is read: without tags, in single blanks."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def row_of(client, approval: Approval) -> str:
    page = client.get("/?scope=all").content.decode()
    return re.search(rf'<li class="inbox-row" id="row-{approval.pk}".*?</li>', page, re.DOTALL)[0]


def test_a_row_says_what_is_asked_by_which_run_for_whom_until_when_and_how_far_it_is(signed_in, bob, person):
    mara = person("mara", "pm")
    mara.first_name, mara.last_name = "Mara", "Lind"
    mara.save()
    run = waiting_run(on_behalf_of=person("olaf"))
    approval = ask(run=run, due=timedelta(days=3), risk="high", quorum=2, question="Send <it>?")
    approval.claim(by=mara)
    Approval.objects.get(pk=approval.pk).decide(by=bob, verdict="approve")
    Approval.objects.filter(pk=approval.pk).update(opened_at=clock.now() - timedelta(minutes=5, seconds=5))
    row = row_of(signed_in, approval)
    said = words(row)
    for each in ("Send <it>?", f"mailing {run.short_id} · for olaf", "5 min", "High risk", "1 of 2", "due "):
        assert each in said, each
    assert "Claimed by Mara Lind" in row


def test_whom_it_goes_to_and_how_much_it_is_stand_before_all_else(signed_in):
    """B8: prominent wherever the author put them; what is long comes last."""
    payload = {"body": "word " * 60, "note": "Thanks.", "copies": 2, "amount": 900, "to": "helen@example.com"}
    page = page_of(signed_in, ask(payload, call=CALL))
    card = page[page.index('class="outcome"') : page.index("Who may decide")]
    labels = [words(label) for label in re.findall(r"<dt[^>]*>(.*?)</dt>", card, re.DOTALL)]
    assert set(labels[:2]) == {"Amount", "To"} and labels.index("Note") < labels.index("Body")


def test_who_may_decide_begins_with_the_reader_and_says_of_which_text_a_vote_was(ada, bob, person):
    zoe = person("zoe", "pm")
    approval = ask(quorum=2)
    approval.decide(by=bob, verdict="approve", reason="Fine.")
    seats = page_seats(zoe, approval)
    assert [words(seat).split()[1] for seat in seats] == ["bob", "zoe,", "ada"]
    Approval.objects.get(pk=approval.pk).decide(by=ada, verdict="edit", payload={**MAIL, "copies": 9})
    voted = words(page_seats(zoe, approval)[0])
    assert "bob" in voted and "for an earlier text; asked again" in voted and "Fine." not in voted


def page_seats(person, approval: Approval) -> list[str]:
    page = page_of(as_person(person), approval)
    votes = page[page.index('class="votes"') :].partition("</ul>")[0]
    return re.findall(r"<li.*?</li>", votes, re.DOTALL)


@pytest.fixture
def letter(db):
    with registered(letters):
        yield letters
    posted.clear()


@pytest.mark.django_db(transaction=True)
def test_the_way_here_and_what_follows_are_told_as_they_are_and_never_ahead(signed_in, letter):
    """Nothing is said to be done before it is: taken by the run, and ended, are told when they are in its rows."""
    run = start("letters", {})
    drive(run)
    approval = Approval.objects.get(run=run)
    page = page_of(signed_in, approval)
    path = words(page[page.index("How the run got here") :].partition("</section>")[0])
    assert f"/runs/{run.pk}/" in page and "letter" in path and path.endswith("waits for this")

    def state() -> str:
        page = signed_in.get(f"/approvals/{approval.pk}/parts/state/").content.decode()
        return words(page)

    press(signed_in, approval)
    told = state()
    assert "You approved this" in told and "The run may take the answer in" in told
    assert "goes on" not in told and "The run is" not in told
    pass_time(10)
    assert "The run has not taken the answer yet." in state()
    drive(run)
    assert len(posted) == 1
    assert "The run is completed." in state()
