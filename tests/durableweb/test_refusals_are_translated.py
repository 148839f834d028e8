"""What is refused is told in the reader's language, whoever refuses it: read from the code, which finds new ones."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils.translation import override
from pydantic import BaseModel, Field, ValidationError

from approvals.recorded import of_refusals, reminded
from durableweb.catalogs import ROOT
from runs import unstorable
from runs.core import codec
from runs.core.errors import CodecError
from runs.unstorable import of_pydantic, of_values
from tests.durableweb.pseudo_german import pseudo_german, unmarked

REFUSALS = set("Refusal Invalid Conflict TooEarly TooLate NotAllowed Missing NotSigned WrongPassword".split())
REFUSALS |= {"ValidationError", "PermissionDenied"}
# The core speaks English, and so do commands.
ENGLISH = ("core", "testing", "migrations", "management", "command_line.py")


def modules(*rooms: str) -> Iterator[tuple[Path, ast.Module]]:
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            if not set(ENGLISH) & set(path.relative_to(ROOT).parts):
                yield path, ast.parse(path.read_text())


def name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def is_english(value: ast.expr | None, english: set[str]) -> bool:
    """A text that no catalog has: written there, or that of an error."""
    match value:
        case ast.JoinedStr() | ast.Constant(value=str()) | ast.Attribute(attr="reason"):
            return True
        case ast.Name(id=name):
            return name in english
        case ast.Call(func=ast.Name(id="str")):
            return True
        case ast.Dict(values=parts) | ast.List(elts=parts):
            return any(is_english(part, english) for part in parts)
    return False


def is_empty(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value == ""


def refused_in_english(tree: ast.AST) -> Iterator[ast.Call]:
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        inside = list(ast.walk(function))
        errors = {each.name for each in inside if isinstance(each, ast.ExceptHandler) and each.name}
        english = {
            target.id
            for each in inside
            if isinstance(each, ast.Assign)
            and isinstance(each.value, ast.JoinedStr | ast.Constant)
            and not is_empty(each.value)
            for target in each.targets
            if isinstance(target, ast.Name) and is_english(each.value, set())
        }
        for call in inside:
            if isinstance(call, ast.Call) and name_of(call) in REFUSALS:
                if any(is_english(given, english | errors) for given in call.args):
                    yield call
            elif isinstance(call, ast.Call) and name_of(call) == "told":
                if any(
                    isinstance(each.value, ast.Name) and each.value.id in errors for each in call.keywords
                ):
                    yield call


def test_nothing_is_refused_in_english_alone() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{call.lineno}: {ast.unparse(call)}"
        for path, tree in modules("runs", "approvals", "durableweb")
        for call in refused_in_english(tree)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "raise Missing(f'There is no run {name}.')",
        "raise Invalid(_('No.'), {'$': [error.reason]})",
        "raise Conflict(told(_('No: %(error)s'), error=error))",
        "raise Invalid(str(error))",
        "said = f'no {x}'; raise errors.Invalid(said)",
    ],
)
def test_such_a_refusal_would_be_found(line: str) -> None:
    code = f"def verb():\n  try: pass\n  except CodecError as error:\n    {line}\n"
    assert list(refused_in_english(ast.parse(code)))


def written(node: ast.expr | None) -> str | None:
    """A text as it will be, with 7 in its places."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(
                str(part.value)
                if isinstance(part, ast.Constant)
                else ""
                if ast.unparse(part.value) == "more"
                else "7"  # more: what is said of others
                for part in parts
            )
    return None


def reasons() -> Iterator[str]:
    """Every text that the codec and its callers give as the reason of a CodecError."""
    for path in [*(ROOT / "runs" / "core").glob("*.py"), ROOT / "runs" / "engine" / "state.py"]:
        of_codec = path.name.startswith("codec")
        for node in ast.walk(ast.parse(path.read_text())):
            said: str | None = None
            match node:
                case ast.Call(args=[*_before, last]) if name_of(node) in ("Refusal", "CodecError"):
                    said = written(last)
                case ast.Assign(targets=[ast.Name(id="reason" | "NOT_A_NUMBER")], value=value) if of_codec:
                    said = written(value)
                case ast.FunctionDef(name="remedy", body=body):
                    returned = [
                        each for part in body for each in ast.walk(part) if isinstance(each, ast.Return)
                    ]
                    yield from filter(None, (written(each.value) for each in returned))
                case ast.ClassDef(name="TooLarge" | "SecretFound"):
                    yield from (
                        text.removeprefix("7: ")
                        for each in ast.walk(node)
                        if isinstance(each, ast.Call) and name_of(each) == "__init__"
                        if (text := written(each.args[-1])) is not None
                    )
            if said is not None and " " in said:
                yield said.replace("{}", "7")


