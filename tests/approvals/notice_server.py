"""A receiver of notices on loopback: takes what is posted, or answers as it is told; and targets of notices."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from approvals.models import Target

DRIPS = 1_000


class Receiver:
    """`answers` are used one a request, the last one for ever: a status, or (status, location)."""

    def __init__(self, *answers: int | tuple[int, str]) -> None:
        self.answers = list(answers or (200,))
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


def target(url: str, channel: str = "webhook", **more: object) -> Target:
    made = Target(name=f"target {Target.objects.count()}", channel=channel, **more)
    made.url = url
    made.save()
    return made


@contextmanager
def receiving(receiver: Receiver) -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            receiver.got.append(
                (self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            )
            answer = receiver.answers.pop(0) if len(receiver.answers) > 1 else receiver.answers[0]
            status, location = answer if isinstance(answer, tuple) else (answer, "")
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_given: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join(30)


@contextmanager
def dripping() -> Iterator[tuple[int, threading.Event]]:
    """(port, left) of a server whose answer comes a letter at a time; `left` is set once its caller has
    gone before the end."""
    left, over = threading.Event(), threading.Event()

    def drip(server: socket.socket) -> None:
        caller, _address = server.accept()
        with caller:
            caller.recv(65_536)
            caller.sendall(b"HTTP/1.1")
            for _letter in range(DRIPS):
                if over.wait(0.02):
                    return
                try:
                    caller.sendall(b" ")
                except OSError:
                    left.set()
                    return
            caller.sendall(b"200 OK\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,), daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1], left
        finally:
            over.set()
            thread.join(30)
