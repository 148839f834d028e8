"""The demo people exist only on a machine of one's own."""

from __future__ import annotations

import json
import stat
from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.django_db


@pytest.fixture
def at_home(settings, tmp_path):
    settings.DEBUG, settings.ALLOWED_HOSTS, settings.HOME = True, list(settings.LOOPBACK), tmp_path
    return tmp_path


def demo():
    printed = StringIO()
    call_command("demo", stdout=printed)
    return printed.getvalue()


def test_each_signs_in_with_the_printed_password(at_home):
    lines = [line.split() for line in demo().splitlines()]
    assert [line[0] for line in lines] == ["pm", "ops", "auditor", "requester"]
    for name, password, *_ in lines:
        assert authenticate(username=name, password=password) is not None


def test_they_are_in_the_groups_that_the_examples_name(at_home):
    demo()
    groups = {user.username: [group.name for group in user.groups.all()] for user in User.objects.all()}
    assert groups == {"pm": ["pm"], "ops": ["ops"], "auditor": ["auditors"], "requester": []}
    assert [user.username for user in User.objects.filter(is_staff=True)] == ["ops"]
    assert not User.objects.filter(is_superuser=True).exists()


def test_a_second_call_changes_nothing_and_prints_the_same(at_home):
    assert demo() == demo()
    assert User.objects.count() == 4


def test_the_passwords_are_kept_for_their_owner_only(at_home):
    demo()
    kept = at_home / "demo-people.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert set(json.loads(kept.read_text())) == {"pm", "ops", "auditor", "requester"}


@pytest.mark.parametrize("wrong", [{"DEBUG": False}, {"ALLOWED_HOSTS": ["localhost", "durableweb.example"]}])
def test_they_are_refused_where_others_could_reach_them(at_home, settings, wrong):
    for name, value in wrong.items():
        setattr(settings, name, value)
    with pytest.raises(CommandError, match="DURABLEWEB_DEBUG=1"):
        demo()
    assert not User.objects.exists()
