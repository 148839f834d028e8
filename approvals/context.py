"""What every page's frame shows about approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.functional import SimpleLazyObject

from approvals.counting import Count, Countable, counted_of
from approvals.models import Approval, reach

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest


def inbox(request: HttpRequest) -> dict[str, object]:
    """`inbox_count` for the badge, counted only where a template prints it."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {"inbox_count": SimpleLazyObject(lambda: badge(user))}


def badge(user: User) -> Count:
    """What waits for this person: the rows, and the number, of the scope Mine."""
    return counted_of(f"mine:{user.pk}", lambda: _mine(user))


def _mine(user: User) -> Countable:
    return reach.countable("mine", Approval.objects.mine(user).in_order(), user)
