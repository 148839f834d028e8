"""What the page of one approval shows, gathered in one place; templates only print it."""

from __future__ import annotations

import math
import re
import uuid
from functools import cached_property
from typing import TYPE_CHECKING, Any  # payloads are any JSON
from urllib.parse import quote_plus

from django.utils.translation import gettext as _

from approvals import chain, mentions, words
from approvals.asked import Asked
from approvals.contracts import sheet
from approvals.facts import Effect, Fact, effect, facts, facts_as_typed
from approvals.forms.posted import Draft, proposed
from approvals.forms.values import json_text, visible
from approvals.history import Note, Path, notes, path_of
from approvals.markdown import rendered
from approvals.models.deciding import VERDICT_OF
from approvals.payload import as_json
from approvals.refusals import must_be_revision
from approvals.signing import Proof
from runs.engine import clock
from runs.errors import Conflict
from runs.naming import apart
from runs.pages.words import person_name

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.utils.safestring import SafeString

    from approvals.contracts.contract import Contract
    from approvals.contracts.sheet import Card
    from approvals.forms.fields import Field
    from approvals.models import Approval, Decision, KeptDraft
    from approvals.trouble import Trouble

IN_WORDS = {"type": "string", "format": "textarea"}  # an answer in words, where nothing was proposed
LARGEST = 750_000  # characters of a payload's JSON as sent, up to three times; Django takes 2.5 MB


