"""A local server that answers like an OpenAI-compatible endpoint, also in the ways that such endpoints fail.

As a process: python -m tests.examples.model_server --port 9000 --script 429,500,ok
It prints one JSON line {"url": ...} when it listens. Each question takes the next word of the script; the last word
stays. GET /questions returns the questions as they came, with the word that each got.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self  # a question is any JSON

MODEL = "local-drafter-1"
REFUSALS = {
    "400": (400, "context_length_exceeded", "This model's maximum context length is 8192 tokens."),
    "401": (401, "invalid_api_key", "Incorrect API key provided."),
    "404": (404, "model_not_found", "The model does not exist."),
    "429": (429, "rate_limit_exceeded", "Rate limit reached."),
    "quota": (429, "insufficient_quota", "You exceeded your current quota."),
    "500": (500, None, "The server had an error."),
    "503": (503, None, "The engine is overloaded."),
}
WORDS = ("ok", "silence", "hangup", "broken", "no-choices", "empty", "refused", *REFUSALS)


class ModelServer:
    """Listens on 127.0.0.1 in a thread of this process; use it as a context manager."""

    def __init__(
        self,
        script: Sequence[str] = ("ok",),
        port: int = 0,
        retry_after: str = "1",
        api_key: str | None = None,
    ) -> None:
        unknown = [word for word in script if word not in WORDS]
        if unknown or not script:
            raise ValueError(f"script {','.join(script)!r}: each word is one of {', '.join(WORDS)}")
        self.script, self.retry_after, self.api_key = list(script), retry_after, api_key
        self.questions: list[dict[str, Any]] = []
        self.closing = threading.Event()
        self._turn = threading.Lock()
        self._http = ThreadingHTTPServer(
            ("127.0.0.1", port), type("Endpoint", (_Endpoint,), {"server_of": self})
        )
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def serve(self) -> None:
        self._http.serve_forever()

    def take(self, question: dict[str, Any], authorization: str | None) -> str:
        """The next word of the script, noted beside the question that gets it."""
        with self._turn:
            word = self.script.pop(0) if len(self.script) > 1 else self.script[0]
            if self.api_key is not None and authorization != f"Bearer {self.api_key}":
                word = "401"
            self.questions.append({"word": word, "authorized": authorization is not None, **question})
            return word


class _Endpoint(BaseHTTPRequestHandler):
    server_of: ModelServer

    def do_GET(self) -> None:
        self._answer(200, json.dumps(self.server_of.questions).encode())

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path != "/v1/chat/completions":
            self._answer(404, b'{"error": {"message": "no such path", "code": null}}')
            return
        question = json.loads(body)
        word = self.server_of.take(question, self.headers.get("Authorization"))
        if word == "silence":
            self.server_of.closing.wait()
        elif word == "hangup":
            pass
        elif word in REFUSALS:
            status, code, words = REFUSALS[word]
            self._answer(status, json.dumps({"error": {"message": words, "code": code}}).encode())
        else:
            self._answer(200, _completion(word, question))
        self.close_connection = True

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        if status in (429, 503) and self.server_of.retry_after:
            self.send_header("Retry-After", self.server_of.retry_after)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # the name is http.server's
        """Silent: a test reads `questions` instead."""


def _completion(word: str, question: dict[str, Any]) -> bytes:
    """An answer made of the question, so that a test can see that it was answered from it."""
    task = json.loads(question["messages"][-1]["content"])
    names = ", ".join(package["name"] for package in task["packages"])
    asked = task["reasons_for_rejecting_earlier_drafts"]
    text = f"{task['goal']}\n\nWe compared {names}.\n" + "".join(f"You asked: {reason}\n" for reason in asked)
    message = {"role": "assistant", "content": "" if word == "empty" else text}
    if word == "refused":
        message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
    used = len(question["messages"][-1]["content"].split())
    answer: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": question.get("model", MODEL),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": used, "completion_tokens": 7, "total_tokens": used + 7},
    }
    if word == "no-choices":
        answer["choices"] = []
    written = json.dumps(answer).encode()
    return written[: len(written) // 2] if word == "broken" else written


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--port", type=int, default=0, help="0 takes a free one")
    reader.add_argument("--script", default="ok", help=f"words with commas between: {', '.join(WORDS)}")
    reader.add_argument("--retry-after", default="1", help="sent with 429 and 503; empty for none")
    reader.add_argument("--api-key", help="answer 401 to any other")
    given = reader.parse_args()
    server = ModelServer(given.script.split(","), given.port, given.retry_after, given.api_key)
    print(json.dumps({"url": server.url}), flush=True)
    server.serve()


if __name__ == "__main__":
    main()
