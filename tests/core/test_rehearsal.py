"""The executor and the context over a ledger in memory: no Django, no clock, as in a REPL."""

from __future__ import annotations

import errno
import smtplib
import ssl

import pytest

from runs.core.ask import Ask, Found
from runs.core.errors import Ambiguous, Permanent, Rejected, Transient
from runs.core.graph import END, Graph
from runs.core.mapping import classify
from runs.core.rehearsal import rehearse
from runs.core.retry import Retry
from runs.core.tool import tool

calls: list[object] = []


@pytest.fixture(autouse=True)
def no_calls():
    calls.clear()


@tool(kind="write", honours_key=True)
def send(text: str, *, idempotency_key: str) -> str:
    calls.append((text, idempotency_key))
    return f"sent {text}"


@tool
def look(word: str) -> str:
    calls.append(word)
    return word.upper()


def graph_of(node, **options):
    graph = Graph("rehearsed")
    graph.node(node, **options)
    return graph


def test_a_node_that_waits_runs_again_from_its_top_and_nothing_happens_twice():
    """S7: effect, interrupt, effect in one node."""
    bodies = []

    def node(run, state):
        bodies.append(1)
        state["first"] = run.call(look, word="a")
        state["said"] = run.interrupt("Go on?").verdict
        state["second"] = run.call(send, text="b")

    ended = rehearse(graph_of(node), {}, {"node": {"verdict": "approve"}})
    assert ended.status == "completed"
    assert ended.state == {"first": "A", "said": "approve", "second": "sent b"}
    assert [call if isinstance(call, str) else call[0] for call in calls] == ["a", "b"]
    assert len(bodies) == 2


def test_without_an_answer_it_waits_and_says_for_what():
    ended = rehearse(graph_of(lambda run, state: run.interrupt("Well?", name="ask")), {})
    assert (ended.status, ended.waits_for) == ("waiting", ("ask",))


def test_a_gated_call_runs_with_what_was_approved():
    def node(run, state):
        state["out"] = run.call(send, text="hello", key="k:{run_id}", approve=Ask("Send?"))

    ended = rehearse(graph_of(node), {}, {"k:{run_id}?": {"verdict": "edit", "payload": {"text": "hi"}}})
    assert ended.state == {"out": "sent hi"}
    assert calls == [("hi", "k:00000000-0000-7000-8000-000000000001")]


def test_swallowing_a_wait_does_not_get_a_node_past_it():
    def node(run, state):
        try:
            run.interrupt("Well?")
        except BaseException:
            state["swallowed"] = True

    ended = rehearse(graph_of(node), {})
    assert ended.status == "waiting"
    assert ended.state == {}


def test_except_exception_lets_a_wait_pass():
    def node(run, state):
        try:
            run.interrupt("Well?")
        except Exception:
            state["swallowed"] = True

    assert rehearse(graph_of(node), {}).status == "waiting"


def test_one_key_asked_twice_in_one_execution_is_an_error():
    def node(run, state):
        run.call(send, text="a", key="k")
        run.call(send, text="b", key="k")

    ended = rehearse(graph_of(node, retry=Retry(attempts=1)), {})
    assert (ended.status, ended.error_kind) == ("failed", "permanent")
    assert "asked twice" in ended.error


def test_equal_calls_are_told_apart_by_their_count_and_order_may_change():
    """S11: a result never answers another question."""
    orders = iter([("a", "b"), ("b", "a")])

    def node(run, state):
        words = next(orders)
        state["got"] = {word: run.call(look, word=word) for word in words}
        state["again"] = run.call(look, word="a")
        run.interrupt("Well?")

    ended = rehearse(graph_of(node), {}, {"node": {"verdict": "approve"}})
    assert ended.state["got"] == {"a": "A", "b": "B"}
    assert calls == ["a", "b", "a"]
    assert sorted(ended.ledger.past) == sorted({*ended.ledger.past})


def test_a_write_that_is_not_asked_for_again_diverges():
    """S11, S12: showing both requests and advising an explicit key."""
    texts = iter(["one", "two"])

    def node(run, state):
        run.call(send, text=next(texts))
        run.interrupt("Well?")

    ended = rehearse(graph_of(node), {}, {"node": {"verdict": "approve"}})
    assert ended.error_kind == "diverged"
    assert "one" in ended.error and "two" in ended.error and "explicit key" in ended.error
    assert [text for text, _ in calls] == ["one"]