class ApprovalPage(Asked):
    """One approval for one person, at one moment. Each property is read at most once."""

    def __init__(
        self, approval: Approval, user: User, *, trouble: Trouble | None = None, now: datetime | None = None
    ) -> None:
        self.approval, self.user = approval, user
        self.given: Draft | None = None
        self.trouble = trouble
        self.now: datetime = now or clock.now()
        self.operation_id = uuid.uuid4().hex
        self.seen_revision: int | None = None  # of the page that reads a part of itself again
        self.kept: KeptDraft | None = None  # what this person typed and did not send (approvals/drafts.py)
        self.is_taken_up = False  # the form shows it
        self.proof: Proof | None = None  # who they are, shown just now, for a signature
        self.stale_json = ""  # the same of an edit, where the text that was edited has changed

    @cached_property
    def request(self) -> dict[str, Any]:
        return self.approval.request

    @cached_property
    def why(self) -> SafeString:
        return rendered(self.approval.body)

    @cached_property
    def effect(self) -> Effect:
        actions = [action.name for action in self.contract.actions] if self.contract is not None else []
        return effect(self.approval.run, self.request, actions)

    @property
    def has_outcome(self) -> bool:
        """Whether there is anything to say of what was asked: of a closed question in words there may be nothing."""
        return bool(self.approval.is_open or self.effect.tool or self.facts or self.settles or self.bound_to)

    @cached_property
    def facts(self) -> list[Fact]:
        if self.contract is not None:
            return []  # each action shows its own
        if self.given is None or self.payload is None:
            return facts(self.payload, self.proposal, self.schema)
        return facts_as_typed(self.payload, self.proposal, self.given.payload, self.schema)

    @property
    def contract(self) -> Contract | None:
        return self.approval.contract

    @cached_property
    def cards(self) -> list[Card]:
        """The actions of a contract: as a form while this person may answer, else with what was answered."""
        if self.contract is None:
            return []
        if self.has_form:
            return sheet.cards(self.contract, self.draft.form)
        answered = self.approval.amendment
        return sheet.cards(self.contract, None, answered.value if answered is not None else None)

    @cached_property
    def payload(self) -> Any:
        return self.approval.payload

    @cached_property
    def proposal(self) -> Any:
        return self.approval.proposal

    @cached_property
    def settles(self) -> dict[str, Any]:
        return self.request.get("settles") or {}

    @property
    def objection(self) -> str:
        """What the author's policy says against approving what stands; an edit that stands has passed it."""
        return "" if self.approval.amendment_id else visible(self.request.get("objection") or "")

    @property
    def bound_to(self) -> str:
        """The digests of what the payload only names, as JSON; "" where nothing is bound."""
        bound = (self.request.get("call") or {}).get("bound")
        return "" if bound is None else visible(json_text(as_json(bound)))

    @cached_property
    def earlier(self) -> Approval | None:
        """The question that this one was asked anew for, if what that spoke of has changed."""
        asked_anew = re.fullmatch(r"(.*\?)(\d+)", self.approval.entry.key)
        if asked_anew is None:
            return None
        stem, number = asked_anew[1], int(asked_anew[2])
        key = f"{stem}{number - 1}" if number > 2 else stem
        entries = {"entry__step": self.approval.entry.step, "entry__key": key}
        return type(self.approval).objects.filter(run=self.approval.run_id, **entries).first()

    # -- the form -------------------------------------------------------------------------------------------

    @property
    def answers_only(self) -> bool:
        """Nothing to approve: the question is answered by the form itself."""
        return not {words.APPROVE, words.EDIT} & set(self.approval.verdicts)

    @property
    def in_words(self) -> bool:
        return self.answers_only and self.payload is None and self.schema is None

    @cached_property
    def schema(self) -> Any:
        return self.request.get("schema")

    def blank(self) -> tuple[Any, Any]:
        """(payload, schema) that the form is made from."""
        if self.contract is not None:
            return self._sheet, sheet.schema(self.contract)
        return ("", IN_WORDS) if self.in_words else (self.payload, self.schema)

    @cached_property
    def _sheet(self) -> dict[str, Any]:
        """What somebody else has answered stands on it, to be agreed with."""
        answered = self.approval.amendment
        if answered is None:
            return sheet.blank(self.contract)
        return sheet.filled(self.contract, self.contract.listen(answered.value))

    @cached_property
    def draft(self) -> Draft:
        return self.given or proposed(*self.blank())

    @property
    def faulty(self) -> list[tuple[Field, str]]:
        """The fields that have an error, with what a link to each says."""
        said = [(field, field.label or field.path) for field in self.draft.faulty]
        if self.contract is None:
            return said
        called = [(field, sheet.named(self.contract, field.path, label)) for field, label in said]
        return [(field, label) for field, label in called if label]

    @property
    def loose_errors(self) -> list[tuple[str, str]]:
        """(path, message) of what no field of the page shows."""
        shown = {field.path for field, _label in self.faulty}
        fields = [field for field in self.draft.faulty if field.path not in shown]
        return self.draft.loose_errors + [(field.path, text) for field in fields for text in field.errors]

    @property
    def is_posted(self) -> bool:
        """The form shows what was just sent, not what was kept of an earlier visit."""
        return bool(self.trouble or self.given) and not self.is_taken_up

    @property
    def may_edit(self) -> bool:
        return self.may_decide and bool({words.EDIT, words.RESPOND} & set(self.approval.verdicts))

    @property
    def has_form(self) -> bool:
        return (
            self.may_edit
            and not self.is_too_large
            and (self.payload is not None or self.answers_only or bool(self.schema))
        )

    @cached_property
    def is_too_large(self) -> bool:
        return len(quote_plus(json_text(self.payload))) > LARGEST

    @property
    def main_verdict(self) -> str:
        """What the one primary button says."""
        offered = self.approval.verdicts
        return next((word for word in (words.APPROVE, words.EDIT, words.RESPOND) if word in offered), "")

    @property
    def may_reject(self) -> bool:
        return words.REJECT in self.approval.verdicts

    @property
    def may_respond(self) -> bool:
        return words.RESPOND in self.approval.verdicts and not self.answers_only

    @property
    def reasons(self) -> list[str]:
        return list(self.request.get("reasons") or ())

    @property
    def draft_key(self) -> str:
        return f"{self.approval.pk}:{self.user.pk}"

    @cached_property
    def seen(self) -> dict[str, Any]:
        """The JSON from which this page was made; kept with the decision."""
        return {
            "approval": str(self.approval.pk),
            "revision": self.approval.revision,
            "question": self.approval.title,
            "why": self.approval.body,
            "payload": self.payload,
            "payload_digest": self.approval.payload_digest,
            "call": self.request.get("call"),
            "settles": self.request.get("settles"),
            "risk": self.approval.risk,
            "due_at": self.approval.due_at.isoformat() if self.approval.due_at else None,
        }

    @property
    def form_revision(self) -> int:
        """The revision that the form on the screen was made from: a part that is read again does not move it."""
        return self.seen_revision or self.approval.revision

    @cached_property
    def moved(self) -> str:
        """Who changed what since the page was made; "" if nobody did."""
        try:
            must_be_revision(self.approval, self.seen_revision)
        except Conflict as changed:
            return changed.message
        return ""

    # -- who ------------------------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> list[Any]:
        return chain.trail_as_read(self.approval)

    @cached_property
    def notes(self) -> list[Note]:
        return notes(self.approval, self.rows, self.user)

    @property
    def commented_at(self) -> datetime | None:
        """When this person last said something here."""
        said = (row for row in self.rows if getattr(row, "kind", "") == words.COMMENTED)
        return max((row.at for row in said if row.by_id == self.user.pk), default=None)

    @cached_property
    def mentionable(self) -> list[User]:
        return mentions.mentionable(self.approval, self.user)

    @cached_property
    def path(self) -> Path:
        return path_of(self.approval.run, self.approval.decided_at)

    # -- after the decision ---------------------------------------------------------------------------------

    @property
    def conclusion(self) -> Decision | None:
        return self.approval.conclusion

    @property
    def is_mine(self) -> bool:
        return self.conclusion is not None and self.conclusion.by_id == self.user.pk

    @property
    def who_concluded(self) -> str:
        """Ada approved this; You rejected this; You for Ada answered this."""
        made = self.conclusion
        who = _("You") if self.is_mine else apart(person_name(made.by))
        if made.instead_of is not None:
            who = _("%(who)s for %(whom)s") % {"who": who, "whom": apart(person_name(made.instead_of))}
        verdict = VERDICT_OF.get(self.approval.outcome, words.RESPOND)
        return str(words.DID[verdict]) % {"who": who}

    @property
    def may_undo(self) -> bool:
        """The row decides: what no worker has taken yet can be taken back by who decided."""
        entry = self.approval.entry
        return (
            self.is_mine and entry.status == "done" and entry.taken_at is None and not self.approval.run.ended
        )

    @property
    def starts_at(self) -> datetime | None:
        """From when the run may take the answer; none once it may."""
        at = self.approval.entry.effective_at
        return at if at is not None and at > self.now and self.approval.entry.taken_at is None else None

    @property
    def seconds_left(self) -> int:
        return math.ceil((self.starts_at - self.now).total_seconds()) if self.starts_at else 0

    @property
    def state_words(self) -> str:
        if not self.approval.is_open:
            return ""
        if self.is_late:
            return _("Deadline passed")
        if self.my_vote:
            return _("Waiting for others, you have voted")
        return _("Waiting for you") if not self.why_not else _("Waiting for others")
