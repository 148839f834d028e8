"""The one stylesheet that a page links, with all that it imports: one request, where a browser would make forty."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

NAME = "css/app.css"
_IMPORT = re.compile(r'@import url\("([^"]+)"\) layer\(([\w-]+)\);')
_BESIDE = re.compile(r"""url\((["']?)(?!data:|https?:|/|#)([^"')]+)\1\)""")


def whole(sheet: Path) -> str:
    """What the file says, each imported one as a block of its layer; their addresses as from this file."""

    def imported(found: re.Match[str]) -> str:
        folder = posixpath.dirname(found[1])
        rules = _BESIDE.sub(
            lambda beside: f'url("{posixpath.normpath(posixpath.join(folder, beside[2]))}")',
            (sheet.parent / found[1]).read_text(encoding="utf-8"),
        )
        return f"@layer {found[2]} {{\n{rules}}}"

    return _IMPORT.sub(imported, sheet.read_text(encoding="utf-8"))
