"""LangChain's human-in-the-loop requests, shown and answered in their own form.

A question is answered so if its payload is such a request: the run then gets exactly the JSON that the framework
resumes with. Nothing here reads or writes a row; what is allowed stands in the stored request alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any  # a request is any JSON

from approvals.contracts import batched, inbox, per_call

if TYPE_CHECKING:
    from approvals.contracts.contract import Contract


def contract_of(request: dict[str, Any]) -> Contract | None:
    """The contract that a question is answered in; None if its payload is none, or is not whole.

    A gated call, and a question about an effect in doubt, have a form of their own whatever their arguments look like.
    """
    if request.get("call") is not None or request.get("settles") is not None:
        return None
    payload, schema = request.get("payload"), request.get("schema")
    return batched.read(payload) or per_call.read(payload, schema) or inbox.read(payload)
