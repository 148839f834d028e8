"""The local model server as a process of its own that thinks before it answers.

python -m tests.acceptance.slow.model 1.5 429,ok prints one JSON line {"url": ...} when it listens.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from tests.examples.model_server import ModelServer


class SlowModel(ModelServer):
    def __init__(self, seconds: float, script: list[str]) -> None:
        super().__init__(script)
        self.seconds = seconds

    def take(self, question: dict[str, Any], authorization: str | None) -> str:
        word = super().take(question, authorization)
        time.sleep(self.seconds)
        return word


def main() -> None:
    server = SlowModel(float(sys.argv[1]), sys.argv[2].split(","))
    print(json.dumps({"url": server.url}), flush=True)
    server.serve()


if __name__ == "__main__":
    main()
