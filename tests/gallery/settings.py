"""The site as the gallery shows it: with addresses that fail on purpose, and time to look at an undo."""

from __future__ import annotations

from durableweb.settings import *  # noqa: F403
from durableweb.settings import DURABLEWEB

ROOT_URLCONF = "tests.gallery.urls"
DURABLEWEB = {**DURABLEWEB, "undo_seconds": 60}
WHITENOISE_MAX_AGE = 3600  # seconds: a walk asks for each stylesheet once
ACCOUNT_REAUTHENTICATION_TIMEOUT = 86_400  # seconds: nobody is asked again in the middle of a walk
