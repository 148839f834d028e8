"""A local endpoint that answers chat completions with what it is given, one after the other; the last one stays."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Answer = tuple[int, dict[str, str], bytes | list[Any]]
PATIENCE_SECONDS = 60.0


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
        if isinstance(body, list):
            self._send_in_pieces(body)
            return
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _send_in_pieces(self, pieces: list[Any]) -> None:
        """Bytes go out at once; at an Event it waits until that is set. The end is the end of the connection."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.end_headers()
        for piece in pieces:
            if isinstance(piece, threading.Event):
                piece.wait(PATIENCE_SECONDS)
                continue
            try:
                self.wfile.write(piece)
                self.wfile.flush()
            except OSError:  # nobody listens any more
                return

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


def stream(*pieces: Any, finish: str | None = "stop", usage: dict[str, int] | None = None) -> Answer:
    """A completion in pieces: texts, deltas (dicts), raw bytes, and Events to wait for."""
    sent: list[Any] = [_piece({"role": "assistant", "content": ""})]
    for each in pieces:
        sent.append(_piece({"content": each}) if isinstance(each, str) else each)
        if isinstance(each, dict):
            sent[-1] = _piece(each)
    if finish is not None:
        sent += [_piece({}, finish), _event({"choices": [], "usage": usage}), b"data: [DONE]\n\n"]
    return 200, {}, sent


def _piece(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _event({"choices": [choice], "model": "tiny-1"})


def _event(body: dict[str, Any]) -> bytes:
    return b": keep-alive\n\ndata: " + json.dumps(body).encode() + b"\n\n"


def call(name: str, arguments: Any, id: str | None = "call_a") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def refusal(status: int, words: str = "no", **headers: str) -> Answer:
    return status, headers, json.dumps({"error": {"message": words, "code": None}}).encode()
