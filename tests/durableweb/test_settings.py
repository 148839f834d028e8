"""Settings come from the environment; what each means is in docs/settings.md."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from durableweb import environment
from tests.conftest import ROOT

OURS = re.compile(r"\"((?:DURABLEWEB|BRIEF|REFUND|ORDER)_[A-Z_]+|DATABASE_URL|REDIS_URL)\"")
# Not settings, but the prefix of secrets, and the marker of a secret's name in the docs.
PREFIXES = {"DURABLEWEB_SECRET_"}


def read_by_the_code():
    sources = [
        path
        for package in ("durableweb", "runs", "approvals", "examples")
        for path in (ROOT / package).rglob("*.py")
    ]
    return {name for path in sources for name in OURS.findall(path.read_text())} - PREFIXES


def test_every_variable_is_documented_and_every_documented_one_is_read():
    documented = set(re.findall(r"^\| `([A-Z_]+)` \|", (ROOT / "docs/settings.md").read_text(), re.MULTILINE))
    assert documented == read_by_the_code()


@pytest.mark.parametrize(
    "requirements", ["requirements.txt", "requirements-dev.txt", "requirements-redis.txt"]
)
def test_every_dependency_is_pinned_and_says_why_it_is_there(requirements):
    reasons = (ROOT / "docs/dependencies.md").read_text()
    for line in (ROOT / requirements).read_text().splitlines():
        if line and not line.startswith(("#", "-r")):
            name = re.fullmatch(r"([A-Za-z0-9-]+)(\[[\w,]+\])?==[\w.]+", line)
            assert name, f"{requirements}: {line!r} is not pinned exactly"
            assert f"\n| {name[1]} | " in reasons


# -- words and numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["1", "true", "YES", " on "])
def test_a_flag_is_on(monkeypatch, word):
    monkeypatch.setenv("DURABLEWEB_X", word)
    assert environment.flag("DURABLEWEB_X") is True


def test_a_flag_that_is_neither_on_nor_off_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("DURABLEWEB_X", "maybe")
    with pytest.raises(ImproperlyConfigured, match="DURABLEWEB_X is 'maybe'"):
        environment.flag("DURABLEWEB_X")


@pytest.mark.parametrize("word", ["many", "1.5", "0", "-3"])
def test_a_wrong_whole_number_is_refused_by_name(monkeypatch, word):
    monkeypatch.setenv("DURABLEWEB_X", word)
    with pytest.raises(ImproperlyConfigured, match="DURABLEWEB_X is "):
        environment.whole("DURABLEWEB_X", 2, least=1)


@pytest.mark.parametrize("word", ["soon", "nan", "inf", "0.5"])
def test_wrong_seconds_are_refused_by_name(monkeypatch, word):
    monkeypatch.setenv("DURABLEWEB_X", word)
    with pytest.raises(ImproperlyConfigured, match="DURABLEWEB_X is "):
        environment.seconds("DURABLEWEB_X", 60, least=1)


def test_an_empty_variable_is_as_none(monkeypatch):
    monkeypatch.setenv("DURABLEWEB_X", "  ")
    assert environment.whole("DURABLEWEB_X", 2, least=1) == 2
    assert environment.seconds("DURABLEWEB_X", 60, least=1) == 60
    assert environment.flag("DURABLEWEB_X", default=True) is True
    assert environment.listed("DURABLEWEB_X", default=("a",)) == ["a"]


def test_pairs_are_split_at_the_last_sign(monkeypatch):
    with pytest.raises(ImproperlyConfigured, match="DURABLEWEB_X holds"):
        monkeypatch.setenv("DURABLEWEB_X", "approvers")
        environment.pairs("DURABLEWEB_X")
    monkeypatch.setenv("DURABLEWEB_X", "approvers=pm, cn=board=directors,")
    assert environment.pairs("DURABLEWEB_X") == [("approvers", "pm"), ("cn=board", "directors")]


def test_a_network_that_is_none_is_refused_by_name(monkeypatch):
    monkeypatch.setenv("DURABLEWEB_X", "10.20.0.0/16, ::1")
    assert [str(one) for one in environment.networks("DURABLEWEB_X")] == ["10.20.0.0/16", "::1/128"]
    for wrong in ("10.20.0.1/16", "example.com", "10.0.0.0/33"):
        monkeypatch.setenv("DURABLEWEB_X", wrong)
        with pytest.raises(ImproperlyConfigured, match="DURABLEWEB_X holds"):
            environment.networks("DURABLEWEB_X")


# -- the database -------------------------------------------------------------------------------------------


def test_without_a_url_the_database_is_a_file(monkeypatch, tmp_path):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    found = environment.database("DATABASE_URL", sqlite=tmp_path / "a.sqlite3")
    assert found == {"ENGINE": "durableweb.sqlite", "NAME": str(tmp_path / "a.sqlite3")}


def test_a_postgresql_url_is_taken_apart(monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", "postgres://ada:p%40ss@db.example:6432/runs?sslmode=verify-full")
    found = environment.database("DATABASE_URL", sqlite=tmp_path)
    assert found["ENGINE"] == "django.db.backends.postgresql"
    assert (found["USER"], found["PASSWORD"], found["HOST"], found["PORT"], found["NAME"]) == (
        "ada",
        "p@ss",
        "db.example",
        "6432",
        "runs",
    )
    assert found["OPTIONS"] == {
        "prepare_threshold": 5,
        "server_side_binding": True,
        "options": "-c jit=off -c max_parallel_workers_per_gather=0",
        "sslmode": "verify-full",
    }


def test_a_socket_may_be_named_instead_of_a_host(monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", "postgresql:///runs?host=/run/postgresql")
    found = environment.database("DATABASE_URL", sqlite=tmp_path)
    assert (found["HOST"], found["PORT"], found["NAME"]) == ("/run/postgresql", "", "runs")
    assert "host" not in found["OPTIONS"]


@pytest.mark.parametrize(
    "url",
    ["mysql://ada:hunter22@db/runs", "postgres://ada:hunter22@db", "postgres://ada:hunter22@db:port/runs"],
)
def test_a_wrong_url_is_refused_without_telling_its_password(monkeypatch, tmp_path, url):
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL") as refused:
        environment.database("DATABASE_URL", sqlite=tmp_path)
    assert "hunter22" not in str(refused.value)


# -- mail ---------------------------------------------------------------------------------------------------


def test_without_a_mail_server_each_message_is_a_file(monkeypatch, tmp_path):
    monkeypatch.delenv("DURABLEWEB_EMAIL_URL", raising=False)
    found = environment.mail("DURABLEWEB_EMAIL_URL", folder=tmp_path)
    assert found["EMAIL_BACKEND"].endswith("mail_folder.EmailBackend")
    assert found["EMAIL_FILE_PATH"] == str(tmp_path)


@pytest.mark.parametrize(
    ("url", "port", "tls", "ssl"),
    [
        ("smtp://ada:p%40ss@mail.example", 25, False, False),
        ("smtp+tls://ada:p%40ss@mail.example", 587, True, False),
        ("smtps://ada:p%40ss@mail.example:4650", 4650, False, True),
    ],
)
def test_a_mail_server_is_a_url(monkeypatch, tmp_path, url, port, tls, ssl):
    monkeypatch.setenv("DURABLEWEB_EMAIL_URL", url)
    found = environment.mail("DURABLEWEB_EMAIL_URL", folder=tmp_path)
    assert (found["EMAIL_HOST"], found["EMAIL_PORT"]) == ("mail.example", port)
    assert (found["EMAIL_USE_TLS"], found["EMAIL_USE_SSL"]) == (tls, ssl)
    assert (found["EMAIL_HOST_USER"], found["EMAIL_HOST_PASSWORD"]) == ("ada", "p@ss")


@pytest.mark.parametrize("url", ["mail.example", "http://mail.example", "smtp://", "smtp://mail.example:x"])
def test_a_wrong_mail_server_is_refused(monkeypatch, tmp_path, url):
    monkeypatch.setenv("DURABLEWEB_EMAIL_URL", url)
    with pytest.raises(ImproperlyConfigured, match="DURABLEWEB_EMAIL_URL"):
        environment.mail("DURABLEWEB_EMAIL_URL", folder=tmp_path)


# -- the secret key -----------------------------------------------------------------------------------------


def test_a_key_is_made_once_and_only_its_owner_may_read_it(monkeypatch, tmp_path):
    monkeypatch.delenv("DURABLEWEB_SECRET_KEY", raising=False)
    kept = tmp_path / "home" / "secret-key"
    made = environment.secret_key("DURABLEWEB_SECRET_KEY", kept, make=True)
    assert len(made) >= 50
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert environment.secret_key("DURABLEWEB_SECRET_KEY", kept, make=True) == made
    assert environment.secret_key("DURABLEWEB_SECRET_KEY", kept, make=False) == made
    assert os.listdir(kept.parent) == ["secret-key"]


def test_production_makes_no_key(monkeypatch, tmp_path):
    monkeypatch.delenv("DURABLEWEB_SECRET_KEY", raising=False)
    assert environment.secret_key("DURABLEWEB_SECRET_KEY", tmp_path / "secret-key", make=False) == ""
    assert os.listdir(tmp_path) == []


def test_the_variable_comes_before_a_kept_key(monkeypatch, tmp_path):
    (tmp_path / "secret-key").write_text("kept")
    monkeypatch.setenv("DURABLEWEB_SECRET_KEY", "from the environment")
    assert (
        environment.secret_key("DURABLEWEB_SECRET_KEY", tmp_path / "secret-key", make=True)
        == "from the environment"
    )


# -- all of it, in a process of its own ---------------------------------------------------------------------


def manage(home, *arguments, **variables):
    return of_its_own(home, "manage.py", *arguments, **variables)


def of_its_own(home, *arguments, **variables):
    """Python under only these variables: the process's exit code and all it printed."""
    environment_of_child = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DURABLEWEB_", "DATABASE_URL"))
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment_of_child | {"DURABLEWEB_HOME": str(home)} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def test_production_without_a_key_is_refused_in_a_clear_line(tmp_path):
    code, printed = manage(tmp_path, "check")
    assert code != 0
    assert "There is no secret key." in printed and "Traceback" not in printed


def test_with_the_key_that_the_demo_made_production_passes_the_checks_for_deployment(tmp_path):
    assert of_its_own(tmp_path, "-c", "import durableweb.settings", DURABLEWEB_DEBUG="1") == (0, "")
    deploy = ("check", "--deploy", "--fail-level", "WARNING")
    code, printed = manage(tmp_path, *deploy, DURABLEWEB_ALLOWED_HOSTS="durableweb.example")
    assert code == 0, printed
