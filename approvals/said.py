"""What one person sent, checked as far as it can be before any lock."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final  # Any: payloads are any JSON

from django.utils.translation import gettext_lazy as _

from approvals import payload as payloads
from approvals.rules import judge
from approvals.signing import Proof, sign
from approvals.text import checked_text, storable_text
from approvals.words import APPROVE, EDIT, REJECT, RESPOND, VIAS
from runs import secrets
from runs.conf import conf
from runs.core import codec
from runs.core.rules import Judgement
from runs.core.words import is_legible
from runs.engine import clock
from runs.errors import Invalid, either, told

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from approvals.models import Approval

OPERATION_ID_LONGEST = 200


class AsProposed:
    """No payload was sent: what is on the table is meant. (null would be a payload.)"""

    def __repr__(self) -> str:
        return "AS_PROPOSED"


AS_PROPOSED: Final = AsProposed()


@dataclass(frozen=True, slots=True)
class Said:
    """`text` is the payload's canonical text, None for what is on the table; `reason` is byte for byte as sent.

    `needs` are the stages that `text` needs, if the question has stages.
    """

    by: User
    verdict: str
    text: str | None
    reason: str
    revision: int | None
    operation_id: str
    operation_digest: str
    via: str
    seen: str
    signed_in: str
    needs: tuple[int, ...] = ()
    signature: str = ""


def listen(
    approval: Approval,
    by: User,
    verdict: str,
    payload: Any,
    reason: str,
    revision: int | None,
    operation_id: str | None,
    via: str,
    seen: Any,
    signed_in: str,
    password: str | None = None,
    proof: Proof | None = None,
) -> Said:
    """Raises Invalid, with field errors by path ($.to) for the payload and by name for the rest."""
    if verdict not in approval.verdicts:
        fault = told(
            _("“%(verdict)s” is not offered here; choose %(offered)s."),
            verdict=str(verdict)[:40],
            offered=either(approval.verdicts),
        )
        raise Invalid(fault, {"verdict": [fault]})
    if via not in VIAS:
        fault = told(_("%(given)s: choose one of %(all)s."), given=repr(via), all=", ".join(VIAS))
        raise Invalid(fault, {"via": [fault]})
    if revision is not None and type(revision) is not int:
        raise Invalid(_("The revision is a whole number."), {"revision": [_("Write a whole number.")]})
    reason = checked_text(reason, "reason")
    text = _payload_text(approval, verdict, payload)
    needs = _needs(approval, verdict, text)
    secrets.refuse(reason, "reason")
    if text is not None:
        _must_have_room(text)
        secrets.refuse_in(codec.decode(text))
    signature = sign(by, verdict, password, proof, clock.now()) if approval.request.get("sign") else ""
    seen_text = seen if isinstance(seen, str) else "" if seen is None else codec.dumps(seen)
    return Said(
        by=by,
        verdict=verdict,
        text=text,
        reason=reason,
        revision=revision,
        operation_id=_checked_operation_id(operation_id),
        operation_digest=codec.digest(codec.dumps([str(approval.pk), verdict, text, reason])),
        via=via,
        seen=storable_text(seen_text),
        signed_in=storable_text(signed_in)[:200],
        needs=needs,
        signature=signature,
    )


def _needs(approval: Approval, verdict: str, text: str | None) -> tuple[int, ...]:
    """The stages that the payload sent needs; none said where nothing was sent. Raises Invalid if a policy objects."""
    if text is None or not (approval.stages or approval.request.get("policy")):
        return ()
    digest = codec.digest(text)
    in_words = verdict == RESPOND and bool({APPROVE, EDIT} & set(approval.verdicts))
    if in_words or digest == approval.proposal_digest:
        return Judgement.of(approval.request).needs
    if approval.amendment is not None and digest == approval.payload_digest:
        return tuple(approval.amendment.needs or ())
    return judge(approval, text).needs


def _must_have_room(text: str) -> None:
    size, most = len(text.encode()), conf.value_limit_bytes
    if size > most:
        sizes = {"size": f"{size:,}", "most": f"{most:,}"}
        fault = told(_("This is %(size)s bytes as JSON, %(most)s bytes are the most."), **sizes)
        raise Invalid(told(_("The payload is too large: %(fault)s"), fault=fault), {"$": [fault]})


def _payload_text(approval: Approval, verdict: str, payload: Any) -> str | None:
    """The canonical text of the payload sent, once it fits; None for what is on the table."""
    if verdict == REJECT or payload is AS_PROPOSED or (payload is None and verdict == APPROVE):
        if verdict in (EDIT, RESPOND):
            fault = told(_("To %(verdict)s, send the payload that you want."), verdict=verdict)
            raise Invalid(fault, {"$": [fault]})
        return None
    value, text = payloads.read(payload)
    if verdict == RESPOND and approval.contract is not None:
        return codec.dumps(approval.contract.fitting(value))
    if verdict == RESPOND:
        return codec.dumps(payloads.fitting_answer(approval.request, value))
    if codec.digest(text) in (approval.proposal_digest, approval.payload_digest):
        return text
    if EDIT not in approval.verdicts:
        fault = _("This payload may not be edited; approve it as it is, or reject it.")
        raise Invalid(fault, {"$": [fault]})
    return codec.dumps(payloads.fitting(approval.request, approval.run, value))


def _checked_operation_id(operation_id: str | None) -> str:
    if operation_id is None:
        return uuid.uuid4().hex
    if isinstance(operation_id, str) and is_legible(operation_id):
        if len(operation_id) <= OPERATION_ID_LONGEST:
            secrets.refuse(operation_id, "operation_id")
            return operation_id
    fault = told(
        _("An operation id is a text of 1 to %(most)s printable characters."), most=OPERATION_ID_LONGEST
    )
    raise Invalid(fault, {"operation_id": [fault]})
