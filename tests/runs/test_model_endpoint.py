"""An agent's model over real HTTP: tools in the request, calls in the reply, and what they took.

What can go wrong on the way is tested with the brief (tests/examples/test_drafting.py): it is the same client.
"""

from __future__ import annotations

import asyncio
import json
import threading
from decimal import Decimal

import pytest

from runs import END, Graph, Permanent, Transient, tool
from runs.agent import Agent, Budget
from runs.core.rehearsal import rehearse
from runs.model_endpoint import Endpoint
from tests.runs.buying import Case
from tests.runs.chat_server import ChatServer, call, completion, refusal, stream


@pytest.fixture(autouse=True)
def without_proxy(monkeypatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")


way = {"async": False}


@pytest.fixture(autouse=True, params=[False, True], ids=["node", "async node"])
def node_is_async(request, monkeypatch) -> None:
    """Everything twice: the client of threads, and the one of an event loop."""
    monkeypatch.setitem(way, "async", request.param)


@tool
def stock(item: str) -> int:
    """How many are left."""
    return {"lamp": 3}[item]


def ask(server: ChatServer, show=None, timeout=5.0, **options):
    endpoint = Endpoint(server.url, "tiny", **options)
    question = [{"role": "user", "content": "Hello"}], [], None, timeout, show
    return asyncio.run(endpoint.areply(*question)) if way["async"] else endpoint.reply(*question)


def graph_of(endpoint: Endpoint, **options) -> Graph:
    agent, graph = Agent("You count.", endpoint, [stock], **options), Graph("counting", state=Case)

    async def work(run, state):
        state.answer = await agent.turn(run, state.talk, state.request)
        return "work" if state.answer is None else END

    def work_in_thread(run, state):
        state.answer = agent.turn(run, state.talk, state.request)
        return "work_in_thread" if state.answer is None else END

    node = work if way["async"] else work_in_thread
    graph.node(then=(node.__name__, END))(node)
    return graph


def test_an_agent_talks_to_an_endpoint_that_is_busy_at_first():
    busy, asks = refusal(429, **{"Retry-After": "2"}), completion(None, call("stock", '{"item": "lamp"}'))
    with ChatServer(busy, asks, refusal(500), completion("Three.")) as server:
        endpoint = Endpoint(server.url, "tiny", secret="MODEL_KEY", more={"temperature": 0})
        ended = rehearse(graph_of(endpoint), {}, secrets={"MODEL_KEY": "a-long-key-1"})

    assert (ended.status, ended.state.answer, ended.state.talk.model) == ("completed", "Three.", "tiny-1")
    assert server.keys == ["Bearer a-long-key-1"] * 4
    assert server.requests[0] == server.requests[1] and server.requests[2] == server.requests[3]
    first, last = server.requests[0], server.requests[-1]
    assert (first["model"], first["temperature"]) == ("tiny", 0)
    assert first["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "stock",
                "description": "How many are left.",
                "parameters": {
                    "additionalProperties": False,
                    "properties": {"item": {"title": "Item", "type": "string"}},
                    "required": ["item"],
                    "title": "stock_arguments",
                    "type": "object",
                },
            },
        }
    ]
    assert last["messages"][2:] == [
        {"role": "assistant", "content": None, "tool_calls": [call("stock", '{"item": "lamp"}')]},
        {"role": "tool", "tool_call_id": "call_a", "content": "3"},
    ]
    assert "a-long-key-1" not in str(ended.ledger.past) + str(ended.state)


def test_half_a_pair_of_a_text_that_was_cut_goes_back_as_it_came():
    """D1: what a model wrote is recorded as it is, and asked with again."""
    cut = "cut in the middle \ud83d"
    with ChatServer(completion(cut, call("stock", '{"item": "lamp"}')), completion("Three.")) as server:
        ended = rehearse(graph_of(Endpoint(server.url, "tiny")), {})
    assert (ended.status, ended.state.answer) == ("completed", "Three.")
    assert server.requests[-1]["messages"][2]["content"] == cut


