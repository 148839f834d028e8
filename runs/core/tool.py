"""Tools: what a node may do to the world, with everything needed to do it at most once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, get_type_hints  # arguments and results are the author's types

from pydantic import ConfigDict, ValidationError, create_model

from runs.core import codec
from runs.core.codec_tree import MARK
from runs.core.errors import CodecError, GraphError, Permanent
from runs.core.rate import Rate
from runs.core.retry import Retry

RESERVED = ("key", "approve")  # of run.call
INJECTED = ("idempotency_key", "timeout", "show_text")
COMPENSATION_TAKES = ("arguments", "result")  # what a compensation may take beside those
DEFAULT_LIMIT = timedelta(seconds=60)
DEFAULT_RETRY = Retry()
SMALLEST, LARGEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, eq=False)
class Tool:
    """A function of the author's, its kind (read or write), its policy, and how to find out what became of a call."""

    fn: Callable[..., Any]
    name: str
    kind: str
    retry: Retry
    limit: timedelta
    reconcile: Callable[[str, dict[str, Any]], Any] | None = None
    honours_key: bool = False
    compensate: Tool | None = None
    arguments: Any = field(default=None, repr=False)  # the pydantic model of the bound arguments
    injected: frozenset[str] = frozenset()
    rate: Rate | None = None

    @property
    def write(self) -> bool:
        return self.kind == "write"

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.fn)

    @property
    def description(self) -> str:
        return (inspect.getdoc(self.fn) or "").split("\n\n")[0].replace("\n", " ")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Called directly it is the plain function: no ledger, no retry."""
        return self.fn(*args, **kwargs)

    def bind(self, **arguments: Any) -> Call:
        """Validate the arguments by the signature, defaults filled in."""
        secrets = {name: value for name, value in arguments.items() if isinstance(value, codec.SecretRef)}
        model = _without(self.arguments, frozenset(secrets)) if secrets else self.arguments
        try:
            bound = model(**{name: value for name, value in arguments.items() if name not in secrets})
        except ValidationError as error:
            raise Permanent(f"{self.name}: {explain(error)}") from error
        plain = _stored(self, model, bound)
        plain.update({name: codec.flatten(value) for name, value in secrets.items()})
        return Call(self, codec.encode({name: plain[name] for name in sorted(plain)}, sort=True))

    def rebind(self, arguments: Mapping[str, Any]) -> Call:
        """Bind plain JSON again, as a person edited it. The kept form of a value is what pydantic reads from JSON."""
        secrets = {
            name: codec.flatten(value)
            for name, value in arguments.items()
            if isinstance(value, codec.SecretRef)
        }
        model = _without(self.arguments, frozenset(secrets)) if secrets else self.arguments
        rest = {name: value for name, value in arguments.items() if name not in secrets}
        try:
            bound = model.model_validate_json(codec.encode(rest))
        except (ValidationError, CodecError) as error:
            said = explain(error) if isinstance(error, ValidationError) else error
            raise Permanent(f"{self.name}: {said}") from error
        plain = _storable_numbers(bound.model_dump(mode="json", round_trip=True))
        _refuse_lookalikes(self, plain)
        return Call(self, codec.encode(plain | secrets, sort=True))

    def unpack(self, request: str) -> dict[str, Any]:
        """The stored arguments as the function takes them; a secret stays a reference."""
        plain = codec.decode(request)
        secrets = {
            name: codec.restore(value)
            for name, value in plain.items()
            if isinstance(value, dict) and value.get("$") == "secret"
        }
        model = _without(self.arguments, frozenset(secrets)) if secrets else self.arguments
        rest = {name: value for name, value in plain.items() if name not in secrets}
        bound = model.model_validate_json(codec.encode(rest))
        return {**{name: getattr(bound, name) for name in model.model_fields}, **secrets}

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments, for the form in which people edit them."""
        return self.arguments.model_json_schema()


@dataclass(frozen=True, slots=True)
class Call:
    """A tool with bound arguments; `request` is their canonical JSON text, the very bytes that run."""

    tool: Tool
    request: str

    @property
    def digest(self) -> str:
        return codec.digest(self.request)

    @property
    def arguments(self) -> dict[str, Any]:
        """As people are shown them, and as `rebind` takes them back: plain JSON, and references to secrets."""
        return {
            name: codec.restore(value) if isinstance(value, dict) and value.get(MARK) == "secret" else value
            for name, value in codec.decode(self.request).items()
        }


