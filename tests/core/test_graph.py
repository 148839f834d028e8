"""Graphs and tools are checked when their module is read; the message names file and node."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from runs.core.errors import CodecError, GraphError, Permanent
from runs.core.graph import END, Graph
from runs.core.retry import Retry
from runs.core.tool import tool


class State(BaseModel):
    n: int = 0


def two(run, state): ...


def test_a_target_that_does_not_exist_is_named_with_its_node_and_file():
    graph = Graph("g")
    graph.node(two, then="nowhere")
    with pytest.raises(GraphError, match=r"test_graph\.py, node 'two': then names 'nowhere'"):
        graph.check()


def test_a_node_that_cannot_be_reached_is_named():
    graph = Graph("g")
    graph.node(two)
    graph.node(two, name="island")
    with pytest.raises(GraphError, match="node 'island': no node leads there"):
        graph.check()


def test_a_graph_without_nodes_and_a_second_node_of_one_name_are_refused():
    graph = Graph("g")
    with pytest.raises(GraphError, match="has no nodes"):
        graph.check()
    graph.node(two)
    with pytest.raises(GraphError, match="has a node of that name already"):
        graph.node(two)


@pytest.mark.parametrize(
    "options",
    [{"name": " "}, {"name": "x" * 101}, {"name": "g", "version": 0}, {"name": "g", "on_failure": "explode"}],
)
def test_a_graph_that_makes_no_sense_is_refused(options):
    with pytest.raises(GraphError):
        Graph(**options)


def test_a_node_takes_run_and_state():
    with pytest.raises(GraphError, match="exactly"):
        Graph("g").node(lambda run: None)


def test_the_fingerprint_follows_the_shape_and_not_the_body():
    def graph(then):
        made = Graph("g")
        made.node(two, then=then)
        made.node(two, name="last")
        return made.fingerprint

    assert graph(("last",)) == graph(("last",))
    assert graph(("last",)) != graph(("last", END))


def test_an_input_that_does_not_fit_is_refused_naming_the_field():
    graph = Graph("g", state=State)
    with pytest.raises(CodecError, match="n: Input should be a valid integer"):
        graph.begin({"n": "many"})


def test_a_tool_binds_its_arguments_with_defaults_in_one_canonical_form():
    @tool
    def f(b: int, a: str = "x", *, idempotency_key: str = "") -> str: ...

    assert f.bind(b=7).request == f.bind(a="x", b=7).request == '{"a":"x","b":7}'
    assert f.unpack(f.bind(b=7).request) == {"a": "x", "b": 7}
    assert f.rebind({"b": 8, "a": "y"}).request == '{"a":"y","b":8}'


def test_types_survive_the_request():
    @tool(kind="write")
    def f(amount: float, at: timedelta, raw: bytes) -> None: ...

    call = f.bind(amount=7, at=timedelta(minutes=1), raw=b"\x00\xff")
    assert f.unpack(call.request) == {"amount": 7.0, "at": timedelta(minutes=1), "raw": b"\x00\xff"}


@pytest.mark.parametrize("arguments", [{}, {"b": "many"}, {"b": 1, "c": 2}])
def test_arguments_that_do_not_fit_are_refused_naming_the_tool(arguments):
    @tool
    def f(b: int) -> str: ...

    with pytest.raises(Permanent, match="^f: "):
        f.bind(**arguments)


def test_an_argument_that_would_come_back_changed_is_refused_at_once():
    @tool
    def f(thing: Any) -> None: ...

    with pytest.raises(Permanent, match="annotate"):
        f.bind(thing=(1, 2))


def test_a_tool_that_cannot_be_recorded_is_refused():
    with pytest.raises(GraphError, match="only named parameters"):
        tool(lambda *args: None)
    with pytest.raises(GraphError, match="honours_key=True, but it takes no idempotency_key"):
        tool(lambda a: None, kind="write", honours_key=True)
    with pytest.raises(GraphError, match="choose read or write"):
        tool(lambda a: None, kind="maybe")


def test_the_back_off_doubles_up_to_its_cap_and_stops_at_its_attempts():
    policy = Retry(attempts=5, first=1, factor=2, cap=5, jitter=0)
    assert [policy.decide(n, OSError(), 0.5).delay for n in (1, 2, 3, 4, 5)] == [1, 2, 4, 5, None]


def test_retry_after_is_a_lower_bound_and_permanent_is_never_retried():
    from runs.core.errors import Rejected, Transient

    policy = Retry(attempts=3, first=1, cap=2)
    assert policy.decide(1, Transient("busy", retry_after=60), 0.0).delay == 60
    assert not policy.decide(1, Permanent("no"), 0.5).again
    assert not policy.decide(1, Rejected("no", "ada"), 0.5).again
    assert not Retry(on=(OSError,)).decide(1, ValueError(), 0.5).again


def test_jitter_stays_within_its_share():
    policy = Retry(first=10, jitter=0.1)
    delays = [policy.decide(1, OSError(), chance).delay for chance in (0.0, 0.5, 0.999)]
    assert delays[0] == 9 and delays[1] == 10 and 10.9 < delays[2] < 11
