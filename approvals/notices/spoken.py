"""In which language a notice is written: its reader's, where it has one reader and they are known to have one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from approvals.models.notice import NoticeWish

if TYPE_CHECKING:
    from approvals.models import Notice


def language_of(notice: Notice) -> str:
    """A mail's: its person's. A chat's: the target's own, else that of the user whom the target is for."""
    target = notice.target
    if target is None:
        wishes = NoticeWish.objects.filter(person=notice.person_id)
    elif target.language:
        return _known(target.language)
    else:
        wishes = NoticeWish.objects.filter(person__username=target.reviewer)
    return _known(wishes.values_list("language", flat=True).first())


def _known(language: str | None) -> str:
    """The site's, where there is none, or none any more."""
    return language if language in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE
