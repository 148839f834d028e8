from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

import pytest
from django.test import Client


@pytest.fixture
def signed_in(client: Client, ada) -> Client:
    """The browser of ada, who reviews for pm."""
    client.force_login(ada)
    return client


@pytest.fixture
def uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what stands beside it: the list offers no scopes with their numbers, a good part of a page's cost.
    They have tests of their own."""
    from approvals.counting import Count  # models cannot be imported when this file is read
    from approvals.scopes import Numbers

    monkeypatch.setattr(Numbers, "scopes", ())
    monkeypatch.setattr(Numbers, "mine", Count(0))


class Mail(NamedTuple):
    """A mail that was tried: the notice under whose id it goes, and the approvals of which it tells."""

    notice: int
    tells: list[UUID]


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Mail]:
    """The mails that were tried, of which the first does not get through."""
    from approvals.notices import channels

    mails: list[Mail] = []

    def fails_once(notice) -> None:
        mails.append(Mail(notice.pk, [part.approval_id for part in notice.parts]))
        if len(mails) == 1:
            raise channels.NotSent("the mail server cannot be reached")

    monkeypatch.setitem(channels.SENDERS, "mail", fails_once)
    return mails