def test_a_refusal_of_the_endpoint_fails_the_run_in_its_words():
    with ChatServer(refusal(400, "tools are not supported")) as server:
        ended = rehearse(graph_of(Endpoint(server.url, "tiny")), {})
    assert (ended.status, ended.error_kind) == ("failed", "permanent")
    assert "answered 400: tools are not supported" in ended.error


def test_what_the_endpoint_counts_is_spent_from_the_budget():
    asks = completion(None, call("stock", '{"item": "lamp"}'), usage={"total_tokens": 600, "cost": 0.0125})
    with ChatServer(asks) as server:
        ended = rehearse(graph_of(Endpoint(server.url, "tiny"), budget=Budget(usd="0.02")), {})
    assert "agent: 0.0250 of 0.02 USD are used." in ended.error
    assert ended.state.talk.tokens == 1_200


@pytest.mark.parametrize(
    ("usage", "tokens", "usd"),
    [
        ({"prompt_tokens": 2_000, "completion_tokens": 500, "total_tokens": 2_500}, 2_500, "0.0006"),
        ({"prompt_tokens": 2_000, "completion_tokens": 500}, 2_500, "0.0006"),
        ({"prompt_tokens": 2_000, "completion_tokens": 500, "cost": "0.5"}, 2_500, "0.5"),
        ({"prompt_tokens": 2_000, "completion_tokens": 500, "cost": "NaN"}, 2_500, "0.0006"),
        ({"prompt_tokens": 2_000, "completion_tokens": 500, "cost": -1}, 2_500, "0.0006"),
        ({"total_tokens": 2_500}, 2_500, "0.0015"),
    ],
)
def test_what_a_reply_took_is_as_told_or_by_the_prices(usage, tokens, usd):
    with ChatServer(completion("Hello.", usage=usage)) as server:
        reply = ask(server, usd_per_million=("0.15", "0.60"))
    assert (reply.tokens, reply.usd) == (tokens, Decimal(usd))
    assert reply.priced and not reply.estimated