def test_a_gather_asks_for_all_before_it_opens_any():
    """Two writes by one tool in one gather are no divergence, also when the node runs again."""

    def node(run, state):
        state["out"] = run.gather(send.bind(text="a"), send.bind(text="b"), Ask("Well?", name="q"))[:2]

    ended = rehearse(graph_of(node), {}, {"q": {"verdict": "approve"}})
    assert ended.state == {"out": ["sent a", "sent b"]}
    assert len(calls) == 2


def test_a_transient_failure_is_tried_again_in_place_and_then_exhausted():
    @tool(kind="write", honours_key=True, retry=Retry(attempts=3, first=1))
    def flaky(idempotency_key: str) -> str:
        calls.append(idempotency_key)
        if len(calls) < 3:
            raise Transient("busy")
        return "done"

    def node(run, state):
        state["out"] = run.call(flaky)

    assert rehearse(graph_of(node), {}).state == {"out": "done"}
    assert len(calls) == 3 and len(set(calls)) == 1
    calls.clear()
    flaky = tool(flaky.fn, kind="write", honours_key=True, retry=Retry(attempts=2))
    ended = rehearse(graph_of(node), {})
    assert (ended.status, ended.error_kind, len(calls)) == ("failed", "exhausted", 2)


def test_long_delays_put_the_run_off_and_the_attempts_count_over_both():
    @tool(retry=Retry(attempts=3, first=60, jitter=0))
    def slow() -> str:
        calls.append(1)
        raise Transient("busy")

    ended = rehearse(graph_of(lambda run, state: run.call(slow)), {})
    assert (ended.error_kind, len(calls)) == ("exhausted", 3)
    assert (ended.ledger.clock - ended.ledger.__class__().clock).total_seconds() == 180


@pytest.mark.parametrize("there", [True, False])
def test_an_ambiguous_write_is_looked_up_before_it_is_made_again(there):
    """MISSION A6: 'already succeeded, response lost' is told apart from a transient fault."""

    def find(key, arguments):
        return Found("as found") if there and calls else None

    @tool(kind="write", reconcile=find)
    def lossy(text: str) -> str:
        calls.append(text)
        if len(calls) == 1:
            raise Ambiguous("no answer")
        return "second"

    def node(run, state):
        state["out"] = run.call(lossy, text="x")

    ended = rehearse(graph_of(node), {})
    assert ended.state == {"out": "as found" if there else "second"}
    assert len(calls) == (1 if there else 2)


def test_an_ambiguous_write_that_nobody_can_look_up_is_asked_of_the_operators():
    @tool(kind="write")
    def lossy(text: str) -> str:
        calls.append(text)
        raise Ambiguous("no answer")

    def node(run, state):
        run.call(lossy, text="x", key="k")

    ended = rehearse(graph_of(node), {}, operators=["ops"])
    assert (ended.status, ended.waits_for, calls) == ("waiting", ("k!",), ["x"])
    assert ended.ledger.entries["k"].status == "in_doubt"


def test_a_permanent_failure_is_raised_again_in_a_re_execution_and_not_called_again():
    from runs.core.errors import EffectFailed

    @tool
    def refused() -> None:
        calls.append(1)
        raise Permanent("no such vendor")

    def node(run, state):
        try:
            run.call(refused)
        except EffectFailed as error:
            state["why"] = str(error)
        run.interrupt("Well?")

    ended = rehearse(graph_of(node), {}, {"node": {"verdict": "approve"}})
    assert "no such vendor" in ended.state["why"]
    assert calls == [1]


def test_recorded_values_are_the_same_in_every_execution():
    import itertools

    numbers = itertools.count()

    def node(run, state):
        state["once"] = run.once("n", lambda: next(numbers))
        state["now"] = [run.now(), run.now()]
        state["uuid"] = run.uuid()
        run.note("seen")
        run.interrupt("Well?")

    ended = rehearse(graph_of(node), {}, {"node": {"verdict": "approve"}})
    assert ended.state["once"] == 0
    assert next(numbers) == 1


def test_an_edge_that_was_not_declared_is_refused_naming_what_is_allowed():
    ended = rehearse(graph_of(lambda run, state: "elsewhere", name="here"), {})
    assert ended.error_kind == "permanent"
    assert "'elsewhere'" in ended.error and "END" in ended.error


