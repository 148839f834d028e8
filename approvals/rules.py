"""The author's rules on what a person sends: an edit goes through them again, before any lock (runs/core/rules.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any  # payloads and requests are any JSON

from django.utils.translation import gettext_lazy as _

from runs import registry
from runs.core import codec, rules
from runs.core.errors import Permanent
from runs.errors import Invalid, told
from runs.secrets import guard
from runs.unstorable import fault

if TYPE_CHECKING:
    from django.utils.functional import Promise

    from approvals.models import Approval
    from runs.core.rules import Judgement
    from runs.models import Run


def judge(approval: Approval, text: str) -> Judgement:
    """What the rules say of a payload, given as its canonical text. Raises Invalid if the policy objects to it.

    Also, for then nobody knows whether it may be approved, if a rule fails on it or cannot be found in this process.
    """
    request, needs = approval.request, []
    for number, stage in enumerate(request.get("stages") or (), 1):
        if stage["when"] is None or _ask(approval.run, stage["when"], text, rules.needed):
            needs.append(number)
    if request.get("policy"):
        must_not_object(_ask(approval.run, request["policy"], text, rules.objection))
    return rules.Judgement(tuple(needs))


def must_not_object(objection: str) -> None:
    """Raises Invalid with what the policy says against a payload."""
    if objection:
        raise Invalid(fault_of(objection), {"$": [objection]})


def fault_of(objection: str) -> Promise:
    return told(_("This may not be approved as it is: %(why)s"), why=objection)


def unknown_here(run: Run, request: dict[str, Any]) -> list[str]:
    """Rules that a request names and that no process will find when somebody decides."""
    named = [stage["when"] for stage in request.get("stages") or ()] + [request.get("policy")]
    return [rule for rule in named if rule and registry.rule(run.graph, run.version, rule) is None]


def _ask(run: Run, reference: str, text: str, read: Any) -> Any:
    name = reference.partition(":")[2]
    rule = registry.rule(run.graph, run.version, reference)
    if rule is None:
        said = told(
            _(
                "The rule %(rule)s of %(graph)s version %(version)s is not known here, so another payload cannot be "
                "checked; approve or reject what stands."
            ),
            rule=name,
            graph=run.graph,
            version=run.version,
        )
        raise Invalid(said, {"$": [said]})
    try:
        return read(name, rule(codec.loads(text)))
    except Permanent as error:
        raise Invalid(fault(error), {"$": [fault(error)]}) from error
    except Exception as error:  # the author's own code
        raised = guard().redact(f"{type(error).__name__}: {error}")[:300]
        said = told(
            _("The rule %(rule)s of %(graph)s failed on this payload (%(fault)s), so it cannot be approved."),
            rule=name,
            graph=run.graph,
            fault=raised,
        )
        raise Invalid(said, {"$": [said]}) from error
