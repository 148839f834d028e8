"""The competitive brief on the parts that `bin/up` starts, while they are being killed: one mail, as approved."""

from __future__ import annotations

import json
import os
import random
import secrets
import smtplib
import time
from dataclasses import dataclass, field

import pytest

from approvals.models import Approval, Decision
from examples.graphs import MAIL_KEY
from runs import start
from runs.models import LedgerEntry, Run
from runs.verify import first_bad_row
from tests.acceptance.installation import ended, until
from tests.acceptance.parts import MODEL, Parts, started
from tests.examples.smtp_server import Postbox, listening

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.acceptance]

GIVEN = {"goal": "Which of these should carry our background work?", "to": "board@example.com"}
EDITED_TO = "helen@example.com"
EDITED_BODY = "Dear Helen,\n\nTake django-q2.\n\nYours, pm"

NODE, WORKER, TREE = "node", "worker", "tree"
ASKED, DECIDED = "asked", "decided"
# Where a life is, by the number of steps behind it, and about how many seconds that part of it takes.
PARTS_OF_LIFE = {"vendor 1": (0, 1.2), "vendor 2": (1, 1.2), "vendor 3": (2, 1.2), "draft": (4, 3.5), ASKED: (5, 1.5)}
SLOW = {"look_up": 1.2, "think": 1.2, "send": 1.2, "script": "429,ok"}
DECIDED_SECONDS = 1.5
KILLS = 10


@pytest.fixture
def requester(person):
    return person("requester")


@pytest.mark.postgres_only
def test_ten_kills_at_random_moments_and_one_mail_as_it_was_decided(process_environment, tmp_path, person, requester):
    """P1, P3, P4, P8: the decision is made by the command."""
    person("pm", "pm")
    with started(process_environment, tmp_path, **SLOW) as parts:
        life = Life(parts, start("competitive-brief", GIVEN, by=requester))
        life.kill_until_asked()
        life.kill_while(ASKED)
        decide(parts, asked(life.run))
        life.kill_while(DECIDED)
        life.ends_well()


@pytest.mark.browser
def test_ten_kills_at_random_moments_and_one_mail_as_it_was_decided_in_a_browser(
    process_environment, tmp_path, requester
):
    """P1, P3, P4, P8: a PM signs in, edits the e-mail and approves it while everything is being killed."""
    demo = {"DURABLEWEB_DEBUG": "1", "DURABLEWEB_ALLOWED_HOSTS": "127.0.0.1"}
    with started(process_environment, tmp_path, **SLOW) as parts, parts.pages() as site:
        life = Life(parts, start("competitive-brief", GIVEN, by=requester))
        parts.say("demo", **demo)
        with reviewer(site, parts.demo_password("pm")) as page:
            life.kill_until_asked()
            edit(page, asked(life.run))
            life.kill_while(ASKED)
            page.locator(".action-bar .button-primary").click()
            until(lambda: Decision.objects.exists(), 10)
            life.kill_while(DECIDED)
        life.ends_well()
