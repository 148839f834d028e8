"""The rows of one page of the inbox, with all that is printed of them and nothing else.

One statement in SQL: of each row Django would make four objects, with forty columns left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from approvals.models.condition import one_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from approvals.models.approval import Approval

# As `person_name` says it (runs/pages/words.py).
_CALLED = "COALESCE(NULLIF(TRIM({who}.first_name || ' ' || {who}.last_name), ''), {who}.username)"
_SHOWN = f"""
SELECT asked.id, asked.run_id, asked.graph, asked.title, asked.quorum, asked.risk, asked.due_at, asked.revision,
    asked.outcome, asked.opened_at, asked.decided_at, asked.assignee_id,
    (SELECT COUNT(*) FROM approvals_vote given
     WHERE given.approval_id = asked.id AND given.stage = asked.stage) AS votes_so_far,
    {_CALLED.format(who="holder")} AS holder_name,
    COALESCE({_CALLED.format(who="served")}, {_CALLED.format(who="starter")}) AS requester_name,
    served.username AS served_as, starter.username AS started_as
FROM approvals_approval asked
JOIN runs_run own ON own.id = asked.run_id
LEFT JOIN auth_user served ON served.id = own.on_behalf_of_id
LEFT JOIN auth_user starter ON starter.id = own.created_by_id
LEFT JOIN auth_user holder ON holder.id = asked.assignee_id
WHERE asked.id AMONG
"""


def shown(keys: Sequence[UUID]) -> list[Approval]:
    """Those of `keys`, in their order, that there are still.

    Each has `votes_so_far` (of the stage that decides now); `holder_name` and `requester_name`, as people read them,
    None where there is nobody; and `served_as` and `started_as`, the user names of those for whom, and by whom.
    """
    from approvals.models.approval import Approval

    if not keys:
        return []
    among, values = one_of([Approval._meta.pk.get_db_prep_value(key, connection) for key in keys])
    found = {row.pk: row for row in Approval.objects.raw(_SHOWN.replace("AMONG", among), values)}
    return [found[key] for key in keys if key in found]