def test_what_the_core_has_against_a_value_is_said_in_german() -> None:
    found = set(reasons())
    assert len(found) > 25
    with override("de"):
        untold = {reason for reason in found if of_values.retold(reason) == reason}
    assert untold == set()


def test_each_sentence_about_values_is_one_that_the_core_says() -> None:
    code = " ".join(
        written(node) or ""
        for path in (ROOT / "runs" / "core").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant | ast.JoinedStr)
    )
    code += " ".join(reasons())
    for sentence in set(of_values.all) - set(of_pydantic):
        for part in re.split(r"%\(\w+\)s| (?=\(and)", sentence):
            assert part.strip("' .") in code, sentence


class Letter(BaseModel):
    to: str
    count: int = Field(ge=1)
    kind: list[str] = Field(min_length=1)


def test_several_faults_of_one_value_are_each_said_in_german() -> None:
    with pytest.raises(ValidationError) as refused:
        Letter.model_validate({"count": "x", "kind": []})
    told = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in refused.value.errors())
    with override("de"):
        said = of_values.retold(f"the input does not fit Letter: {told}")
    assert said == (
        "die Eingabe passt nicht zu Letter: to: Dieses Feld wird gebraucht; count: Die Eingabe muss eine ganze Zahl "
        "sein, und der Text lässt sich nicht so lesen; kind: List braucht nach der Prüfung mindestens 1 Eintrag, "
        "nicht 0"
    )


@pytest.mark.parametrize(
    "value",
    [{"α": float("nan")}, {"α": [object()]}, {"α": {"β": type("Γ", (str,), {"__module__": "ζ"})("δ")}}],
)
def test_a_value_that_cannot_be_stored_is_told_with_its_path(value: object) -> None:
    with pytest.raises(CodecError) as refused:
        codec.flatten(value)
    with pseudo_german() as seen, override("de"):
        told = str(unstorable.fault(refused.value))
    assert told.startswith("$.α") and "⟦" in told
    allowed = set("object nan None str tests durableweb test refusals are translated storable NaN".split())
    assert unmarked(told, allowed) == [] and seen.english == set()
    assert str(unstorable.fault(refused.value)) == str(refused.value)


def test_whatever_an_author_says_about_a_value_stays() -> None:
    with override("de"):
        for theirs in ("too dear", "a; b: c", "is dear", "$.to: no", "x" * 9_000, "a; " * 9_000):
            assert str(unstorable.fault(theirs)) == theirs


def test_each_refusal_of_a_decision_is_one_that_the_trail_is_said_again_from() -> None:
    said = {
        node.args[0].value
        for name in ("refusals.py", "who.py", "models/deciding.py")
        for node in ast.walk(ast.parse((ROOT / "approvals" / name).read_text()))
        if isinstance(node, ast.Call) and name_of(node) == "_" and isinstance(node.args[0], ast.Constant)
        if node.args[0].value.endswith(".")
    }
    invalid = {
        "There is no approval %(id)s.",
        "Say why: the run gets your reason.",
        "Choose or write a reason.",
    }
    assert said - invalid <= set(of_refusals.all)
    assert len(said) > 15


def test_a_refused_decision_is_remembered_in_german() -> None:
    at = "19:20:12 UTC on 2026-11-30"
    with override("de"):
        assert reminded(f"edit: mara rejected this at {at}; nothing was changed.") == (
            "ändern: mara: abgelehnt um 19:20:12 UTC am 2026-11-30; nichts wurde geändert."
        )
        changed = (
            f"approve: This has changed since you looked at it (you saw revision 1, it is at 3): "
            f"ada claimed this at {at}; ada for bob approved this with edits at {at}. "
            "Nothing was changed; look again, then decide."
        )
        told = reminded(changed)
        assert (
            "claimed" not in told
            and "approved" not in told
            and "ada für bob" in told
            and "Revision 1" in told
        )
        assert reminded("signature: approve: This is not your password; nothing was signed.").startswith(
            "Unterschrift: freigeben: Dies ist nicht Ihr Passwort"
        )
        assert (
            reminded("reject: Only ada, bob or pm can decide this, and you are not among them.").count("oder")
            == 1
        )
        assert reminded("approve: the card was refused") == "freigeben: the card was refused"
    assert reminded(changed) == changed
