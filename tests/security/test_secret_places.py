"""MISSION A15: secrets from the environment, files and a function; tools are given them, rows never hold them."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from runs import secrets, start
from runs.checks import secrets_can_be_read
from runs.core.errors import Permanent
from runs.errors import Invalid
from runs.models import Run
from runs.secret_places import LARGEST_FILE, SecretsUnreadable
from tests.runs.driving import drive, registered
from tests.security import leaking
from tests.security.canary import CANARY, dump, found_in

OTHER = "an0ther-canary-of-the-vault"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    secrets.forget()
    leaking.called.clear()
    yield
    secrets.forget()


@pytest.fixture
def folder(settings: Any, tmp_path: Path) -> Path:
    settings.DURABLEWEB = {**settings.DURABLEWEB, "secrets_dir": str(tmp_path)}
    return tmp_path


@pytest.fixture
def vault(settings: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the installation's function returns; an exception under the name "!" is raised instead."""
    kept: dict[str, Any] = {}

    def read() -> Any:
        if "!" in kept:
            raise kept["!"]
        return kept.get("?", kept)

    module = ModuleType("their_vault")
    module.read = read
    monkeypatch.setitem(sys.modules, "their_vault", module)
    settings.DURABLEWEB = {**settings.DURABLEWEB, "secrets_from": "their_vault:read"}
    return kept


# -- the places ---------------------------------------------------------------------------------------------


def test_files_are_read_as_container_platforms_mount_them(folder):
    """Kubernetes: links to files below a hidden link to a hidden folder; Docker: plain files."""
    (folder / "..2026_11_30").mkdir()
    (folder / "..2026_11_30" / "CANARY").write_text(f"{CANARY}\n")
    (folder / "..data").symlink_to("..2026_11_30")
    (folder / "CANARY").symlink_to(Path("..data", "CANARY"))
    (folder / "PEM").write_bytes(b"line one\r\nline two\r\n")
    (folder / "EMPTY").write_text("\n")
    (folder / "below").mkdir()
    assert secrets.known() == {"CANARY": CANARY, "PEM": "line one\r\nline two"}


def test_the_environment_goes_before_files_and_files_before_the_function(folder, vault, monkeypatch):
    monkeypatch.setenv("DURABLEWEB_SECRET_A", "from the environment")
    for name in "AB":
        (folder / name).write_text(f"{name} from a file")
    vault |= {name: f"{name} from the vault" for name in "ABC"}
    assert secrets.known() == {"A": "from the environment", "B": "B from a file", "C": "C from the vault"}


def unreadable(folder: Path, vault: dict[str, Any], how: str) -> None:
    if how == "bytes":
        (folder / "CANARY").write_bytes(b"\xff" + CANARY.encode())
    elif how == "large":
        (folder / "CANARY").write_text(CANARY * LARGEST_FILE)
    elif how == "gone":
        folder.rmdir()
    elif how == "raises":
        vault["!"] = ValueError(f"no access with {CANARY}")
    else:
        vault["?"] = {"list": [CANARY], "number": {"CANARY": 7}}[how]


@pytest.mark.parametrize("how", ["bytes", "large", "gone", "raises", "list", "number"])
def test_what_cannot_be_read_stops_every_command_and_names_the_place_alone(how, folder, vault):
    """Fail closed: a process without the secrets could not refuse them either."""
    unreadable(folder, vault, how)
    with pytest.raises(SecretsUnreadable) as raised:
        secrets.known()
    assert found_in(str(raised.value)) == [] and raised.value.__cause__ is None
    assert str(folder) in str(raised.value) or "their_vault:read" in str(raised.value)
    (problem,) = secrets_can_be_read()
    assert problem.id == "durableweb.E050"
    with pytest.raises(SystemCheckError, match="durableweb.E050"):
        call_command("list", skip_checks=False)


def test_a_function_that_is_not_there_is_named(settings):
    settings.DURABLEWEB = {**settings.DURABLEWEB, "secrets_from": "nowhere:read"}
    with pytest.raises(SecretsUnreadable, match="nowhere:read failed with ModuleNotFoundError"):
        secrets.known()