def test_a_node_with_several_ways_must_say_which():
    ended = rehearse(graph_of(lambda run, state: None, name="here", then=("here", END)), {})
    assert "must return the next node" in ended.error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionRefusedError(), Transient),
        (ConnectionResetError(), Ambiguous),
        (TimeoutError(), Ambiguous),
        (OSError(errno.ENETUNREACH, ""), Ambiguous),
        (ssl.SSLEOFError(), Ambiguous),
        (ssl.SSLCertVerificationError("self-signed"), Permanent),
        (OSError(errno.ENOSPC, ""), OSError),
        (smtplib.SMTPConnectError(421, b""), Transient),
        (smtplib.SMTPServerDisconnected(), Ambiguous),
        (smtplib.SMTPDataError(554, b""), Permanent),
        (smtplib.SMTPDataError(451, b""), Transient),
        (smtplib.SMTPRecipientsRefused({"a": (550, b"")}), Permanent),
        (ValueError(), ValueError),
    ],
)
def test_client_errors_are_classed_by_what_they_say_of_the_call(error, kind):
    assert isinstance(classify(error), kind)


def test_httpx_errors_are_classed_too():
    import httpx

    request = httpx.Request("POST", "http://x")

    def answered(status, **headers):
        return httpx.HTTPStatusError("", request=request, response=httpx.Response(status, headers=headers))

    assert isinstance(classify(httpx.ConnectError("")), Transient)
    assert isinstance(classify(httpx.ReadTimeout("")), Ambiguous)
    for status in (500, 502, 503, 504):
        assert isinstance(classify(answered(status)), Ambiguous), (
            "a gateway may answer after the provider acted"
        )
    assert isinstance(classify(answered(503, **{"retry-after": "7"})), Transient)
    assert isinstance(classify(answered(404)), Permanent)
    busy = classify(answered(429, **{"retry-after": "7"}))
    assert isinstance(busy, Transient) and busy.retry_after == 7


def test_a_rejection_is_caught_by_the_author_or_ends_the_run():
    def node(run, state):
        try:
            run.call(send, text="x", key="k", approve=Ask("Send?"))
        except Rejected as no:
            state["why"] = (no.reason, no.by)

    answers = {"k?": {"verdict": "reject", "reason": "too early", "by": "ada"}}
    assert rehearse(graph_of(node), {}, answers).state == {"why": ("too early", "ada")}
    ended = rehearse(
        graph_of(lambda run, state: run.call(send, text="x", key="k", approve=Ask("Send?"))), {}, answers
    )
    assert (ended.error_kind, calls) == ("rejected", [])


def test_what_is_bound_is_computed_again_before_the_call_and_asked_anew_when_it_changed():
    """A6: the artefact that the payload refers to changes after the approval."""
    content = ["old"]

    def node(run, state):
        state["out"] = run.call(
            send, text="see file", key="k", approve=Ask("Send?", bind=lambda arguments: content[0])
        )

    def approve_late(request):
        if content[0] == "old":
            content[0] = "new"
        return {"verdict": "approve"}

    ended = rehearse(graph_of(node), {}, {"k?": approve_late, "k?2": {"verdict": "approve"}})
    assert ended.status == "completed"
    assert ended.ledger.past["k?"].status == "cancelled"
    assert len(calls) == 1


@pytest.mark.parametrize(("outcome", "log"), [("happened", ["as seen"]), ("not_happened", ["sent x"])])
def test_a_settlement_is_rehearsed_too(outcome, log):
    @tool(kind="write")
    def lossy(text: str) -> str:
        calls.append(text)
        if len(calls) == 1:
            raise Ambiguous("no answer")
        return f"sent {text}"

    def node(run, state):
        state["log"] = [run.call(lossy, text="x", key="k")]

    said = {"verdict": "respond", "payload": {"outcome": outcome, "result": "as seen"}}
    assert rehearse(graph_of(node), {}, {"k!": said}).state == {"log": log}


def test_an_async_node_is_rehearsed_too():
    @tool
    async def fetch(n: int) -> int:
        return n + 1

    async def node(run, state):
        state["got"] = await run.gather(fetch.bind(n=1), fetch.bind(n=2))
        state["said"] = (await run.interrupt("Well?")).verdict

    ended = rehearse(graph_of(node), {}, {"node": {"verdict": "approve"}})
    assert ended.state == {"got": [2, 3], "said": "approve"}


def test_a_tools_parameter_may_not_have_a_name_of_run_calls_own():
    from runs.core.errors import GraphError

    with pytest.raises(GraphError, match="'key' is a word of run.call"):
        tool(lambda key: None)
