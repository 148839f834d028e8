"""What a repair puts aside, and under which keys it is asked anew; in memory, so without a database."""

from __future__ import annotations

import pytest

from runs import Ask, EffectFailed, Expired, Permanent, Rejected, Retry, tool
from runs.core.commands import carry_out, do_at_once
from runs.core.keys import following, follows, repeats
from runs.core.memory_ledger import MemoryLedger
from runs.core.outcomes import Stop
from runs.core.questions import Questions
from runs.core.repair import set_aside

sent: list[tuple[int, str]] = []
fails: list[Exception] = []


@tool(kind="write", retry=Retry(attempts=1))
def pay(amount: int, idempotency_key: str) -> str:
    if fails:
        raise fails.pop()
    sent.append((amount, idempotency_key))
    return f"paid {amount}"


@pytest.fixture(autouse=True)
def nothing_paid():
    sent.clear()
    fails.clear()


def executed(ledger: MemoryLedger, amount: int = 5, key: str | None = None, ask: Ask | None = None) -> str:
    return carry_out(Questions(ledger).call(pay, key, ask, {"amount": amount}), do_at_once)


def repaired(ledger: MemoryLedger, error_kind: str = "permanent") -> list[str]:
    past = set_aside(ledger.entries.values(), error_kind)
    for entry in past:
        entry.aside = True
    return [entry.key for entry in past]


@pytest.mark.parametrize("key", ["pay:{run_id}", None])
def test_a_failed_call_is_asked_anew_under_the_next_key_and_a_done_one_is_not(key):
    ledger = MemoryLedger()
    for times in (1, 2):
        fails.append(Permanent("no money"))
        with pytest.raises(EffectFailed):
            executed(ledger, key=key)
        with pytest.raises(EffectFailed):
            executed(ledger, key=key)
        assert len(repaired(ledger)) == 1, f"repair {times}"
    assert executed(ledger, key=key) == executed(ledger, key=key) == "paid 5"
    [(_amount, under)] = sent
    assert under.endswith(":r3") and repaired(ledger) == []
    assert [one.status for one in ledger.entries.values()] == ["failed", "failed", "done"]


def test_an_authors_key_counts_on_in_a_later_step():
    ledger, key = MemoryLedger(), "pay:{run_id}"
    fails.append(Permanent("no money"))
    with pytest.raises(EffectFailed):
        executed(ledger, key=key)
    repaired(ledger)
    ledger.leave_step()
    assert executed(ledger, key=key) == "paid 5"
    ledger.leave_step()
    assert executed(ledger, key=key) == "paid 5", "it holds in the whole run"
    with pytest.raises(Permanent, match="with other arguments"):
        executed(ledger, amount=6, key=key)
    assert [under.rpartition(":")[2] for _amount, under in sent] == ["r2"]


def test_keys_that_a_repair_could_mix_up_are_refused():
    questions = Questions(MemoryLedger())
    carry_out(questions.call(pay, "a", None, {"amount": 1}), do_at_once)
    with pytest.raises(Permanent, match="asked again ends like this"):
        carry_out(questions.call(pay, "a:r2", None, {"amount": 2}), do_at_once)
    questions = Questions(MemoryLedger())
    carry_out(questions.call(pay, "b:r17", None, {"amount": 3}), do_at_once)
    with pytest.raises(Permanent, match="asked again ends like this"):
        carry_out(questions.call(pay, "b", None, {"amount": 4}), do_at_once)
    for beside in ("b:r17~2", "b:r17?3"):
        with pytest.raises(Permanent, match="asked again ends like this"):
            carry_out(questions.call(pay, beside, None, {"amount": 4}), do_at_once)
    carry_out(questions.call(pay, "c:r1", None, {"amount": 5}), do_at_once)
    carry_out(questions.call(pay, "c", None, {"amount": 6}), do_at_once)


def test_the_latest_of_many_repeats_counts():
    assert repeats(["a", "a:r2", "a:r10", "a:r9", "b:r1", "c:r2", "c:x"]) == {"a": "a:r10", "c": "c:r2"}
    assert follows("a", "a:r2") and follows("a:r2", "a:r10") and follows("a:r1", "a:r1:r2")
    assert not any(follows(*pair) for pair in [("a", "a"), ("a:r3", "a:r2"), ("a", "b:r2"), ("a:r2", "a")])
    assert (following("a", "a"), following("a:r2", "a"), following("a:r10", "a")) == ("a:r2", "a:r3", "a:r11")