def tool(
    fn: Callable[..., Any] | None = None,
    *,
    kind: str = "read",
    retry: Retry = DEFAULT_RETRY,
    limit: timedelta = DEFAULT_LIMIT,
    reconcile: Callable[[str, dict[str, Any]], Any] | None = None,
    honours_key: bool = False,
    compensate: Callable[..., Any] | Tool | None = None,
    name: str | None = None,
    rate: Rate | str | None = None,
) -> Any:
    """Make a function a tool; see docs/guide.md. Raises GraphError if it cannot be called safely."""

    def make(function: Callable[..., Any]) -> Tool:
        where = f"tool {name or function.__name__} in {function.__code__.co_filename}"
        if kind not in ("read", "write"):
            raise GraphError(f"{where}: kind={kind!r}; choose read or write")
        if limit <= timedelta(0):
            raise GraphError(f"{where}: limit={limit}; a positive time is needed")
        injected = frozenset(INJECTED) & set(inspect.signature(function).parameters)
        if honours_key and "idempotency_key" not in injected:
            raise GraphError(
                f"{where}: honours_key=True, but it takes no idempotency_key to give to the provider"
            )
        arguments = _arguments(function, where)
        return Tool(
            function,
            name or function.__name__,
            kind,
            retry,
            limit,
            reconcile,
            honours_key,
            _compensation(compensate, kind, retry, limit, where),
            arguments,
            injected,
            _rate(rate, arguments, where),
        )

    return make if fn is None else make(fn)


def _compensation(
    given: Callable[..., Any] | Tool | None, kind: str, retry: Retry, limit: timedelta, where: str
) -> Tool | None:
    """What undoes a call, as a tool; a plain function has the retry policy and the limit of what it undoes."""
    if given is None:
        return None
    if kind != "write":
        raise GraphError(f"{where}: compensate is for writes; a read changes nothing that could be undone")
    made = given if isinstance(given, Tool) else tool(given, kind="write", retry=retry, limit=limit)
    if not made.write:
        raise GraphError(f"{where}: its compensation {made.name!r} is a read; declare it with kind='write'")
    known = (*COMPENSATION_TAKES, *INJECTED)
    for parameter in inspect.signature(made.fn).parameters.values():
        if parameter.name not in known and parameter.default is parameter.empty:
            raise GraphError(
                f"{where}: its compensation {made.name!r} takes {parameter.name!r}; it may take "
                f"{', '.join(known)}, and what has a default"
            )
    return made


def _rate(given: Rate | str | None, arguments: Any, where: str) -> Rate | None:
    try:
        rate = Rate(given) if isinstance(given, str) else given
    except GraphError as error:
        raise GraphError(f"{where}: {error}") from error
    if rate is not None and isinstance(rate.by, str) and rate.by not in arguments.model_fields:
        raise GraphError(f"{where}: its rate is by {rate.by!r}, which is none of its arguments")
    return rate


def explain(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(str(part) for part in problem['loc']) or 'arguments'}: {problem['msg']}"
        for problem in error.errors()
    )


def _arguments(function: Callable[..., Any], where: str) -> Any:
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise GraphError(f"{where}: the annotation names something unknown: {error}") from error
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in INJECTED:
            continue
        if parameter.name in RESERVED:
            raise GraphError(
                f"{where}: parameter {parameter.name!r} is a word of run.call itself; name it otherwise"
            )
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise GraphError(f"{where}: parameter {parameter}: only named parameters can be recorded")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints.get(parameter.name, Any), default)
        codec.allow_annotations(hints.get(parameter.name, Any))
    codec.allow_annotations(hints.get("return", Any))
    strict = ConfigDict(
        extra="forbid", ser_json_inf_nan="constants", ser_json_bytes="base64", val_json_bytes="base64"
    )
    return create_model(f"{function.__name__}_arguments", __config__=strict, **fields)


def _stored(made: Tool, model: Any, bound: Any) -> dict[str, Any]:
    """The arguments as plain JSON, once it is sure that they come back as they went in."""
    remedy = "annotate the tool's parameters with the types they take"
    try:
        plain = _storable_numbers(bound.model_dump(mode="json", round_trip=True))
        if model.model_validate_json(codec.encode(plain)) == bound:
            _refuse_lookalikes(made, plain)
            return plain
    except (ValueError, CodecError) as error:  # also what pydantic and Unicode raise
        said = explain(error) if isinstance(error, ValidationError) else error
        raise Permanent(f"{made.name}: an argument cannot be stored ({said}); {remedy}") from error
    raise Permanent(f"{made.name}: an argument would come back from the ledger changed; {remedy}")


def _storable_numbers(plain: Any) -> Any:
    """Whole numbers beyond 64 bits as digits, which pydantic reads back as the number; JSON has no room for them."""
    match plain:
        case dict():
            return {name: _storable_numbers(value) for name, value in plain.items()}
        case list():
            return [_storable_numbers(value) for value in plain]
    if type(plain) is int and not SMALLEST <= plain <= LARGEST:
        return str(plain)
    return plain


def _refuse_lookalikes(made: Tool, plain: dict[str, Any]) -> None:
    """What came from outside may look like a reference to a secret; only `run.secret` makes one."""
    for name, value in plain.items():
        if isinstance(value, dict) and value.get(MARK) == "secret":
            raise Permanent(
                f"{made.name}: {name}: an object whose {MARK!r} is 'secret' stands for a secret; "
                "pass run.secret(name), or give the object another key"
            )


@functools.lru_cache(maxsize=256)
def _without(model: Any, names: frozenset[str]) -> Any:
    """The same arguments without those that are secrets."""
    fields = {name: (info.annotation, info) for name, info in model.model_fields.items() if name not in names}
    return create_model(model.__name__, __config__=model.model_config, **fields)
