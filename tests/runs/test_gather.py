"""Several at once: what a gather does when one of its items fails, waits or is in doubt."""

from __future__ import annotations

from collections import Counter

import pytest

from runs import (
    Ask,
    EffectFailed,
    Graph,
    Permanent,
    start,
    tool,
)
from runs.core import codec
from runs.core.outcomes import Waits
from tests.runs.driving import answer, drive, pass_call, registered
from tests.runs.posting import send, send_blindly, sent
from tests.runs.states import Log

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


def test_a_gather_of_nothing_is_an_empty_list():
    graph = Graph("no vendors", state=Log)

    @graph.node
    def all_of_none(run, state):
        state.log += run.gather()
        state.log.append("went on")

    with registered(graph):
        run = start("no vendors", {})
        drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["went on"])


def test_a_call_that_fails_for_good_beside_a_question_is_raised_once_the_question_is_answered():
    @tool
    def refused() -> str:
        sent.append("refused")
        raise Permanent("no such page")

    graph = Graph("half refused", state=Log)

    @graph.node
    def both(run, state):
        try:
            run.gather(refused.bind(), Ask("Well?", name="well"), send.bind(text="beside"))
        except EffectFailed as error:
            state.log.append(str(error))

    with registered(graph):
        run = start("half refused", {})
        assert drive(run) == Waits(("well",))
        assert sorted(sent) == ["beside", "refused"]
        answer(run, "well")
        drive(run)
    assert run.status == "completed"
    assert "no such page" in run.state_at()["log"][0]
    assert sorted(sent) == ["beside", "refused"], "each once"


@pytest.mark.parametrize("is_async", [False, True])
def test_of_three_writes_at_once_the_one_without_an_answer_is_settled_and_the_others_stay_done(is_async):
    graph = Graph("three letters", state=Log, operators="ops")
    items = [send_blindly.bind(text=text) for text in ("first", "lost", "third")]
    if is_async:

        @graph.node
        async def letters(run, state):
            state.log += await run.gather(*items)

    else:

        @graph.node
        def letters(run, state):
            state.log += run.gather(*items)

    with registered(graph):
        run = start("three letters", {})
        assert isinstance(drive(run), Waits)
        by_status = Counter(run.entries.values_list("status", flat=True))
        assert by_status == {"done": 2, "open": 1}, "not in doubt before the call can be over"
        pass_call()
        drive(run)
        question = run.entries.get(kind="interrupt")
        assert question.settles.status == "in_doubt"
        assert codec.loads(question.settles.request) == {"text": "lost"}
        answer(run, verdict="respond", payload={"outcome": "happened", "result": "sent after all"})
        drive(run)
    assert run.state_at()["log"] == ["sent first", "sent after all", "sent third"]
    assert sorted(sent) == ["first", "lost", "third"], "nothing was sent twice"


def test_two_writes_in_doubt_at_once_are_asked_as_two_questions():
    graph = Graph("two lost", state=Log, operators="ops")

    @tool(kind="write")
    def other(text: str) -> str:
        sent.append(text)
        raise ConnectionResetError("no answer")

    @graph.node
    def letters(run, state):
        state.log += run.gather(other.bind(text="a"), other.bind(text="b"))

    with registered(graph):
        run = start("two lost", {})
        drive(run)
        pass_call()
        drive(run)
        questions = list(run.entries.filter(kind="interrupt"))
        assert len(questions) == 2
        for question in questions:
            text = codec.loads(question.settles.request)["text"]
            answer(run, question.key, "respond", payload={"outcome": "happened", "result": f"done {text}"})
        drive(run)
    assert run.state_at()["log"] == ["done a", "done b"]
    assert sorted(sent) == ["a", "b"]
