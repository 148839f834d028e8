"""Send one notice: look whether it is still of use, count the try, send, note the end.

Killed between sending and noting, it is sent again when the chore's lease ends, under the same id: at least once. A
receiver that keeps ids (`Message-ID`, `webhook-id`) sees it once.
"""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING

from approvals import mentions
from approvals.models.approval import Approval
from approvals.models.notice import Notice
from approvals.notices import bundling, channels, words
from runs.engine import clock

if TYPE_CHECKING:
    from datetime import datetime

log = logging.getLogger(__name__)


def send(pk: uuid.UUID) -> None:
    notice = bundling.with_all(Notice.objects.filter(pk=pk, status=words.WAITING)).first()
    if notice is None:
        return
    now = clock.now()
    if why := _is_useless(notice):
        notice.drop(why)
        return
    if quiet_until := bundling.held_until(notice, now):
        notice.hold(quiet_until)
        return
    if notice.held and not bundling.gather(notice):
        return  # it stands in the mail of another one
    if notice.held:
        notice.parts = _still_of_use(notice)
    if not notice.intend():
        return
    try:
        channels.SENDERS[notice.channel](notice)
    except channels.NotSent as fault:
        _failed(notice, str(fault), clock.now(), for_good=fault.is_final)
    except Exception as error:  # a fault of ours, or of a library: what it says may hold an address
        log.exception("Notice %s: the %s channel failed", notice.pk, notice.channel)
        _failed(notice, type(error).__name__, clock.now())
    else:
        now = clock.now()
        notice.done(now)
        if notice.target is not None:
            notice.target.worked(now)


def _still_of_use(notice: Notice) -> list[Notice]:
    """The parts of its mail; what is decided meanwhile is taken out of it, and would be told again after an undo."""
    told = []
    for part in bundling.parts(notice):
        why = _is_useless(part)
        if not why:
            told.append(part)
        elif part.pk != notice.pk:
            part.leave(why)
    return told


def _failed(notice: Notice, error: str, now: datetime, *, for_good: bool = False) -> None:
    again = notice.put_off(error, now, for_good=for_good)
    log.warning("Notice %s by %s: %s; %s", notice.pk, notice.channel, error, again or "given up")
    if notice.target is not None:
        notice.target.failed(error, now, again)


def _is_useless(notice: Notice) -> str:
    """Why it need not be sent any more; "" if it should be."""
    asks = notice.occasion in words.WHILE_OPEN
    if getattr(notice.approval.run, "tombstone", None) is not None:
        return "erased with its run"
    if asks and not notice.approval.is_open:
        return words.DECIDED_MEANWHILE
    if notice.person is None:
        return "" if notice.target.is_on else "switched off"
    if not notice.person.is_active:
        return "the account is switched off"
    if notice.occasion == words.MENTIONED and not mentions.may_see(notice.approval, notice.person):
        return "it may not be seen by them any more"
    if asks and not Approval.objects.for_user(notice.person).filter(pk=notice.approval_id).exists():
        return "it is not theirs to decide any more"
    return ""
