"""What nodes do outside of tools, seen by the interpreter's own audit: nothing keeps it from being done again.

Only in a process that is to end: what watches cannot be taken away again.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any  # what an audit event carries

from django.db import connections

from runs import registry
from runs.core.graph import Graph

ENGINE = (
    str(Path(__file__).resolve().parent.parent)
    + os.sep,  # ledger, tools, recorded values: all that is called by run
    str(Path(os.__file__).parent / "logging") + os.sep,
    str(Path(os.__file__).parent / "tempfile.py"),
)
IMPORTING = "<frozen importlib"
TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
ACTS = {
    "open": "a write to a file",
    "os.remove": "the removal of a file",
    "os.rename": "the renaming of a file",
    "os.truncate": "a write to a file",
    "os.mkdir": "a new folder",
    "os.rmdir": "the removal of a folder",
    "os.system": "a call of another program",
    "os.exec": "a call of another program",
    "os.posix_spawn": "a call of another program",
    "subprocess.Popen": "a call of another program",
    "socket.connect": "a connection by network",
    "socket.sendto": "a message by network",
    "socket.sendmsg": "a message by network",
}
ROWS = ("INSERT", "UPDATE", "DELETE")

Tell = Callable[[str, str], None]


def watch(graph: Graph, tell: Tell) -> None:
    """From now on `tell(node, act)` is called for each act of a node of a known graph, before it is done."""
    backend = str(Path(inspect.getfile(type(connections["default"]))).parent) + os.sep
    between = (*ENGINE, backend)
    nodes = {
        node.fn.__code__: node.name for one in (*registry.served(), graph) for node in one.nodes.values()
    }

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ACTS or event == "open" and not _writes(arguments):
            return
        if (node := _acting(nodes, between, sys._getframe(1))) is not None:
            tell(node, ACTS[event])

    def execute(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if (
            sql.lstrip()[:6].upper() in ROWS
            and (node := _acting(nodes, between, sys._getframe(1))) is not None
        ):
            tell(node, f"an {sql.split()[0].upper()} of rows".replace("an D", "a D"))
        return execute(sql, params, many, context)

    sys.addaudithook(audit)
    connections["default"].execute_wrappers.append(execute)


def _writes(arguments: tuple[Any, ...]) -> bool:
    """Of (path, mode, flags) as `open` and `os.open` are audited."""
    _, mode, flags = arguments
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return bool(flags & TO_WRITE)


def _acting(nodes: dict[CodeType, str], between: tuple[str, ...], frame: FrameType | None) -> str | None:
    """The node that is acting by itself; None if the engine, a tool or an import stands between."""
    while frame is not None:
        if (node := nodes.get(frame.f_code)) is not None:
            return node
        file = frame.f_code.co_filename
        if file.startswith((IMPORTING, *between)):
            return None
        frame = frame.f_back
    return None
