"""Secrets that this site itself must read again, such as the key of a code or the address of a chat.

They are stored sealed with DURABLEWEB_SECRET_KEY.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from cryptography.fernet import Fernet  # only who seals loads it


def seal(text: str) -> str:
    return _box().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """Raises ValidationError, in words to the person, for what another key sealed."""
    from cryptography.fernet import InvalidToken

    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise ValidationError(
            _(
                "This was sealed under another key of this site. Ask an administrator to remove it, and set it up anew."
            )
        ) from None


def _box() -> Fernet:
    from cryptography.fernet import Fernet

    digest = hashlib.sha256(b"durableweb.sealing:" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(digest))
