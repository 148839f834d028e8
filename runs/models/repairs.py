"""The verbs for a run that has ended otherwise than it should: it goes on, is put aside, or begins anew as another."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any  # states are the author's

from django.utils.translation import gettext_lazy as _

from runs import secrets
from runs.errors import Invalid, told

if TYPE_CHECKING:
    from django.utils.functional import Promise

    from runs.models.checkpoint import Checkpoint
    from runs.models.entry import LedgerEntry
    from runs.models.run import Run

LONGEST_REASON = 10_000
UNCHANGED: Any = object()  # in place of a state: it stays as it is


class Repairs:
    """A part of Run. `by` is who stands in the trail; each raises Invalid for a reason that may not be stored.

    A repair raises Conflict, saying why, for a run that is neither failed nor cancelled, has begun to undo what it
    did, is erased or archived, has an effect in doubt, or is of a version that nobody serves or migrates. Its parent
    was told of its end once, and is not told of another one.
    """

    pk: uuid.UUID

    def retry(self, by: str, reason: str, state: Any = UNCHANGED) -> Checkpoint:
        """A failed or cancelled run executes the node where it stands anew, in the same step: it is due now.

        What is done there is not done again; what had failed is asked anew, and its children go on. `state`, a whole
        one, takes the place of the run's. Raises Invalid for one that does not fit its graph.
        """
        return self._repaired("retry", by, reason, state)

    def skip(self, by: str, reason: str, state: Any = UNCHANGED, to: str | None = None) -> Checkpoint:
        """A failed or cancelled run goes on after the node where it stands, as if that had committed `state`.

        `to`: which of the nodes that may follow it, where several may. After END it is completed at once. Otherwise
        as `retry`.
        """
        return self._repaired("skip", by, reason, state, to)

    def move(self, by: str, reason: str, to: str, state: Any = UNCHANGED) -> Checkpoint:
        """A failed or cancelled run goes on at any node of its version, in a step of its own. Otherwise as `retry`.

        Also at the node where it stands: then what that had done in its last step is done again.
        """
        return self._repaired("move", by, reason, state, to)

    def close(self, by: str, reason: str) -> Checkpoint:
        """Put a failed run aside: it stays failed, and waits for no operator any more. A repair takes it up again.

        Raises Conflict where it has not failed, or is closed, erased or archived already.
        """
        from runs.engine import putting_aside

        refuse_unfit(by, reason, _("Say why the run is closed."))
        checkpoint = putting_aside.close(self.pk, by, reason)
        self.refresh_from_db()
        return checkpoint

    def settle(
        self, by: str, key: str, outcome: str, reason: str, result: Any = None, step: int | None = None
    ) -> LedgerEntry:
        """Say what became of the effect that an ended run has in doubt under `key`; a live one asks its operators.

        `outcome`: happened (with its `result`), not_happened, or give_up: a repair asks the last two anew. `step` where
        the key is in doubt in several. Raises Missing, Conflict for a live run, TooEarly while the call may be under
        way, Invalid for a result that cannot be stored.
        """
        from runs.engine import settling

        refuse_unfit(by, reason, _("Say how you know what became of it."))
        entry = settling.settle_of_ended(self.pk, by, key, outcome, reason, result, step)
        self.refresh_from_db()
        return entry

    def fork(self, by: str, reason: str, seq: int | None = None) -> Run:
        """A new run that begins with the state at a checkpoint of this one (the latest by default), at its next node.

        It has keys of its own: what this run did in later steps it does again (`forking.would_send` lists it). What is
        done in the step where it begins it takes over, with the answers on which that stands, and asks people anew.
        Raises Conflict where that step, or a child of it, has an effect in doubt or under way, or what an earlier one
        did was undone; at the end of a completed run; and for one
        that is erased, or is undoing what it did.
        """
        from runs.engine import forking

        refuse_unfit(by, reason, _("Say why the run is forked."))
        return forking.fork(self.pk, by, reason, seq)

    def _repaired(self, way: str, by: str, reason: str, state: Any, to: str | None = None) -> Checkpoint:
        from runs.engine import repairing

        refuse_unfit(by, reason, _("Say why the run is repaired."))
        checkpoint = repairing.repaired(self.pk, repairing.Repair(way, by, reason, state, to))
        self.refresh_from_db()
        return checkpoint


def refuse_nobody(by: str) -> None:
    """Raises Invalid for what names nobody: an empty name, as of who has not signed in, or none."""
    if not isinstance(by, str) or not by.strip():
        raise Invalid(_("Say who does it."), {"by": [_("Say who does it.")]})


def refuse_unfit(by: str, reason: str, wanted: str | Promise) -> None:
    """Raises Invalid for a `by` or a reason that may not be stored, and with what is `wanted` where there is none."""
    refuse_nobody(by)
    if not isinstance(reason, str) or not reason.strip():
        raise Invalid(wanted, {"reason": [wanted]})
    if len(reason) > LONGEST_REASON:
        said = told(
            _("Too long: %(count)s characters, %(most)s are the most."),
            count=len(reason),
            most=LONGEST_REASON,
        )
        raise Invalid(told("reason: %(fault)s", fault=said), {"reason": [said]})
    secrets.refuse(reason, "reason")
    secrets.refuse(by, "by")
