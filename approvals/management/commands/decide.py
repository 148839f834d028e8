from __future__ import annotations

import getpass
import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any  # a payload is any JSON

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import CommandError

from approvals.forms.values import NotJson, parse_json
from approvals.models import Approval, Decision
from approvals.said import AS_PROPOSED
from approvals.stages import FIRST, stages_of
from approvals.words import VERDICTS
from runs.command_line import OneLineCommand, one_line, shell, visible
from runs.core.words import is_storable
from runs.naming import for_operators


class Command(OneLineCommand):
    help = "Decide an approval for a person. Whoever may use this shell is trusted; the trail names them too."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("approval", help="its id, or the last six or more digits of it")
        parser.add_argument("--verdict", required=True, help=" | ".join(VERDICTS))
        parser.add_argument("--by", required=True, metavar="USER", help="user name of who decides")
        parser.add_argument(
            "--payload", metavar="JSON", help="the edited payload or the answer: JSON, @file, or - for stdin"
        )
        parser.add_argument("--reason", default="", help="reaches the run byte for byte")
        parser.add_argument("--revision", type=int, help="refuse if it has changed since this revision")
        parser.add_argument("--operation-id", help="sent again with the same id, it decides once")
        parser.add_argument("--sign", action="store_true", help="ask for the password of who decides")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        with self.one_line_errors():
            decision = _approval(options["approval"]).decide(
                by=_person(options["by"]),
                verdict=options["verdict"],
                payload=_payload(options["payload"]),
                reason=options["reason"],
                revision=options["revision"],
                operation_id=options["operation_id"],
                via="command",
                signed_in=shell(),
                password=getpass.getpass(f"Password of {options['by']}: ") if options["sign"] else None,
            )
        self.stdout.write(json.dumps(_as_json(decision)) if options["json"] else visible(_as_text(decision)))


def _approval(text: str) -> Approval:
    found = list(Approval.objects.called(text)[:6])
    if not found:
        raise CommandError(
            one_line(
                f"There is no approval {text[:80]!r}; give its id, or the last six or more digits of it."
            )
        )
    if len(found) > 1:
        raise CommandError(
            f"{text} fits several approvals: {', '.join(str(one.pk) for one in found)}. Give more digits."
        )
    return found[0]


def _person(username: str) -> User:
    person = get_user_model().objects.filter(username=username).first() if is_storable(username) else None
    if person is None:
        raise CommandError(one_line(f"There is no user {username!r}; --by wants a user name."))
    return person


def _payload(text: str | None) -> Any:
    if text is None:
        return AS_PROPOSED
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        return parse_json(text)
    except OSError as error:
        raise CommandError(f"--payload: {text[1:]} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CommandError("--payload: this is no UTF-8 text.") from error
    except NotJson as error:
        raise CommandError(f"--payload is no JSON: {error}") from error


def _as_json(decision: Decision) -> dict[str, Any]:
    approval = Approval.objects.get(pk=decision.approval_id)
    return {
        "approval": str(approval.pk),
        "run": str(approval.run_id),
        "verdict": decision.verdict,
        "by": decision.by.get_username(),
        "outcome": approval.outcome or None,
        "revision": approval.revision,
        "operation_id": decision.operation_id,
        "at": decision.at.isoformat(),
    }


def _as_text(decision: Decision) -> str:
    approval = Approval.objects.get(pk=decision.approval_id)
    if approval.is_open:
        missing = approval.quorum - approval.votes.filter(stage=approval.stage).count()
        stage = stages_of(approval)[approval.stage - FIRST].name
        return f"{approval}: voted; {missing} more needed{f' of {stage}' if stage else ''}."
    return f"{approval}: {approval.outcome.replace('_', ' ')} by {for_operators(decision.by)}."
