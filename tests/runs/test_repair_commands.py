"""Repairing, forking and closing from a shell; and what the page of such a run tells."""

from __future__ import annotations

import json
import re
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from runs import Permanent
from runs.models import Run
from tests.runs.driving import drive
from tests.runs.workshop import failed, faults

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_workshop")]


@pytest.fixture
def olga(person):
    return person("olga", "ops")


def said(*words: Any, **options: Any) -> Any:
    out = StringIO()
    call_command(*words, json=True, stdout=out, **options)
    return json.loads(out.getvalue())


def test_a_run_is_retried_skipped_and_moved_from_the_shell(olga, tmp_path):
    run = failed()
    told = said("repair", run.short_id, "--retry", reason="mended", by="olga")
    assert told["by"].startswith("user olga (shell of ")
    assert told == {"id": str(run.pk), "status": "running", "node": "make", "step": 0, "by": told["by"]} | {
        "reason": "mended"
    }
    assert run.checkpoints.get(kind="repair").actor == told["by"]
    drive(run)
    assert run.status == "completed"

    run = failed()
    (tmp_path / "state.json").write_text(json.dumps({"item": "chair", "log": ["by hand"]}))
    out = StringIO()
    state = f"@{tmp_path / 'state.json'}"
    call_command("repair", run.short_id, "--skip", "--to", "deliver", reason="done", state=state, stdout=out)
    assert out.getvalue() == f"{run.pk} workshop running, at deliver\n"
    drive(run)
    assert run.state_at()["log"] == ["by hand", "chair measured"]

    run = failed()
    assert said("repair", run.short_id, "--move", "deliver", reason="done")["node"] == "deliver"
    faults["measure chair"] = [Permanent("no rule")]
    drive(run)
    assert said("repair", run.short_id, "--skip", "--to", "END", reason="it fits")["status"] == "completed"


def test_what_is_wrong_with_a_repair_is_one_line(person):
    person("eve")
    run = failed()
    for words, answer in (
        (["--retry", "--by", "eve"], "eve may not repair runs of workshop."),
        (["--retry", "--by", "nobody"], "there is no active user 'nobody'"),
        (["--retry", "--to", "deliver"], "--to: only with --skip"),
        (["--move", "attic"], "'attic': choose one of make, deliver, present."),
        (["--retry", "--state", "[1]"], "does not fit"),
        (["--retry", "--state", "{"], "--state is not JSON"),
        (["--retry", "--skip"], "not allowed with argument"),
        ([], "one of the arguments --retry --skip --move is required"),
    ):
        with pytest.raises(CommandError, match=answer) as refused:
            call_command("repair", run.short_id, *words, "--reason", "why not")
        assert len(str(refused.value).splitlines()) == 1
    assert Run.objects.get(pk=run.pk).seq == run.seq


def test_a_run_is_forked_and_closed_from_the_shell(olga):
    run = failed()
    told = said("fork", run.short_id, at=0, look=True, reason="look")
    assert told == {"id": None, "from": str(run.pk), "at": 0, "makes_again": [], "starts_again": []}
    told = said("fork", run.short_id, reason="once more", by="olga")
    fork = Run.objects.get(pk=told["id"])
    assert (fork.origin, told["at"]) == (run.pk, run.seq)
    told = said("close", run.short_id, reason="nobody wants it")
    run.refresh_from_db()
    assert run.closed_at is not None and told["status"] == "failed"
    with pytest.raises(CommandError, match="is closed already"):
        call_command("close", run.short_id, reason="again")
    drive(fork)
    fork.refresh_from_db()
    shown = said("show", fork.short_id)
    assert shown["origin"] == {"run": str(run.pk), "checkpoint": run.seq - 1}
    assert [entry["copied"] for entry in shown["ledger"]][0] is True


def test_the_page_tells_what_had_gone_wrong_who_repaired_it_and_what_was_forked(client, olga):
    run = failed()
    fork = run.fork("user olga", "a second one")
    run.close("user olga", "later")
    client.force_login(olga)

    def page(one: Run) -> str:
        return client.get(one.get_absolute_url()).content.decode()

    closed = page(run)
    assert "; closed by olga" in closed and fork.short_id in closed
    assert re.search(
        r"Forked by olga: From run \S+ checkpoint \d+: a second one", page(fork)
    ) and run.short_id in page(fork)
    run.move("user olga", "not there", to="deliver")
    drive(run)
    repaired = page(run)
    assert "the saw is broken" in repaired, "the error of before stays told"
    assert "Repaired by olga: Move to deliver: not there" in repaired
    assert "Closed by olga: later" in repaired
    for link in run.checkpoints.filter(kind__in=("repair", "close", "fail")):
        assert client.get(f"{run.get_absolute_url()}?at={link.seq}").status_code == 200
    run.refresh_from_db()
    assert [step["step"] for step in said("show", run.short_id)["checkpoints"]][-1] == 2


def test_the_admin_site_says_that_a_failed_run_is_closed(client):
    run = failed()
    client.force_login(User.objects.create_superuser("root"))
    for path in ("/admin/runs/run/", f"/admin/runs/run/{run.pk}/change/"):
        assert "Failed, closed" not in client.get(path).content.decode()
    run.close("user olga", "later")
    for path in ("/admin/runs/run/", f"/admin/runs/run/{run.pk}/change/"):
        assert "Failed, closed" in client.get(path).content.decode()
