"""Whom an occasion is told: found out by a chore, when it is told, from who may decide then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import transaction

from approvals import mentions, who
from approvals.models.activity import Activity
from approvals.models.approval import Approval
from approvals.models.notice import Notice, NoticeWish, Occasion
from approvals.models.target import Target
from approvals.notices import bundling, words
from approvals.text import is_for_an_absence
from runs.engine import clock
from runs.engine.durably import durably
from runs.models import Tombstone

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.db.models import QuerySet


@dataclass(frozen=True, slots=True)
class Address:
    """People by mail, told apart by `round`; nobody is told the same twice. `together`: many come at once."""

    people: Iterable[User] = ()
    round: int = 0
    together: bool = False


def address(pk: int) -> None:
    """Write a notice for each who is to hear of it, once, and note that it was done: one transaction."""
    durably(lambda: _address(pk))


@transaction.atomic
def _address(pk: int) -> None:
    occasion = Occasion.objects.select_for_update().get(pk=pk)
    if occasion.look_at is None:
        return
    approval = Approval.objects.for_page().get(pk=occasion.approval_id)
    if Tombstone.objects.filter(run=approval.run_id).exists():
        Occasion.objects.filter(pk=pk).update(look_at=None)
        return
    if occasion.kind == words.REOPENED and approval.is_open:
        _ask_again(approval, occasion)
    if _is_still_so(approval, occasion):
        now = clock.now()
        to = _people(approval, occasion)
        wanted = _who_wants(to.people, occasion.kind)
        rows = [_notice(approval, occasion, to.round, now, channel=words.MAIL, person=one) for one in wanted]
        if to.together:
            for row in rows:
                row.held, row.send_at = True, now + bundling.WHILE_MORE_COME
        names = {row.name for row in approval.reviewers.all() if not row.excluded}
        rows += [
            _notice(approval, occasion, occasion.seq, now, channel=target.channel, target=target)
            for target in Target.objects.filter(is_on=True)
            if target.wants(approval, occasion.kind, names)
        ]
        Notice.objects.bulk_create(rows, ignore_conflicts=True)
    Occasion.objects.filter(pk=pk).update(look_at=None)


def _ask_again(approval: Approval, occasion: Occasion) -> None:
    """After an undo: what was dropped for the decision's sake is wanted again, under its id, and who was not told for
    its sake is asked. Not who undid it: they know."""
    now = clock.now()
    undone_by = Activity.objects.get(approval=approval, seq=occasion.seq).by_id
    dropped = approval.notices.filter(
        status=words.DROPPED, error=words.DECIDED_MEANWHILE, occasion__in=words.WHILE_OPEN
    )
    dropped.exclude(person=undone_by).update(status=words.WAITING, send_at=now, error="")
    asked = Occasion(approval=approval, kind=words.ASKED, seq=occasion.seq)
    people = _who_wants(_undecided(approval).exclude(pk=undone_by), words.ASKED)
    on_table = _on_table(approval)
    Notice.objects.bulk_create(
        [_notice(approval, asked, on_table, now, channel=words.MAIL, person=one) for one in people],
        ignore_conflicts=True,
    )


def _on_table(approval: Approval) -> int:
    """Tells what is asked about one text from what is asked about another."""
    return approval.amendment.seq if approval.amendment is not None else 0


def _is_still_so(approval: Approval, occasion: Occasion) -> bool:
    """What asks is for nothing once it is decided; what tells of a decision, once that was undone."""
    if occasion.kind in words.WHILE_OPEN:
        return approval.is_open
    if occasion.kind == words.MENTIONED:
        return True
    if occasion.kind == words.DECIDED:
        return approval.conclusion is not None and approval.conclusion.seq == occasion.seq
    if occasion.kind == words.REOPENED:
        return approval.is_open and approval.notices.filter(occasion=words.DECIDED).exists()
    return not approval.is_open


def _people(approval: Approval, occasion: Occasion) -> Address:
    kind = occasion.kind
    if kind in (words.ASKED, words.ESCALATED):
        told = approval.notices.filter(occasion=words.ASKED, person__isnull=False).values("person")
        asked = _undecided(approval)
        if kind == words.ESCALATED:
            asked = asked.exclude(pk__in=told)
        return Address(asked, _on_table(approval))
    if kind == words.REMINDED:
        able = _undecided(approval)
        at_it = able.filter(pk=approval.assignee_id)  # nobody, where who has it cannot decide it any more
        return Address(at_it if at_it.exists() else able, occasion.seq)
    if kind == words.ASSIGNED:
        row = Activity.objects.select_related("to").get(approval=approval, seq=occasion.seq)
        to = [row.to] if row.to is not None and row.to_id != row.by_id else []
        return Address(to, occasion.seq, together=is_for_an_absence(row.text))
    if kind in (words.DECIDED, words.EXPIRED):
        decider = approval.conclusion.by_id if approval.conclusion is not None else None
        requesters = {
            one.pk: one for one in (approval.run.created_by, approval.run.on_behalf_of) if one is not None
        }
        return Address([one for pk, one in requesters.items() if pk != decider], occasion.seq)
    if kind == words.MENTIONED:
        said = Activity.objects.get(approval=approval, seq=occasion.seq)
        seen_by = [one for one in mentions.people_in(said.text) if mentions.may_see(approval, one)]
        return Address([one for one in seen_by if one.pk != said.by_id], occasion.seq)
    return Address()


def _undecided(approval: Approval) -> QuerySet[User]:
    return who.able(approval).exclude(pk__in=approval.votes.values("by"))


def _who_wants(people: Iterable[User], kind: str) -> list[User]:
    """Those whose account is in use, who have an address, and have not said that they want no mail of this."""
    found = [one for one in people if one.is_active and one.email]
    wishes = NoticeWish.objects.filter(person__in=[one.pk for one in found])
    unwanted = {wish.person_id for wish in wishes if kind in wish.unwanted}
    return [one for one in found if one.pk not in unwanted]


def _notice(
    approval: Approval,
    occasion: Occasion,
    number: int,
    now: datetime,
    *,
    channel: str,
    person: User | None = None,
    target: Target | None = None,
) -> Notice:
    return Notice(
        approval=approval,
        occasion=occasion.kind,
        round=number,
        channel=channel,
        person=person,
        target=target,
        made_at=now,
        send_at=now,
    )
