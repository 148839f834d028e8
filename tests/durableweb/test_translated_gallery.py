"""Every page of the gallery in another language: what it says in English is a name, or stands so in a row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from django.apps import apps
from django.conf import settings
from django.db import models
from django.test import Client
from django.urls import resolve
from django.utils import translation

from runs import registry
from tests.amounts import THOROUGH, dice
from tests.durableweb.pseudo_german import GERMAN, pseudo_german, unmarked
from tests.gallery.fill import fill
from tests.gallery.lives import GRAPHS
from tests.gallery.shown import Shown
from tests.security.test_routes import RULES

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = set(
    "durableweb Deutsch English JSON UTC CET CEST Permanent Transient Ambiguous QR DURABLEWEB_SITE_URL localhost "
    "JBSWY3DPEHPK3PXP".split()
)
SPOKEN = 3  # so many words of a recorded text are no accident
SIGNS = " .,:;()“”·…→?!|-"
OF_MACHINES = re.compile(r"https?://\S+|whsec_\S+|\S+@\S+|\b[0-9a-f]{6}\b|\b[A-Z][a-z]+/[A-Z]\w+")
# Routes with no page of their own: they are posted to and lead on, or answer machines.
NO_PAGE = set(
    """
    logout/ metrics/ tick/ admin/login/ login/not-now/ login/passkey/ account/confirm/passkey/ account/spare-codes/file/
    inbox/filters/ inbox/bulk/undo/ runs/preferences/ runs/<uuid:run_id>/blobs/<slug:sha256>/
    runs/<uuid:run_id>/cancellation/ approvals/<uuid:pk>/draft/ approvals/<uuid:pk>/draft/kept/
    approvals/<uuid:pk>/decision/ approvals/<uuid:pk>/undo/ approvals/<uuid:pk>/comments/
    approvals/<uuid:pk>/attachments/<int:number>/ approvals/<uuid:pk>/claim/ approvals/<uuid:pk>/assignment/
    approvals/<uuid:pk>/part/ approvals/<uuid:pk>/deadline/
    """.split()
)
# What a page fetches of itself, by the templates that the whole page has.
PARTS = set(
    """
    inbox/list/ inbox/new/ inbox/count/ runs/rows/ runs/<uuid:run_id>/live/ runs/<uuid:run_id>/texts/
    approvals/<uuid:pk>/parts/<slug:part>/
    """.split()
)
# tests/durableweb/sign_in has one; the gallery has not.
NEED_A_PROVIDER = set(
    """
    login/at/<slug:provider_id>/ login/from/<slug:provider_id>/ account/provider/ account/confirm/provider/
    """.split()
)
AFTER_A_PRESS = {"inbox/bulk/", "login/code/"}  # bulk and sign-in-code are in it
NOT_OF_OURS = {"sessions.session", "auth.permission", "contenttypes.contenttype"}


@pytest.fixture
def gallery(settings) -> Iterator[dict]:
    settings.ROOT_URLCONF = "tests.gallery.urls"
    try:
        yield fill()
    finally:
        translation.activate(settings.LANGUAGE_CODE)
        for graph in GRAPHS:
            registry.remove(graph)


def test_no_page_says_an_english_word_of_ours(gallery: dict):
    """And there is German for all that it asks gettext for, whoever wrote it: us, Django, allauth or Unfold."""
    names = sorted(gallery["pages"])
    if not THOROUGH:
        names = dice("translated pages").sample(names, len(names) // 8)
    recorded, left = Recorded(), {}
    with pseudo_german() as seen:
        for name in names:
            shown = Shown(*gallery["pages"][name])
            client = Client(raise_request_exception=False)
            if shown.person:
                client.cookies[settings.SESSION_COOKIE_NAME] = gallery["sessions"][shown.person]
            page = client.get(shown.address, **GERMAN).content.decode()
            assert page.count("⟦") > 3, name
            if found := [text for text in unmarked(page, NAMES) if not recorded.has(text)]:
                left[name] = found
    assert left == {}, json.dumps(left, indent=1)
    assert seen.english <= {"English", "Deutsch"}


def test_every_page_is_in_the_gallery(gallery: dict):
    """Of which pictures are taken, and which axe walks: each route that answers a browser with a page of its own."""
    shown = {urlsplit(address).path for _person, address, *_acts in gallery["pages"].values()}
    seen = {resolve(path).route for path in shown - {"/nowhere/"}}
    assert RULES.keys() - seen == NO_PAGE | PARTS | NEED_A_PROVIDER | AFTER_A_PRESS


class Recorded:
    """What people and authors wrote, in whichever row and at whichever depth."""

    def __init__(self) -> None:
        written = [*_written(), *(graph.name for graph in registry.served())]
        self.texts = {_plain(part) for text in written for part in (text, *text.split("**"))}
        self.all = " \n ".join(self.texts)

    def has(self, text: str) -> bool:
        """The whole of it, or each part between signs and numbers."""
        return self._is_there(text) or all(
            self._is_there(part) or part.strip() in NAMES
            for part in re.split(r"[^\w\s'’.…-]+|\b\d+\b", OF_MACHINES.sub(" | ", text))
            if re.search("[A-Za-z]{2}", part)
        )

    def _is_there(self, text: str) -> bool:
        plain = _plain(text)
        return plain in self.texts or len(plain.split()) >= SPOKEN and plain in self.all


def _plain(text: str) -> str:
    """Keys are shown with a capital and without their underscores; a sentence, without what ends it."""
    return " ".join(text.replace("_", " ").replace("*", "").lower().split()).strip(SIGNS)


def _written() -> Iterator[str]:
    for model in apps.get_models():
        if model._meta.label_lower in NOT_OF_OURS:
            continue
        kinds = (models.CharField, models.TextField, models.JSONField)
        fields = [field.name for field in model._meta.concrete_fields if isinstance(field, kinds)]
        for row in model.objects.values_list(*fields):
            yield from _strings(list(row))


def _strings(tree: object) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
        try:
            inner = json.loads(tree)
        except ValueError:
            return
        if not isinstance(inner, str):
            yield from _strings(inner)
    elif isinstance(tree, dict):
        for key, inner in tree.items():
            yield key
            yield from _strings(inner)
    elif isinstance(tree, list):
        for inner in tree:
            yield from _strings(inner)
