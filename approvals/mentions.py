"""People named in a comment with an @: they are told of it. That gives nobody a right to see it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db.models import Q
from django.template.defaultfilters import linebreaksbr
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from approvals.forms.values import visible
from runs import registry
from runs.errors import Invalid, told
from runs.models import Run
from runs.naming import someone
from runs.pages.words import person_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.contrib.auth.models import User

    from approvals.models import Approval

MOST = 20  # people whom one comment tells
OFFERED = 60
_MENTION = re.compile(r"(?<![\w@.+-])@(\w[\w@.+-]{0,149})")


def names_in(text: str) -> list[str]:
    """What may be a user name behind an @, once each; a sentence's own dot or dash may be behind it."""
    found: dict[str, None] = {}
    for name in _MENTION.findall(text):
        found.setdefault(name)
        found.setdefault(name.rstrip("@.+-"))
    return [name for name in found if name]


def people_in(text: str) -> list[User]:
    """Those of them who are people with an account in use. A name with its dot goes before the one without."""
    names = names_in(text)
    if not names:
        return []
    people = get_user_model().objects.filter(username__in=names, is_active=True)
    return sorted(people, key=lambda one: names.index(one.username))


def marked(text: str, people: Mapping[str, User], reader: User) -> SafeString:
    """A comment as HTML: what was written, with these people's names marked where they stand behind an @."""
    parts, done = [], 0
    for found in _MENTION.finditer(text):
        person = people.get(found[1]) or people.get(found[1].rstrip("@.+-"))
        if person is None:
            continue
        name = person.get_username()
        yours = " mention-you" if person.pk == reader.pk else ""
        parts.append(escape(text[done : found.start()]))
        parts.append(
            format_html(
                '<span class="mention{}" title="{}">@{}</span>', yours, visible(person_name(person)), name
            )
        )
        done = found.start() + 1 + len(name)
    parts.append(escape(text[done:]))
    return linebreaksbr(mark_safe("".join(parts)))  # each part is escaped


def may_see(approval: Approval, person: User) -> bool:
    return Run.objects.visible_to(person).filter(pk=approval.run_id).exists()


def must_see(approval: Approval, text: str) -> None:
    """Raises Invalid naming who is mentioned and may not see this, or that they are too many."""
    people = people_in(text)
    if len(people) > MOST:
        fault = told(_("At most %(most)s people are told of one comment."), most=MOST)
        raise Invalid(fault, {"text": [fault]})
    for person in people:
        if not may_see(approval, person):
            fault = told(
                _(
                    "%(who)s may not see this, so a mention would not reach them; write the name without the @."
                ),
                who=someone(person),
            )
            raise Invalid(fault, {"text": [fault]})


def mentionable(approval: Approval, by: User) -> list[User]:
    """Whom `by` may mention, for a list to choose from: who is asked, who asked, and who watches the graph."""
    graph = registry.find(approval.run.graph, approval.run.version)
    rows = [row for row in approval.reviewers.all() if not row.excluded]
    names = {row.name for row in rows} | {name for row in rows if (name := row.group)}
    groups = names | {name for name in (graph.viewers, graph.operators) if name} if graph else names
    askers = [pk for pk in (approval.run.created_by_id, approval.run.on_behalf_of_id) if pk is not None]
    near = Q(username__in=names) | Q(groups__name__in=groups) | Q(pk__in=askers)
    excluded = [row.name for row in approval.reviewers.all() if row.excluded]
    people = get_user_model().objects.filter(near, is_active=True).exclude(pk=by.pk)
    return list(people.exclude(username__in=excluded).distinct().order_by("username")[:OFFERED])
