"""What an open page may watch, by name: `run:<id>` is one thing, `runs` is whether anything in its lists changed."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any  # querysets of any model, and what an ASGI scope holds

from django.conf import settings
from django.contrib import auth
from django.http import HttpRequest

from runs import audience
from runs.audience import EVERYONE, Audience, Onlooker
from runs.models import Run

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User
    from django.db.models import QuerySet

MOST_LOOKED_AT = 500

# The ids of what changed, by the word of their subject: {"run": {...}}.
Changed = Mapping[str, Collection[uuid.UUID]]


@dataclass(frozen=True, slots=True)
class Subject:
    """One kind of thing: each is watched as `word:<id>`, any list of them as `plural`, "" where there are no lists."""

    word: str
    plural: str
    visible: Callable[[User], QuerySet[Any]]
    runs: Callable[[Collection[uuid.UUID]], Collection[uuid.UUID]]  # those that such things belong to

    def name(self, key: uuid.UUID) -> str:
        return f"{self.word}:{key}"


_subjects: dict[str, Subject] = {}


def also(subject: Subject) -> None:
    """Let pages watch another kind of thing; its Sources (runs/live/tail.py) say when one has changed."""
    _subjects[subject.word] = subject


also(Subject("run", "runs", Run.objects.visible_to, lambda keys: keys))
also(Subject("text", "", Run.objects.visible_to, lambda keys: keys))  # what the calls of a run are saying


def subjects() -> Collection[Subject]:
    return _subjects.values()


def names(changed: Changed) -> set[str]:
    """Those of the things, not of the lists that they are in."""
    return {_subjects[word].name(key) for word, keys in changed.items() for key in keys}


def may_watch(user: User, names: Collection[str]) -> set[str]:
    """Those of `names` that this person may watch. What is not theirs and what is not there are left out alike."""
    allowed = {subject.plural for subject in subjects() if subject.plural} & set(names)
    wanted: dict[str, list[uuid.UUID]] = {}
    for name in names:
        word, _colon, digits = name.partition(":")
        key = _key(digits)
        if word in _subjects and key is not None:
            wanted.setdefault(word, []).append(key)
    for word, keys in wanted.items():
        subject = _subjects[word]
        seen = subject.visible(user).filter(pk__in=keys).values_list("pk", flat=True)
        allowed.update(subject.name(key) for key in seen)
    return allowed


def onlooker(user: User, names: Collection[str]) -> tuple[Onlooker, set[str]]:
    """What decides of which lists this person is told, and those of `names` that they may watch."""
    return Onlooker.of(user), may_watch(user, names)


def audiences(changed: Changed) -> dict[str, Audience]:
    """Who sees any of what changed, by the word of its subject. Of very many at once it is taken to be everyone: that
    "runs" changed gives nothing away."""
    return {
        word: audience.of_runs(_subjects[word].runs(keys)) if len(keys) <= MOST_LOOKED_AT else EVERYONE
        for word, keys in changed.items()
        if _subjects[word].plural
    }


def sees_any(user: User, changed: Changed) -> set[str]:
    """The lists (their plurals) in which this person sees something that changed: for one who has just come."""
    lists = {word: keys for word, keys in changed.items() if _subjects[word].plural}
    return {_subjects[word].plural for word, keys in lists.items() if _sees_any(user, word, keys)}


def signed_in(session_key: str | None) -> User | AnonymousUser:
    """Whose session that is now: nobody's after signing out, a new password, or the end of the account."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return auth.get_user(request)


def _sees_any(user: User, word: str, keys: Collection[uuid.UUID]) -> bool:
    if len(keys) > MOST_LOOKED_AT:
        return True
    return bool(keys) and _subjects[word].visible(user).filter(pk__in=keys).exists()


def _key(digits: str) -> uuid.UUID | None:
    try:
        key = uuid.UUID(digits)
    except ValueError:
        return None
    return key if str(key) == digits else None
