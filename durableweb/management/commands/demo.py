"""The demo people: who they are, their passwords, and that they exist only on a machine of one's own."""

from __future__ import annotations

import json
import os
import secrets
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple  # options are whatever the command line gives

from django.conf import settings
from django.contrib.auth.models import Group, Permission, User
from django.core.management.base import CommandError
from django.db import transaction

from runs.command_line import OneLineCommand

KEPT = "demo-people.json"


class DemoPerson(NamedTuple):
    name: str
    group: str | None
    duty: str
    permissions: tuple[str, ...] = ()  # of the apps runs and approvals; a * stands for anything
    staff: bool = False


PEOPLE = (
    DemoPerson("pm", "pm", "decides what waits for approval"),
    DemoPerson(
        "ops",
        "ops",
        "repairs runs, in the admin site too",
        ("view_*", "repair", "*_schedule", "*_queuelimit", "*_graphstop"),
        staff=True,
    ),
    DemoPerson("auditor", "auditors", "reads every run and its trail", ("view_*", "audit")),
    DemoPerson("requester", None, "asked for the brief, and may not approve it"),
)


class Command(OneLineCommand):
    help = "Makes the demo people (pm, ops, auditor, requester) and prints how each signs in."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEBUG or set(settings.ALLOWED_HOSTS) - set(settings.LOOPBACK):
            raise CommandError(
                "Demo people have passwords that are printed, so they are made only with DURABLEWEB_DEBUG=1 and "
                "loopback DURABLEWEB_ALLOWED_HOSTS. For real people: manage.py createsuperuser."
            )
        known = passwords(settings.HOME)
        with transaction.atomic():
            for person in PEOPLE:
                self._make(person, known)
        _keep(known, settings.HOME)
        for person in PEOPLE:
            self.stdout.write(f"  {person.name:<10} {known[person.name]:<18} {person.duty}")

    def _make(self, person: DemoPerson, known: dict[str, str]) -> None:
        """Twice is as once; a password that this machine does not know is replaced."""
        user, _ = User.objects.get_or_create(
            username=person.name,
            defaults={"email": f"{person.name}@localhost", "is_staff": person.staff},
        )
        if not user.check_password(known.get(person.name)):
            known[person.name] = f"{person.name}-{secrets.token_hex(3)}"
            user.set_password(known[person.name])
            user.save(update_fields=["password"])
        if person.group is not None:
            group, _ = Group.objects.get_or_create(name=person.group)
            group.permissions.set(_permissions(person.permissions))
            user.groups.add(group)


def _permissions(patterns: tuple[str, ...]) -> list[Permission]:
    return [
        permission
        for permission in Permission.objects.filter(content_type__app_label__in=["runs", "approvals"])
        if any(fnmatchcase(permission.codename, pattern) for pattern in patterns)
    ]


def passwords(home: Path) -> dict[str, str]:
    """Name to password, as this installation made them."""
    try:
        return json.loads((home / KEPT).read_text())
    except (FileNotFoundError, ValueError):
        return {}


def _keep(known: dict[str, str], home: Path) -> None:
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(home / KEPT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(known, file, indent=1)
