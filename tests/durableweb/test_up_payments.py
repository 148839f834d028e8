"""The payment provider that `manage.py up` starts beside pages and worker."""

from __future__ import annotations

import os
import time

import httpx

from durableweb.management.commands import up
from durableweb.processes import end_all
from tests.conftest import ROOT

PATIENCE_SECONDS = 60.0


def test_it_listens_where_the_worker_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv(up.PROVIDER, "")  # what is set below is put back
    command = up.Command()
    command._home = tmp_path
    part = command._provider(tmp_path / "logs", ROOT)
    part.start()
    try:
        order = answered(f"{os.environ[up.PROVIDER]}/orders/{up.REFUND_INPUT['order']}")
    finally:
        end_all([part], 0)
    assert order["paid"] == "240.00"


def answered(address: str) -> dict[str, str]:
    """What it answers once it listens."""
    end = time.monotonic() + PATIENCE_SECONDS
    with httpx.Client(trust_env=False) as client:
        while True:
            try:
                return client.get(address).json()
            except httpx.ConnectError:
                assert time.monotonic() < end, f"{address} does not answer"
