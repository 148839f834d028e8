"""A small payment provider as a process of its own, that can fail in the ways in which providers do.

    python -m examples.refunds.provider --port 9100 --book refunds.jsonl --faults lose,slow,twice

It prints one JSON line {"url": ...} when it listens. GET /orders/<order> tells what was paid; POST /refunds with an
Idempotency-Key pays money back; GET /refunds?key=<key> tells what became of that. Refunds are lines in the book, which
outlives the process. Each POST takes the next fault; when none is left, all is well.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import uuid
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any  # a request's body is any JSON
from urllib.parse import parse_qs, unquote, urlsplit

ORDERS = {
    "A-17": {"order": "A-17", "item": "Desk lamp", "paid": "30.00", "currency": "EUR"},
    "B-4": {"order": "B-4", "item": "Sofa", "paid": "240.00", "currency": "EUR"},
}
# Before the work: busy. After it: lose the answer, or give it late. twice: two answers to one question.
FAULTS = ("ok", "busy", "lose", "slow", "twice")


class Book:
    """Refunds, one JSON object a line. `forgets` makes it a provider that does not honour idempotency keys."""

    def __init__(self, path: Path, forgets: bool = False) -> None:
        self.path, self.forgets = path, forgets
        self._one_at_a_time = threading.Lock()

    def refunds(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def find(self, key: str) -> dict[str, str] | None:
        return next((refund for refund in self.refunds() if refund["key"] == key), None)

    def pay_back(self, key: str, order: str, amount: str) -> dict[str, str]:
        """The refund under this key; made now, unless it was made before. Raises ValueError for other arguments."""
        with self._one_at_a_time:
            known = None if self.forgets else self.find(key)
            if known is not None:
                if (known["order"], known["amount"]) != (order, amount):
                    raise ValueError(
                        f"the key {key} was used for {known['amount']} of order {known['order']}"
                    )
                return known
            refund = {"id": str(uuid.uuid4()), "key": key, "order": order, "amount": amount}
            with self.path.open("a") as file:
                file.write(json.dumps(refund) + "\n")
                file.flush()
                os.fsync(file.fileno())
            return refund


class Provider(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, book: Book, port: int = 0, faults: Sequence[str] = (), slow_seconds: float = 60.0
    ) -> None:
        if unknown := set(faults) - set(FAULTS):
            raise ValueError(f"faults {', '.join(sorted(unknown))}: each is one of {', '.join(FAULTS)}")
        self.book, self.faults, self.slow_seconds = book, list(faults), slow_seconds
        self._turn = threading.Lock()
        super().__init__(("127.0.0.1", port), Desk)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def next_fault(self) -> str:
        with self._turn:
            return self.faults.pop(0) if self.faults else "ok"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no error of ours; another one is logged in a line."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            sys.stderr.write(f"{type(error).__name__}: {error}\n")


class Desk(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        if place.path == "/refunds":
            found: object = self.server.book.find(parse_qs(place.query).get("key", [""])[0])
        else:
            found = ORDERS.get(unquote(place.path.removeprefix("/orders/")))
        if found is None:
            self._answer(404, {"error": "there is no such thing"})
        else:
            self._answer(200, found)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        fault = self.server.next_fault()
        if fault == "busy":
            self._answer(503, {"error": "try again in a second"}, {"Retry-After": "1"})
            return
        try:
            refund = self._pay_back(json.loads(body))
        except (ValueError, LookupError, TypeError, InvalidOperation) as wrong:
            self._answer(422, {"error": str(wrong)})
            return
        if fault == "slow":
            threading.Event().wait(self.server.slow_seconds)
        if fault != "lose":
            self._answer(201, refund)
        if fault == "twice":
            self._answer(201, refund)
        self.close_connection = True

    def _pay_back(self, asked: dict[str, Any]) -> dict[str, str]:
        key, order = self.headers.get("Idempotency-Key", ""), ORDERS.get(asked["order"])
        amount = Decimal(asked["amount"])
        if not key:
            raise ValueError("a refund needs an Idempotency-Key")
        if order is None:
            raise ValueError(f"there is no order {asked['order']}")
        if not 0 < amount <= Decimal(order["paid"]):
            raise ValueError(
                f"{order['paid']} was paid for order {order['order']}, so {amount} cannot be refunded"
            )
        return self.server.book.pay_back(key, order["order"], f"{amount:.2f}")

    def _answer(self, status: int, answer: object, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # the name is http.server's
        """Silent: the book tells what happened."""


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--port", type=int, default=0, help="0 takes a free one")
    reader.add_argument("--book", type=Path, required=True, help="the file that keeps the refunds")
    reader.add_argument("--faults", default="", help=f"words with commas between: {', '.join(FAULTS)}")
    reader.add_argument("--slow-seconds", type=float, default=60.0, help="how late a slow answer is")
    reader.add_argument("--forgets-keys", action="store_true", help="do it again for a key that is known")
    given = reader.parse_args()
    faults = [word for word in given.faults.split(",") if word]
    provider = Provider(Book(given.book, given.forgets_keys), given.port, faults, given.slow_seconds)
    sys.stdout.write(json.dumps({"url": provider.url}) + "\n")
    sys.stdout.flush()
    provider.serve_forever()


if __name__ == "__main__":
    main()
