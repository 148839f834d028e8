"""A secret to look for, the forms it may take, and every place where something could have been kept."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

from django.db import connection
from django.test import Client
from django.urls import reverse

from approvals.models import Approval
from approvals.models.inbox import SCOPES
from approvals.views.approval import PARTS
from runs.conf import conf
from runs.models import BlobUse, Run
from tests.amounts import some_of

# With what each way of writing a text changes: a quote, a slash, a plus, an accent, an ampersand, a backslash.
CANARY = 'c4nary-"7f/3+é&x\\=9~key'


def forms(value: str) -> set[str]:
    """Written anew here, not taken from the code that is under test."""
    plain = value.encode()
    found = {value, html.escape(value), repr(value)[1:-1]}
    found |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    found |= {json.dumps(json.dumps(value))[3:-3], json.dumps(json.dumps(value, ensure_ascii=False))[3:-3]}
    found |= {quote(value), quote(value, safe=""), quote_plus(value)}
    found |= {plain.hex(), plain.hex().upper()}  # a column of bytes
    found |= {one.lower() for one in (quote(value, safe=""), quote_plus(value))}
    for encode in (b64encode, urlsafe_b64encode):
        for offset in range(3):  # what stands before it shifts base64; its own middle stays the same
            found.add(encode(b"-" * offset + plain).decode().rstrip("=")[4:-4])
    return found


FORMS = forms(CANARY)


COPIED = re.compile(r"\\(.)")


def _written(match: re.Match[str]) -> str:
    """COPY puts a backslash before what it must."""
    return {"n": "\n", "t": "\t", "r": "\r", "N": ""}.get(match[1], match[1])


def found_in(text: str | bytes) -> list[str]:
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return [form for form in FORMS if form in shown]


def dump() -> str:
    """Every table and every column, as a backup of the database would hold it."""
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        return "\n".join(connection.connection.iterdump())
    parts = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            with cursor.cursor.copy(f'COPY "{table}" TO STDOUT') as rows:
                parts += [table, *(COPIED.sub(_written, bytes(row).decode()) for row in rows)]
    return "\n".join(parts)


def files() -> Iterator[tuple[str, bytes]]:
    """Blobs, mails, the database and its log: what lies under DURABLEWEB_HOME."""
    for path in sorted(Path(conf.home).rglob("*")):
        if path.is_file():
            yield path.name, path.read_bytes()


def pages(client: Client) -> Iterator[tuple[str, str]]:
    """(address, text) of each page that shows anything of any run or approval.

    What stands in the database was searched already, so of pages that are alike one is enough: of a run its first
    and its last checkpoint but one (the last is the page itself), of the live parts that of the last run.
    """
    addresses = []
    if Run.objects.exists():
        addresses = ["/runs/", "/admin/"]
    for run in some_of("pages of runs", Run.objects.all()):
        address = run.get_absolute_url()
        addresses.append(address)
        addresses += [f"{address}?at={seq}" for seq in sorted({0, max(run.seq - 1, 0)})]
        addresses += [f"{address}?entry={pk}" for pk in run.entries.values_list("pk", flat=True)]
    for use in BlobUse.objects.all():
        addresses.append(reverse("runs:blob", args=[use.run_id, use.blob_id]))
    if addresses:
        addresses += ["/runs/rows/", reverse("runs:live", args=[Run.objects.last().pk])]
    if Approval.objects.exists():
        addresses += ["/", "/inbox/new/", "/inbox/count/"]
        addresses += [f"/inbox/list/?scope={scope}" for scope in SCOPES]
    for approval in some_of("pages of approvals", Approval.objects.all()):
        addresses.append(approval.get_absolute_url())
        addresses += [reverse("approvals:part", args=[approval.pk, part]) for part in PARTS]
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 200, (address, answer.status_code)
        yield address, answer.content.decode()
