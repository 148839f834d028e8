"""What the versions share: a diary of who executed what, under which version."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel


class Parcel(BaseModel):
    path: str
    name: str = ""
    rounds: int = 1
    seconds: float = 0.0
    by: list[int] = []


class Labelled(Parcel):
    label: str


def enter(state: Parcel, run: Any, version: int) -> None:
    with Path(state.path).open("a") as diary:
        diary.write(f"{run.id}:{version} {os.getpid()} {time.time()}\n")
    time.sleep(state.seconds)
    state.by.append(version)
