"""Static files under names with a hash, so that browsers may keep them for ever: also modules, in their imports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any  # what Django hands through

from django.core.files.base import ContentFile
from whitenoise.storage import CompressedManifestStaticFilesStorage

from durableweb import stylesheet

_IMPORT = (r"""(?P<matched>from ["'](?P<url>\./[^"']+\.js)["'])""", """from "%(url)s\"""")


class HashedNames(CompressedManifestStaticFilesStorage):
    """Only of our modules, below js/: Django's switch is for all, and installed packages import what is not there."""

    patterns = (*CompressedManifestStaticFilesStorage.patterns, ("js/*.js", (_IMPORT,)))

    def post_process(self, paths: dict[str, Any], dry_run: bool = False, **options: Any) -> Iterator[Any]:
        if stylesheet.NAME in paths and not dry_run:
            storage, path = paths[stylesheet.NAME]
            self.delete(stylesheet.NAME)  # it may be a link to the file itself
            self.save(stylesheet.NAME, ContentFile(stylesheet.whole(Path(storage.path(path)))))
            paths = {**paths, stylesheet.NAME: (self, stylesheet.NAME)}
        yield from super().post_process(paths, dry_run, **options)