def said(ledger: MemoryLedger, name: str, **answer: object) -> None:
    ledger.answers = {name: answer}
    ledger.settle()


def test_an_approval_stands_for_the_same_proposal_alone_and_an_older_one_never_again():
    ledger, ask = MemoryLedger(), Ask("Pay?")
    with pytest.raises(Stop):
        executed(ledger, key="k", ask=ask)
    said(ledger, "k?", verdict="edit", payload={"amount": 4})
    fails.append(Permanent("no money"))
    with pytest.raises(EffectFailed):
        executed(ledger, key="k", ask=ask)
    assert repaired(ledger) == ["k?", "k"]
    with pytest.raises(Stop):
        executed(ledger, amount=6, key="k", ask=ask)
    said(ledger, "k?2", verdict="approve")
    fails.append(Permanent("no money"))
    with pytest.raises(EffectFailed):
        executed(ledger, amount=6, key="k", ask=ask)
    assert repaired(ledger) == ["k?2", "k:r2"]
    with pytest.raises(Stop):  # people have said something else since
        executed(ledger, amount=5, key="k", ask=ask)
    assert ledger.entries["k?3"].status == "open"
    said(ledger, "k?3", verdict="approve")
    assert executed(ledger, amount=5, key="k", ask=ask) == "paid 5"
    assert ledger.entries["k:r3"].decided_by == "k?3" and repaired(ledger) == []


def test_a_derived_key_of_another_proposal_does_not_diverge_from_what_was_put_aside():
    ledger, ask = MemoryLedger(), Ask("Pay?")
    with pytest.raises(Stop):
        executed(ledger, ask=ask)
    [name] = ledger.entries
    said(ledger, name, verdict="reject", reason="too much")
    with pytest.raises(Rejected):
        executed(ledger, ask=ask)
    with pytest.raises(Stop) as before:
        executed(ledger, amount=3, ask=ask)
    assert before.value.outcome.kind == "diverged", "as long as no repair was made"
    assert repaired(ledger, "rejected") == [name]
    with pytest.raises(Rejected):
        executed(ledger, ask=ask)
    with pytest.raises(Stop):
        executed(ledger, amount=3, ask=ask)
    assert [one.status for one in ledger.entries.values()] == ["done", "open"]


@pytest.mark.parametrize("kind, asked", [("expired", 2), ("permanent", 1)])
def test_what_nobody_answered_is_asked_anew_where_that_failed_the_run(kind, asked):
    ledger, ask = MemoryLedger(), Ask("Pay?")
    with pytest.raises(Stop):
        executed(ledger, key="k", ask=ask)
    said(ledger, "k?", verdict="reject", outcome="expired")
    with pytest.raises(Expired):
        executed(ledger, key="k", ask=ask)
    repaired(ledger, kind)
    with pytest.raises(Stop if asked == 2 else Expired):
        executed(ledger, key="k", ask=ask)
    assert len(ledger.entries) == asked


def test_what_a_question_was_bound_to_is_asked_anew_if_it_changed_since():
    looked = ["one"]
    ledger, ask = MemoryLedger(), Ask("Pay?", bind=lambda arguments: list(looked))
    with pytest.raises(Stop):
        executed(ledger, key="k", ask=ask)
    said(ledger, "k?", verdict="approve")
    fails.append(Permanent("no money"))
    with pytest.raises(EffectFailed):
        executed(ledger, key="k", ask=ask)
    repaired(ledger)
    looked.append("two")
    with pytest.raises(Stop):
        executed(ledger, key="k", ask=ask)
    assert (ledger.entries["k?"].status, ledger.entries["k?2"].status) == ("done", "open")
    said(ledger, "k?2", verdict="approve")
    assert executed(ledger, key="k", ask=ask) == "paid 5"


def test_a_call_that_is_asked_anew_takes_the_place_of_no_other_of_its_tool():
    """It had failed and the node went on; what the node did after it is done, and no divergence."""

    def node(ledger: MemoryLedger) -> list[str]:
        questions, said = Questions(ledger), []
        for amount in (1, 2, 3):
            try:
                said.append(carry_out(questions.call(pay, None, None, {"amount": amount}), do_at_once))
            except EffectFailed:
                said.append("nothing")
        return said

    ledger = MemoryLedger()
    fails.append(Permanent("no money"))
    assert node(ledger) == ["nothing", "paid 2", "paid 3"]
    assert len(repaired(ledger)) == 1
    assert node(ledger) == node(ledger) == ["paid 1", "paid 2", "paid 3"]
    assert [amount for amount, _under in sent] == [2, 3, 1]
