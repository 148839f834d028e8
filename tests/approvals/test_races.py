from __future__ import annotations

import pytest

from approvals import signing
from approvals.chain import first_break
from approvals.models import Activity, Approval, Decision
from approvals.signing import MOST_WRONG, NotSigned, Proof, WrongPassword
from runs.errors import Conflict, NotAllowed
from runs.models import Run
from tests.approvals.cases import MAIL, answer_of, ask, told
from tests.at_once import at_once

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 5


def fresh(approval):
    """What another process would hold."""
    return Approval.objects.get(pk=approval.pk)


def by_kind(ends):
    refused = [end for end in ends if isinstance(end, Conflict)]
    done = [end for end in ends if not isinstance(end, Exception)]
    assert len(refused) + len(done) == len(ends), ends
    return done, refused


def test_of_two_at_the_same_moment_one_decides_and_one_is_told(ada, bob):
    """S9: one decision, both attempts in the trail. Its effect: tests/approvals/test_runs_go_on.py."""
    for _ in range(ROUNDS):
        approval = ask()
        done, refused = by_kind(
            at_once(
                lambda: fresh(approval).decide(by=ada, verdict="approve", revision=1),  # noqa: B023
                lambda: fresh(approval).decide(by=bob, verdict="reject", reason="no", revision=1),  # noqa: B023
            )
        )
        assert (len(done), len(refused)) == (1, 1)
        assert answer_of(approval)["by"] == done[0].by.username
        assert done[0].by.username in str(refused[0])
        assert Run.objects.get(pk=approval.run_id).answers == 1
        assert [word.split()[0] for word in told(approval)][2] == "refused"
        assert first_break(fresh(approval)) is None


def test_one_operation_sent_twice_at_the_same_moment_is_done_once(ada):
    for number in range(ROUNDS):
        approval = ask()

        def send(approval=approval, number=number):
            return fresh(approval).decide(by=ada, verdict="approve", operation_id=f"op-{number}")

        first, second = at_once(send, send)
        assert first == second
        assert told(approval) == ["opened", "approve by ada"]


def test_one_operation_id_for_two_approvals_at_the_same_moment_decides_one(ada):
    for number in range(ROUNDS):
        one, other = ask(), ask()
        done, refused = by_kind(
            at_once(
                *(
                    lambda which=which, number=number: fresh(which).decide(
                        by=ada, verdict="approve", operation_id=f"op-{number}"
                    )
                    for which in (one, other)
                )
            )
        )
        assert (len(done), len(refused)) == (1, 1)
        assert Decision.objects.filter(operation_id=f"op-{number}").count() == 1


def test_two_of_two_may_press_in_the_same_second(ada, bob):
    for _ in range(ROUNDS):
        approval = ask(quorum=2)
        done, _refused = by_kind(
            at_once(
                *(
                    lambda person=person, approval=approval: fresh(approval).decide(
                        by=person, verdict="approve", revision=1
                    )
                    for person in (ada, bob)
                )
            )
        )
        assert len(done) == 2
        assert answer_of(approval)["outcome"] == "approved"
        assert first_break(fresh(approval)) is None


def test_a_vote_and_an_edit_at_the_same_moment_never_approve_what_one_of_them_did_not_see(ada, bob):
    for _ in range(ROUNDS):
        approval = ask(quorum=2)
        at_once(
            lambda: fresh(approval).decide(by=ada, verdict="approve", revision=1),  # noqa: B023
            lambda: fresh(approval).decide(  # noqa: B023
                by=bob, verdict="edit", payload={**MAIL, "copies": 8}, revision=1
            ),
        )
        assert answer_of(approval) is None
        assert fresh(approval).payload["copies"] == 8
        assert [vote.by for vote in fresh(approval).votes.all()] == [bob]


def test_comments_at_the_same_moment_are_all_kept(ada, bob):
    approval = ask()
    ends = at_once(
        *(
            lambda person=person, number=number: fresh(approval).comment(person, f"{number}")
            for person in (ada, bob)
            for number in range(3)
        )
    )
    assert not [end for end in ends if isinstance(end, Exception)]
    assert fresh(approval).activities.filter(kind="commented").count() == 6
    assert first_break(fresh(approval)) is None


def test_of_two_claims_at_the_same_moment_one_holds(ada, bob):
    for _ in range(ROUNDS):
        approval = ask()
        done, refused = by_kind(
            at_once(*(lambda one=one, approval=approval: fresh(approval).claim(one) for one in (ada, bob)))
        )
        assert (len(done), len(refused)) == (1, 1)
        assert fresh(approval).assignee in (ada, bob)
        assert len(told(approval)) == 2


def test_passwords_guessed_at_the_same_moment_are_five_in_all(ada):
    """Each try is counted where its answer is given: no more answers than tries, however many are under way."""
    approvals = [ask(sign=True) for _number in range(12)]
    ends = at_once(
        *(
            lambda approval=approval: fresh(approval).decide(by=ada, verdict="approve", password="guess")
            for approval in approvals
        )
    )
    answered = [end for end in ends if isinstance(end, WrongPassword)]
    put_off = [end for end in ends if isinstance(end, NotAllowed)]
    assert (len(answered), len(put_off)) == (MOST_WRONG, len(approvals) - MOST_WRONG)
    assert Activity.objects.filter(by=ada, kind="refused").count() == MOST_WRONG


def test_the_right_one_among_the_guesses_is_answered_no_later_than_the_fifth_wrong_one(ada, monkeypatch):
    """It was looked at while there were tries left; the others were answered meanwhile."""
    approval = ask(sign=True)

    def meanwhile(password, encoded):
        monkeypatch.undo()
        for _number in range(MOST_WRONG):
            with pytest.raises(WrongPassword):
                ask(sign=True).decide(by=ada, verdict="approve", password="guess")
        return signing.check_password(password, encoded)

    monkeypatch.setattr(signing, "check_password", meanwhile)
    with pytest.raises(NotAllowed, match="quarter of an hour"):
        approval.decide(by=ada, verdict="approve", password="ada")
    assert answer_of(approval) is None


def test_one_proof_signs_one_of_several_decisions_at_the_same_moment(ada):
    """The session tells it too late: each request has read it before another has written."""
    for number in range(ROUNDS):
        proof, approvals = Proof("passkey", 1_700_000_000.25 + number), [ask(sign=True) for _each in range(5)]
        ends = at_once(
            *(
                lambda approval=approval, proof=proof: fresh(approval).decide(
                    by=ada, verdict="approve", proof=proof
                )
                for approval in approvals
            )
        )
        assert sum(isinstance(end, NotSigned) for end in ends) == 4, ends
        assert sum(answer_of(approval) is not None for approval in approvals) == 1
