"""A local endpoint that answers chat completions with what it is given, one after the other; the last one stays."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Answer = tuple[int, dict[str, str], bytes]


class ChatServer:
    """`ChatServer(completion("Hello."), ...)`, as a context manager; `requests` are the bodies that came."""

    def __init__(self, *answers: Answer) -> None:
        self.answers, self.requests, self.keys = list(answers), [], []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Chat", (_Chat,), {"chat": self}))
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


class _Chat(BaseHTTPRequestHandler):
    chat: ChatServer

    def do_POST(self) -> None:
        self.chat.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.chat.keys.append(self.headers.get("Authorization"))
        answers = self.chat.answers
        status, headers, body = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # the name is http.server's
        """Silent."""


def completion(text: str | None = None, *calls: dict[str, Any], finish: str = "stop", **more: Any) -> Answer:
    message = {"role": "assistant", "content": text} | ({"tool_calls": list(calls)} if calls else {})
    answer = {
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "model": "tiny-1",
        **more,
    }
    return 200, {}, json.dumps(answer).encode()


def call(name: str, arguments: Any, id: str | None = "call_a") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def refusal(status: int, words: str = "no", **headers: str) -> Answer:
    return status, headers, json.dumps({"error": {"message": words, "code": None}}).encode()
