"""Static files under names with a hash, so that browsers may keep them for ever: also modules, in their imports."""

from __future__ import annotations

from whitenoise.storage import CompressedManifestStaticFilesStorage

_IMPORT = (r"""(?P<matched>from ["'](?P<url>\./[^"']+\.js)["'])""", """from "%(url)s\"""")


class HashedNames(CompressedManifestStaticFilesStorage):
    """Only of our modules, below js/: Django's switch is for all, and installed packages import what is not there."""

    patterns = (*CompressedManifestStaticFilesStorage.patterns, ("js/*.js", (_IMPORT,)))
