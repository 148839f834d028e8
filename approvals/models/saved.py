"""A filter of the inbox that a person keeps under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self
from urllib.parse import unquote_plus

from django.conf import settings
from django.db import models, transaction
from django.utils.translation import gettext as _

from approvals.text import storable_text
from runs import secrets
from runs.errors import Conflict, Invalid

if TYPE_CHECKING:
    from django.contrib.auth.models import User

MOST = 30  # of one person
LONGEST_NAME = 40


class SavedFilter(models.Model):
    """`query` is the filter as an address carries it, with its question mark."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_filters", db_index=False
    )
    name = models.CharField(max_length=LONGEST_NAME)
    query = models.CharField(max_length=1000)

    class Meta:
        ordering = ("name",)
        constraints = [
            # also the index of: one person's filters by name
            models.UniqueConstraint(fields=["person", "name"], name="saved_filter_name_once"),
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    @transaction.atomic
    def keep(cls, person: User, name: str, query: str) -> Self:
        """Save it under that name, in the place of one that had it. Raises Invalid, or Conflict at the limit."""
        name = " ".join(storable_text(name).split())
        if not name or len(name) > LONGEST_NAME:
            fault = _("A name has 1 to %(most)s characters.") % {"most": LONGEST_NAME}
            raise Invalid(fault, {"name": [fault]})
        secrets.refuse(name, "name")
        secrets.refuse(query, "query")
        secrets.refuse(unquote_plus(query), "query")
        mine = cls.objects.filter(person=person)
        if mine.count() >= MOST and not mine.filter(name=name).exists():
            raise Conflict(
                _("You have %(most)s saved filters, which is the most; remove one first.") % {"most": MOST}
            )
        kept, _created = cls.objects.update_or_create(person=person, name=name, defaults={"query": query})
        return kept

    @classmethod
    def forget(cls, person: User, name: str) -> bool:
        """Remove one's own filter of that name. False if there was none."""
        return bool(cls.objects.filter(person=person, name=name).delete()[0])
