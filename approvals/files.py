"""A file that somebody sends: told apart by its bytes, its name cleaned, its size checked. Nothing is stored here."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from runs import secrets
from runs.errors import Invalid, told
from runs.pages.words import size as in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

LARGEST = 10 * 1024 * 1024  # bytes of one file
QUOTA = 50 * 1024 * 1024  # bytes of all files of one approval
MOST_AT_ONCE = 5
LONGEST_NAME = 100
TEXT = "text/plain"
_OFFICE = ("application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument.")
_TAKEN = ("application/pdf", "image/png", "image/jpeg", "image/gif", "image/webp")
_ENDINGS = {
    "application/pdf": ("pdf",),
    "image/png": ("png",),
    "image/jpeg": ("jpg", "jpeg", "jpe", "jfif"),
    "image/gif": ("gif",),
    "image/webp": ("webp",),
}
# What a desktop runs, or opens in a browser with its scripts.
_RUNS = frozenset(
    "bat cmd com command desktop exe hta htm html jar js jse lnk mht mhtml msc ps1 psm1 reg scf sh shtml svg svgz url"
    " vb vbe vbs ws wsc wsf wsh xht xhtml xsl xslt".split()
)
_UNFIT = re.compile(r'[\x00-\x1f\x7f"\\/:*?<>|%;]+')
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # also what turns a name around: invoice‮fdp.exe


@dataclass(frozen=True, slots=True)
class Sent:
    """A file as it came: `name` is the sender's word for it."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Checked:
    name: str
    content: bytes
    media_type: str

    @property
    def size(self) -> int:
        return len(self.content)


def checked(sent: Sequence[Sent]) -> list[Checked]:
    """Raises Invalid, by the name `files`, for what is too much, too large, empty, or of a kind that is not taken."""
    if len(sent) > MOST_AT_ONCE:
        _refuse(told(_("At most %(most)s files can be sent at once."), most=MOST_AT_ONCE))
    return [_checked(one) for one in sent]


def must_have_room(files: Sequence[Checked], used: int) -> None:
    """`used`: bytes of what the approval has already."""
    size = sum(file.size for file in files)
    if used + size > QUOTA:
        _refuse(
            told(
                _(
                    "The files of one question may be %(most)s in all; %(used)s are used, and these are %(size)s."
                ),
                most=in_words(QUOTA),
                used=in_words(used),
                size=in_words(size),
            )
        )


def clean_name(name: str) -> str:
    """Without a path, without what no file system takes or no reader sees, its ending kept; never empty."""
    name = PurePath(name.replace("\\", "/")).name
    name = "".join(
        sign for sign in unicodedata.normalize("NFC", name) if unicodedata.category(sign) not in _UNSEEN
    )
    name = " ".join(_UNFIT.sub("_", name).split()).strip(". ")
    stem, dot, ending = name.rpartition(".")
    if not stem:
        return name[:LONGEST_NAME] or "file"
    ending = ending[:10]
    return f"{stem[: LONGEST_NAME - len(ending) - 1]}{dot}{ending}"


def fitting_name(name: str, media_type: str) -> str:
    """With an ending of its kind, which is what a desktop goes by: a picture a.png.exe is kept as a.png.exe.png."""
    ending = name.rpartition(".")[2].lower()
    known = _ENDINGS.get(media_type)
    if ending in known if known else ending not in _RUNS:
        return name
    wanted = known[0] if known else "txt" if media_type == TEXT else "zip"  # which Office's documents are
    return clean_name(f"{name[: LONGEST_NAME - len(wanted) - 1]}.{wanted}")


def media_type_of(content: bytes, name: str) -> str:
    """The kind of what is taken, from its bytes; "" for what is not. HTML and scripts are taken as text."""
    for found in _matches(content, name):
        if found in _TAKEN or found.startswith(_OFFICE):
            return found
        if found.startswith(("application/zip", "application/x-")) or found == "application/octet-stream":
            break
    try:
        content.decode()
    except UnicodeDecodeError:
        return ""
    return "" if b"\0" in content else TEXT


def _matches(content: bytes, name: str) -> list[str]:
    """Likeliest first; the ending only chooses among those that the bytes allow, as of Office's archives."""
    import puremagic  # whose table takes a while to read

    try:
        found = puremagic.magic_string(content)  # told a name, it would believe it
    except (puremagic.PureError, ValueError):
        return []
    ending = f".{name.rpartition('.')[2].lower()}"
    return [one.mime_type for one in sorted(found, key=lambda one: one.extension != ending) if one.mime_type]


def _checked(sent: Sent) -> Checked:
    name = clean_name(sent.name)
    secrets.refuse(name, "files")
    if len(sent.content) > LARGEST:
        _refuse(told(_("%(name)s is larger than %(most)s."), name=name, most=in_words(LARGEST)))
    if not sent.content:
        _refuse(told(_("%(name)s is empty."), name=name))
    media_type = media_type_of(sent.content, name)
    if not media_type:
        _refuse(
            told(
                _(
                    "%(name)s is of a kind that is not taken; send a picture, a PDF, an Office document or text."
                ),
                name=name,
            )
        )
    if media_type == TEXT:
        secrets.refuse(sent.content.decode(), "files")
    return Checked(fitting_name(name, media_type), sent.content, media_type)


def _refuse(fault: str) -> None:
    raise Invalid(fault, {"files": [fault]})