@pytest.mark.parametrize(
    "usage", [{"total_tokens": "many", "prompt_tokens": -5}, {"total_tokens": 0}, None, []]
)
def test_where_no_usage_is_told_tokens_are_estimated_by_the_length_of_what_was_sent_and_came(usage):
    with ChatServer(completion("Grüße aus 東京." * 100, usage=usage)) as server:
        reply = ask(server, usd_per_million=("0.15", "0.60"))
        sent = json.dumps(server.requests[0]["messages"], ensure_ascii=False).encode()
    tokens_in, tokens_out = -(-len(sent) // 3), -(-len("Grüße aus 東京.".encode()) * 100 // 3)
    assert (reply.tokens, reply.estimated) == (tokens_in + tokens_out, True)
    assert reply.usd == (tokens_in * Decimal("0.15") + tokens_out * Decimal("0.60")) / 1_000_000


def test_a_budget_of_tokens_binds_at_an_endpoint_that_tells_no_usage():
    asks = completion("I look. " * 200, call("stock", '{"item": "lamp"}'))
    with ChatServer(asks) as server:
        ended = rehearse(
            graph_of(Endpoint(server.url, "tiny"), budget=Budget(tokens=1_000), max_turns=20), {}
        )
        asked = len(server.requests)
    assert "of 1,000 tokens are used" in ended.error and 1 <= asked < 5


def test_a_budget_of_money_is_refused_where_nobody_says_what_a_reply_costs():
    asks = completion(None, call("stock", '{"item": "lamp"}'))
    with ChatServer(asks) as server:
        ended = rehearse(graph_of(Endpoint(server.url, "tiny"), budget=Budget(usd="0.02")), {})
        assert len(server.requests) == 1
        free = Endpoint(server.url, "tiny", usd_per_million=("0", "0"))
        stopped = rehearse(graph_of(free, budget=Budget(usd="0.02"), max_turns=3), {})
    assert ended.error_kind == "permanent" and "give its Endpoint usd_per_million" in ended.error
    assert "3 turns are used" in stopped.error


def test_calls_are_read_as_different_servers_write_them():
    calls = [call("stock", {"item": "lamp"}, id=None), call("stock", ""), call("stock", "{broken")]
    with ChatServer(completion("", *calls)) as server:
        reply = ask(server)
    assert [(wish.id, wish.arguments) for wish in reply.wishes] == [
        ("call_1", json.dumps({"item": "lamp"})),
        ("call_a", "{}"),
        ("call_a", "{broken"),
    ]


def test_a_reply_that_ran_out_of_room_says_so():
    with ChatServer(completion("You get a la", finish="length")) as server:
        assert ask(server).cut


def test_what_is_no_address_is_refused_without_its_password():
    with pytest.raises(Permanent, match="The address of the endpoint is no address of a model") as refused:
        Endpoint("ftp://user:pa55@127.0.0.1", "tiny").reply([], [], None, 5.0)
    assert "pa55" not in str(refused.value)


# -- in pieces --------------------------------------------------------------------------------------------------------


def test_what_comes_in_pieces_is_shown_as_it_comes_and_is_one_reply():
    """Calls come in pieces too, and a letter of several bytes may be cut in two."""
    first = {"tool_calls": [{"index": 0, **call("stock", '{"it')}]}
    second = {"tool_calls": [{"index": 1, **call("stock", {"item": "chair"}, "call_b")}]}
    third = {"tool_calls": [{"index": 0, "function": {"arguments": 'em": "lamp"}'}}]}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    status, headers, pieces = stream(
        "Gr", "üße,\u2028Ada", first, second, third, finish="tool_calls", usage=usage
    )
    halved = [half for piece in pieces for half in (piece[: len(piece) // 2], piece[len(piece) // 2 :])]
    shown: list[str] = []
    with ChatServer((status, headers, halved)) as server:
        reply = ask(server, shown.append, usd_per_million=("1", "2"))
    assert shown == ["Gr", "üße,\u2028Ada"]
    assert (reply.text, reply.model, reply.tokens, reply.cut) == ("Grüße,\u2028Ada", "tiny-1", 7, False)
    assert reply.usd == Decimal("0.000011")
    assert [(wish.id, json.loads(wish.arguments)) for wish in reply.wishes] == [
        ("call_a", {"item": "lamp"}),
        ("call_b", {"item": "chair"}),
    ]
    assert server.requests[0]["stream"] is True
    assert server.requests[0]["stream_options"] == {"include_usage": True}


def test_an_endpoint_that_answers_whole_all_the_same_is_understood_and_one_may_be_told_to():
    with ChatServer(completion("Whole.")) as server:
        assert ask(server, print).text == "Whole."
        ended = rehearse(graph_of(Endpoint(server.url, "tiny", streams=False)), {})
    assert ended.state.answer == "Whole."
    assert ["stream" in request for request in server.requests] == [True, False]


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (stream("Half a", finish=None), "broke off in the middle"),
        (stream("Half a", b'data: {"error": {"message": "overloaded"}}\n\n'), "broke off: overloaded"),
        (stream("Half a", b"data: {no json\n\n"), "cannot be read"),
        (stream("Half a", b'data: ["no object"]\n\n'), "cannot be read"),
        (stream(" "), "empty answer"),
    ],
)
def test_a_stream_that_goes_wrong_on_the_way_is_asked_for_again(pieces, words):
    """A question changes nothing at the provider: whatever breaks it is Transient, and no half text is a reply."""
    with ChatServer(pieces, pieces, stream("All of it.")) as server:
        with pytest.raises(Transient, match=words):
            ask(server, print)
        ended = rehearse(graph_of(Endpoint(server.url, "tiny")), {})
    assert ended.state.answer == "All of it."
    assert len(server.requests) == 3 and [*ended.ledger.shown.values()] == ["All of it."]


def test_a_stream_that_falls_silent_is_given_up():
    silence = threading.Event()
    with ChatServer(stream("Half a", silence)) as server:
        with pytest.raises(Transient, match="did not answer within"):
            ask(server, print, timeout=0.5)
        silence.set()


def test_a_stream_that_says_the_money_is_spent_is_not_asked_for_again():
    spent = b'data: {"error": {"message": "pay first", "code": "insufficient_quota"}}\n\n'
    with ChatServer(stream("Half", spent)) as server, pytest.raises(Permanent, match="pay first"):
        ask(server, print)