def test_the_log_goes_on_without_the_places_and_hides_what_it_can(vault, monkeypatch):
    """Also what the function itself logs while it is asked for the first time."""
    monkeypatch.setenv("DURABLEWEB_SECRET_CANARY", CANARY)
    vault["!"] = ValueError("away")
    record = logging.makeLogRecord({"msg": f"the key is {CANARY}"})
    assert secrets.LogFormatter().format(record) == "the key is «secret:CANARY»"
    del vault["!"]

    def chatty() -> dict[str, str]:
        vault["said"] = secrets.LogFormatter().format(record)
        return {"OTHER": OTHER}

    sys.modules["their_vault"].read = chatty
    assert secrets.known()["OTHER"] == OTHER
    assert vault["said"] == "the key is «secret:CANARY»"


# -- rotation -----------------------------------------------------------------------------------------------


def test_a_replaced_value_is_given_anew_and_the_old_one_is_still_refused(folder):
    (folder / "TOKEN").write_text(CANARY)
    assert secrets.reveal("TOKEN") == CANARY
    (folder / "TOKEN").write_text(OTHER)
    secrets.look()
    assert secrets.reveal("TOKEN") == OTHER
    for value in (CANARY, OTHER):
        with pytest.raises(Invalid, match="secret TOKEN"):
            secrets.refuse(f"it is {value}", "text")


def test_they_are_looked_up_again_beside_the_work_and_a_place_that_is_away_changes_nothing(
    vault, monkeypatch, caplog
):
    monkeypatch.setattr(secrets, "AGAIN_SECONDS", 0.0)
    vault["TOKEN"] = CANARY
    assert secrets.known() == {"TOKEN": CANARY}
    vault["TOKEN"] = OTHER
    look_aside()
    assert secrets._known.values == {"TOKEN": OTHER}
    vault["!"] = OSError("away")
    look_aside()
    assert "Secrets cannot be looked up again" in caplog.text
    assert secrets._known.values == {"TOKEN": OTHER}
    assert secrets._known.guard.find(CANARY) == "TOKEN"


def look_aside() -> None:
    """Whoever needs one notices that it is time to look again, and does not wait for it."""
    secrets.guard()
    for thread in threading.enumerate():
        if thread.name == "secrets":
            thread.join(60)


def test_one_that_was_put_there_a_moment_ago_is_found_and_one_that_is_nowhere_says_what_to_do(folder):
    assert secrets.known() == {}
    with pytest.raises(Permanent, match="put a file TOKEN into DURABLEWEB_SECRETS_DIR"):
        secrets.reveal("TOKEN")
    (folder / "TOKEN").write_text(OTHER)
    assert secrets.reveal("TOKEN") == OTHER


def test_without_such_places_nothing_is_looked_up_again(monkeypatch):
    monkeypatch.setattr(secrets, "AGAIN_SECONDS", 0.0)
    before = secrets._current()
    assert secrets._current() is before
    assert os.environ.get("DURABLEWEB_SECRET_LATE") is None
    assert secrets._known.looked_at == float("inf")


# -- in runs ------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("place", ["folder", "vault"])
def test_a_secret_of_each_place_reaches_the_tool_and_no_row(place, request):
    """O4: whatever place it is from it is refused in what is written, and redacted in what comes back."""
    if place == "folder":
        (request.getfixturevalue("folder") / "CANARY").write_text(f"{CANARY}\n")
    else:
        request.getfixturevalue("vault")["CANARY"] = CANARY
    with registered(leaking.leaking):
        for where, status in (
            ("used", "completed"),
            ("state plain", "failed"),
            ("result nested", "completed"),
        ):
            run = start("leaking", {"where": where})
            drive(run)
            assert run.status == status, (where, run.error)
        with pytest.raises(Invalid, match="holds the value of the secret CANARY"):
            start("leaking", {"where": CANARY})
    assert ("send", ("hello", CANARY, {})) in leaking.called
    assert Run.objects.count() == 3
    assert found_in(dump()) == []
