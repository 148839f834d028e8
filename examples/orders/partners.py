"""The shop's bank and its carrier as a process of their own: both keep a book, and honour idempotency keys.

    python -m examples.orders.partners --port 9200 --book partners.jsonl --faults lose,busy

It prints one JSON line {"url": ...} when it listens. POST /<act> with an Idempotency-Key and a JSON object does it:
charge, refund, book or recall; GET /book tells all that was done. Each POST takes the next fault: busy refuses before
the work, lose does the work and gives no answer.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import uuid
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any  # an act's arguments and its line in the book are JSON objects

ACTS = ("charge", "refund", "book", "recall")
FAULTS = ("ok", "busy", "lose")


class Partners(ThreadingHTTPServer):
    """Acts are lines of the book, {"act", "key", "number", ...}; the number is what the shop knows it by."""

    daemon_threads = True

    def __init__(self, book: Path, port: int = 0, faults: Sequence[str] = ()) -> None:
        self.book, self._faults, self._turn = book, list(faults), threading.Lock()
        super().__init__(("127.0.0.1", port), Counter)

    def acts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.book.read_text().splitlines()] if self.book.exists() else []

    def next_fault(self) -> str:
        with self._turn:
            return self._faults.pop(0) if self._faults else "ok"

    def do(self, act: str, key: str, about: dict[str, Any]) -> dict[str, Any]:
        """The act under this key; done now, unless it was done before. Raises ValueError for other arguments."""
        with self._turn:
            known = next((line for line in self.acts() if line["key"] == key), None)
            line = {"act": act, "key": key, "number": str(uuid.uuid4())} | about
            if known is not None:
                if known != line | {"number": known["number"]}:
                    raise ValueError(f"the key {key} was used for something else")
                return known
            with self.book.open("a") as file:
                file.write(json.dumps(line) + "\n")
                file.flush()
                os.fsync(file.fileno())
            return line


class Counter(BaseHTTPRequestHandler):
    server: Partners

    def do_GET(self) -> None:
        if self.path == "/book":
            self._answer(200, self.server.acts())
        else:
            self._answer(404, {"error": "there is no such thing"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        fault = self.server.next_fault()
        if fault == "busy":
            self._answer(503, {"error": "try again in a second"}, {"Retry-After": "1"})
            return
        act, key = self.path.removeprefix("/"), self.headers.get("Idempotency-Key", "")
        try:
            if act not in ACTS or not key:
                raise ValueError(f"one of {', '.join(ACTS)}, with an Idempotency-Key")
            line = self.server.do(act, key, dict(json.loads(body)))
        except (ValueError, TypeError) as wrong:
            self._answer(422, {"error": str(wrong)})
            return
        if fault == "lose":
            self.close_connection = True
        else:
            self._answer(201, line)

    def _answer(self, status: int, answer: object, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # the name is http.server's
        """Silent: the book tells what happened."""


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--port", type=int, default=0, help="0 takes a free one")
    reader.add_argument("--book", type=Path, required=True, help="the file that keeps what was done")
    reader.add_argument("--faults", default="", help=f"words with commas between: {', '.join(FAULTS)}")
    given = reader.parse_args()
    partners = Partners(given.book, given.port, [word for word in given.faults.split(",") if word])
    sys.stdout.write(json.dumps({"url": f"http://127.0.0.1:{partners.server_address[1]}"}) + "\n")
    sys.stdout.flush()
    partners.serve_forever()


if __name__ == "__main__":
    main()
