"""An agent: a language model that calls tools, asks people, and finishes. No reply is asked for twice.

    desk = Agent("You answer questions about orders.", model, tools=[find_order, Use(pay_back, approve=ask)])

    @graph.node(then=("work", END))
    def work(run, state):
        state.answer = desk.turn(run, state.talk, state.question)
        return "work" if state.answer is None else END

One turn is one question to the model and all that it asks for in reply. The talk is part of the state, and grows by
what was said. A run that is killed goes on within the turn.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any  # arguments, results and what an agent finishes with are the author's

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import to_jsonable_python

from runs import agent_words as words
from runs.agent_reply import next_reply
from runs.core import codec
from runs.core.ask import Ask
from runs.core.commands import carry_out, carry_out_async
from runs.core.context import AsyncRun, Run
from runs.core.errors import EffectFailed, Expired, GraphError, Permanent, Rejected
from runs.core.tool import Call, Tool, explain
from runs.hand_off import Handed, HandOff
from runs.language_model import LanguageModel, Message, Reply, Scripted, Wish
from runs.talk import Budget, Talk

__all__ = [
    "Agent",
    "AgentStopped",
    "Budget",
    "HandOff",
    "LanguageModel",
    "Reply",
    "Scripted",
    "Talk",
    "Use",
    "Wish",
]

FINISH, ASK_PERSON = "finish", "ask_person"

Turn = Generator[Any, Any, Any]  # yields what a verb of `run` returned: for an async node, something to await


class AgentStopped(Permanent):
    """The agent reached a limit before it finished."""


class Question(BaseModel):
    question: str = Field(min_length=1, max_length=500, pattern=r"\S", description="What you need to know.")


@dataclass(frozen=True)
class Use:
    """A tool as an agent may use it.

    `approve`: an Ask, or a function of the arguments that returns one, or None where nobody need be asked. `key` is the
    call's key, in which names of arguments are filled in: "refund:{run_id}:{order}" is one refund an order. Without it
    each call that the model asks for is another one.
    """

    tool: Tool
    approve: Ask | Callable[..., Ask | None] | None = None
    key: str = ""

    def read(self, written: str, given: Mapping[str, Any]) -> Call:
        """The call, validated. Raises Permanent saying what does not fit."""
        wanted, plain = words.arguments(written), {}
        for name in sorted(given.keys() & self.tool.arguments.model_fields.keys()):
            if name in wanted:
                raise Permanent(f"{name}: is filled in already; leave it out")
            value = given[name]
            plain[name] = value if isinstance(value, codec.SecretRef) else to_jsonable_python(value)
        return self.tool.rebind(wanted | plain)

    def ask(self, arguments: dict[str, Any]) -> Ask | None:
        return self.approve(**arguments) if callable(self.approve) else self.approve


class Agent:
    """Instructions, a model (or a function that returns one, called anew each turn) and tools.

    `output`: a pydantic model that the agent finishes with, in place of a text. `ask`: the agent may ask people
    questions of its own. After `max_turns`, or more than `max_mistakes` replies in a row that could not be used,
    AgentStopped is raised. Raises GraphError for tools that cannot be told apart.
    """

    def __init__(
        self,
        instructions: str,
        model: LanguageModel | Callable[[], LanguageModel],
        tools: Sequence[Tool | Use | HandOff] = (),
        *,
        name: str = "agent",
        output: type[BaseModel] | None = None,
        ask: Ask | None = None,
        budget: Budget | None = None,
        max_turns: int = 20,
        max_mistakes: int = 3,
    ) -> None:
        self.instructions, self.model, self.name = instructions, model, name
        self.output, self.ask, self.budget = output, ask, budget or Budget()
        self.max_turns, self.max_mistakes = max_turns, max_mistakes
        self.uses: dict[str, Use] = {}
        self.hand_offs: dict[str, HandOff] = {}
        for each in tools:
            use = each if isinstance(each, (Use, HandOff)) else Use(each)
            called = use.name if isinstance(use, HandOff) else use.tool.name
            if called in (*self.uses, *self.hand_offs, FINISH, ASK_PERSON):
                raise GraphError(f"agent {name!r}: {called!r} is taken; name the tool otherwise")
            place: dict[str, Any] = self.hand_offs if isinstance(use, HandOff) else self.uses
            place[called] = use
        if output is not None:
            codec.allow_annotations(output)

    def turn(self, run: Run, talk: Talk, request: str = "", given: Mapping[str, Any] | None = None) -> Any:
        """One turn: what the agent finished with, or None if it has to go on. Awaited in an async node.

        A talk that is finished stays so until something more is said. `request` is the first message of one that has
        none. `given` are arguments that the model neither sees nor chooses, such as a customer's number or a secret:
        they are filled in wherever a tool has one of that name.
        """
        work = self._turn(run, talk, request, given or {})
        return carry_out_async(work, _await) if isinstance(run, AsyncRun) else carry_out(work, _as_it_is)

    def reaches(self) -> Iterator[Any]:
        """The tools and functions behind the agent, by which the edits of people are checked."""
        for use in self.uses.values():
            yield use.tool
            yield use.approve
        for ask in (self.ask, self.budget.ask, *(use.approve for use in self.uses.values())):
            if isinstance(ask, Ask):
                yield from (ask.policy, *(stage.when for stage in ask.stages))

    def _turn(self, run: Run, talk: Talk, request: str, given: Mapping[str, Any]) -> Turn:
        if talk.final is not None:
            return talk.final
        if not talk.messages:
            if not request.strip():
                raise Permanent(f"{self.name}: the talk is empty; give turn(...) a request")
            talk.say(request)
        if talk.messages[0]["role"] != "system":  # also of a talk that was handed over
            talk.messages.insert(0, {"role": "system", "content": self.instructions})
        yield from self._look_at_limits(run, talk)
        talk.turns += 1
        place = f"{{run_id}}:{run.step}.{talk.turns}"
        reply = yield self._ask_model(run, talk, f"{self.name}:{place}", given)
        talk.take(reply)
        if reply.tokens or reply.usd:
            yield run.spend(tokens=reply.tokens, usd=reply.usd)
        if self.budget.usd is not None and not reply.priced:
            raise Permanent(
                f"{self.name}: its budget is in USD, and model {reply.model!r} tells no cost: "
                "give its Endpoint usd_per_million, or give the budget in tokens"
            )
        talk.messages.append(words.said(reply))
        fits = bool(reply.wishes) or self._end(talk, reply)
        for number, wish in enumerate(reply.wishes, 1):
            told, fit = yield from self._grant(run, talk, wish, f"{place}.{number}", given)
            talk.messages.append({"role": "tool", "tool_call_id": wish.id, "content": told})
            fits = fits and fit
        talk.mistakes = 0 if fits else talk.mistakes + 1
        return talk.final

    def _look_at_limits(self, run: Run, talk: Talk) -> Turn:
        """Raises AgentStopped at a limit, and Rejected or Expired if people did not raise the budget."""
        if talk.turns >= self.max_turns:
            raise AgentStopped(f"{self.name}: {talk.turns} turns are used, and it has not finished.")
        if talk.mistakes > self.max_mistakes:
            raise AgentStopped(f"{self.name}: {talk.mistakes} replies in a row could not be used.")
        passed = self.budget.passed(talk)
        if passed and self.budget.ask is not None:
            yield from self._ask_for_more(run, talk, self.budget.ask, passed)
            passed = self.budget.passed(talk)
        if passed:
            raise AgentStopped(f"{self.name}: {passed}.")

    def _ask_for_more(self, run: Run, talk: Talk, ask: Ask, passed: str) -> Turn:
        answer = yield _interrupt(
            run,
            ask,
            name=f"{self.name} budget {talk.turns + 1}",
            why=words.paragraphs(ask.why, f"After {talk.turns} turns, {passed}."),
            payload=self.budget.as_much_again,
            schema=words.MORE,
            verdicts=("approve", "edit", "reject"),
        )
        if answer.verdict == "reject":
            raise Rejected(answer.reason, answer.by)
        talk.more_tokens += answer.payload["tokens"]
        talk.more_usd += Decimal(str(answer.payload["usd"]))

    def _ask_model(self, run: Run, talk: Talk, key: str, given: Mapping[str, Any]) -> Any:
        model = self.model() if callable(self.model) else self.model
        messages, tools = list(talk.messages), self._tools(given)
        return next_reply(run, model, messages, tools, key=key, agent=self.name, turn=talk.turns)

    def _tools(self, given: Mapping[str, Any]) -> list[Message]:
        """All that the model may call, as it is told."""
        tools = [words.offered(use.tool, given) for use in self.uses.values()]
        tools += [words.own(hand.name, hand.description, Handed) for hand in self.hand_offs.values()]
        if self.ask is not None:
            tools.append(words.own(ASK_PERSON, "Ask a person, and wait for the answer.", Question))
        if self.output is not None:
            tools.append(words.own(FINISH, "Finish with this result.", self.output))
        return tools

    def _grant(self, run: Run, talk: Talk, wish: Wish, place: str, given: Mapping[str, Any]) -> Turn:
        """Do what the model asks for: what it is told about it, and whether it made sense."""
        try:
            if wish.name == FINISH and self.output is not None:
                talk.final = self.output.model_validate_json(wish.arguments)
                return "Finished.", True
            if wish.name == ASK_PERSON and self.ask is not None:
                asked = Question.model_validate_json(wish.arguments)
                return (yield from self._ask_person(run, self.ask, asked.question, f"{self.name} {place}"))
            if hand := self.hand_offs.get(wish.name):
                request = Handed.model_validate_json(wish.arguments).request
                child = yield run.start(hand.graph, hand.input(talk, request), key=f"{hand.name}:{place}")
                [end] = yield run.join(child)
                return hand.take(talk, end), True
            if use := self.uses.get(wish.name):
                return (yield from self._call(run, use, use.read(wish.arguments, given), place))
        except ValidationError as wrong:
            return f"Not done: {explain(wrong)}", False
        except Permanent as wrong:
            return f"Not done: {wrong}", False
        known = ", ".join(tool["function"]["name"] for tool in self._tools(given))
        return f"Not done: there is no tool {wish.name!r}. There are: {known or 'none'}.", False

    def _call(self, run: Run, use: Use, call: Call, place: str) -> Turn:
        arguments = use.tool.unpack(call.request)
        key = words.key(use.key, arguments) if use.key else f"{use.tool.name}:{place}"
        approve = use.ask(arguments)
        try:
            result = yield run.call(use.tool, key=key, approve=approve, **arguments)
        except Rejected as no:
            return f"Not done: a person rejected it. {no.reason}".rstrip(), True
        except Expired:
            return "Not done: nobody decided in time.", True
        except EffectFailed as failed:
            return f"It failed: {failed.message.removeprefix(f'{key}: ')}", True
        changed = _changed(run, key, call) if approve is not None else ""
        told = words.result(result)
        return (f"A person changed it to {changed}. {told}" if changed else told), True

    def _ask_person(self, run: Run, ask: Ask, question: str, name: str) -> Turn:
        try:
            answer = yield _interrupt(
                run,
                ask,
                question=question,
                name=name,
                why=words.paragraphs(ask.question, ask.why),
                payload={"answer": ""},
                schema=words.ANSWER,
                verdicts=("respond",),
            )
        except Expired:
            return "Nobody answered in time.", True
        return f"{answer.by} answers: {answer.payload['answer']}", True

    def _end(self, talk: Talk, reply: Reply) -> bool:
        """A text alone is the end, unless it was cut off or a result was agreed."""
        if reply.cut or self.output is not None:
            talk.say("You were cut off; be shorter." if reply.cut else f"Call {FINISH} with your result.")
            return False
        talk.final = reply.text
        return True


def _changed(run: Run, key: str, call: Call) -> str:
    """The arguments that went out, as JSON, if people changed them."""
    try:
        sent = codec.encode(run.sent(key), sort=True)
    except Permanent:  # it went out in an earlier step, for the same proposal
        return ""
    return "" if sent == call.request else sent


def _interrupt(run: Run, ask: Ask, **changes: Any) -> Any:
    changed = replace(ask, **changes)
    return run.interrupt(**{field.name: getattr(changed, field.name) for field in fields(changed)})


def _as_it_is(recorded: Any) -> Any:
    return recorded


async def _await(recorded: Any) -> Any:
    return await recorded
