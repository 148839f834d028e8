"""The tools of the competitive brief with a pause before and after: SLOW_LOOK_UP and SLOW_SEND, in seconds."""

from __future__ import annotations

import functools
import os
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

from examples import graphs
from runs.core.tool import Tool

SEND_LIMIT = timedelta(seconds=2)  # with one lease, how long an unknown mail is left alone


def stretched(tool: Tool, variable: str, **changes: Any) -> Tool:
    pause = float(os.environ.get(variable, "0")) / 2

    @functools.wraps(tool.fn)
    def slow(**arguments: Any) -> Any:
        time.sleep(pause)
        result = tool.fn(**arguments)
        time.sleep(pause)
        return result

    return replace(tool, fn=slow, **changes)


graphs.look_up = stretched(graphs.look_up, "SLOW_LOOK_UP")
graphs.send_email = stretched(graphs.send_email, "SLOW_SEND", limit=SEND_LIMIT)
