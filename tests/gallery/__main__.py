"""Fill an installation with all of it: prints {"pages": {name: Shown}, "sessions": {person: cookie}}."""

from __future__ import annotations

import json

import django

django.setup()

from tests.gallery.fill import fill  # noqa: E402

print(json.dumps(fill()))
