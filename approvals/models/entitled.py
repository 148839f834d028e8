"""What makes an approval one person's, as conditions for the database: the rules of `who` and of `runs.sight`.

Tests compare both over many people and approvals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import IntegerField

from approvals import who
from approvals.models.condition import Condition, one_of
from runs import sight

if TYPE_CHECKING:
    from django.contrib.auth.models import User

# The least of what the rows that name somebody, or whose part they gave away, say of them: 0 bars, 1 asks. In a CASE
# the database asks what follows only of those that are asked.
_MAY_DECIDE = """
CASE WHEN 1 = (
    SELECT MIN(CASE
        WHEN named.excluded THEN 0
        WHEN named.stage <> {row}.stage THEN NULL
        WHEN named.instead_of_id = %s THEN 0
        WHEN named.instead_of_id IS NULL THEN 1
        WHEN named.name = %s AND (SELECT away.is_active FROM auth_user away WHERE away.id = named.instead_of_id) THEN 1
    END)
    FROM approvals_reviewer named
    WHERE named.approval_id = {row}.id AND (named.name NAMES OR named.instead_of_id = %s)
) AND (
    SELECT 1 FROM approvals_vote given
    WHERE given.approval_id = {row}.id AND given.by_id = %sOF_THOSE LIMIT 1
) IS NULL AND (
    SELECT 1 FROM runs_run own
    WHERE own.id = {row}.run_id AND (own.created_by_id = %s OR own.on_behalf_of_id = %s)
) IS NULL THEN 1 END IS NOT NULL
"""
_OF_EARLIER_STAGES = " AND given.stage <> {row}.stage"

_NAMED = """
(SELECT 1 FROM approvals_reviewer named
 WHERE named.approval_id = {row}.id AND NOT named.excluded AND named.name NAMES LIMIT 1) IS NOT NULL
"""

_THEIRS = f"""
{_NAMED} OR {{row}}.assignee_id = %s
OR (SELECT 1 FROM approvals_decision made
    WHERE made.approval_id = {{row}}.id AND made.by_id = %s LIMIT 1) IS NOT NULL
"""

# Most often this one is theirs, and what else was asked in its run is not looked at then.
_SEES = f"""
{_THEIRS}
OR (SELECT 1 FROM approvals_approval another
    WHERE another.run_id = {{row}}.run_id AND another.id <> {{row}}.id AND ({_THEIRS.replace("{row}", "another")})
    LIMIT 1) IS NOT NULL
OR (SELECT 1 FROM runs_run own WHERE own.id = {{row}}.run_id AND OWN) IS NOT NULL
"""

# From the names to the people: of the two thousand who could be asked, only those who are.
_ABLE = """
(SELECT COUNT(*) FROM auth_user person WHERE person.is_active AND person.id IN (
    SELECT called.id FROM approvals_reviewer named JOIN auth_user called ON called.username = named.name
    LEFT JOIN auth_user away ON away.id = named.instead_of_id
    WHERE named.approval_id = {row}.id AND named.stage = {row}.stage AND NOT named.excluded
        AND (named.instead_of_id IS NULL OR away.is_active)
    UNION
    SELECT member.user_id FROM approvals_reviewer named JOIN auth_group called ON called.name = named.name
    JOIN auth_user_groups member ON member.group_id = called.id
    WHERE named.approval_id = {row}.id AND named.stage = {row}.stage AND NOT named.excluded
        AND named.instead_of_id IS NULL
) AND NOT EXISTS (
    SELECT 1 FROM approvals_reviewer barred
    WHERE barred.approval_id = {row}.id AND barred.excluded AND (barred.name = person.username OR EXISTS (
        SELECT 1 FROM auth_user_groups member JOIN auth_group called ON called.id = member.group_id
        WHERE member.user_id = person.id AND called.name = barred.name))
) AND NOT EXISTS (
    SELECT 1 FROM approvals_reviewer given
    WHERE given.approval_id = {row}.id AND given.stage = {row}.stage AND given.instead_of_id = person.id
) AND NOT EXISTS (
    SELECT 1 FROM approvals_vote earlier
    WHERE earlier.approval_id = {row}.id AND earlier.by_id = person.id AND earlier.stage <> {row}.stage
) AND NOT EXISTS (
    SELECT 1 FROM runs_run own
    WHERE own.id = {row}.run_id AND (own.created_by_id = person.id OR own.on_behalf_of_id = person.id)
))
"""


def able_count() -> Condition:
    """How many people may decide it in the stage that decides now."""
    return Condition(_ABLE, output_field=IntegerField())


def may_decide(user: User) -> Condition:
    """`who.why_not` has nothing to say against them."""
    return _may_decide(user, _OF_EARLIER_STAGES)


def may_decide_still(user: User) -> Condition:
    """The same, and they have not voted on it."""
    return _may_decide(user, "")


def named(names: list[str]) -> Condition:
    """One of `names`, of which there is one at least, is a reviewer."""
    among, values = one_of(names)
    return Condition(_NAMED.replace("NAMES", among), *values)


def sees(user: User) -> Condition:
    """They may see the run, as `Run.objects.visible_to` says; asked of that row alone."""
    among, names = one_of(who.known_names(user))
    own, watched = sight.own_in_sql(user, "own")
    text = _SEES.replace("NAMES", among).replace("OWN", own)
    theirs = [*names, user.pk, user.pk]
    return Condition(text, *theirs, *theirs, *watched)


def _may_decide(user: User, of_those: str) -> Condition:
    among, names = one_of(who.known_names(user))
    text, me = _MAY_DECIDE.replace("NAMES", among).replace("OF_THOSE", of_those), user.pk
    return Condition(text, me, user.get_username(), *names, me, me, me, me)
