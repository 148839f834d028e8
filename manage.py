#!/usr/bin/env python
"""Django's command line for durableweb: `manage.py help` lists the commands."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "durableweb.settings")
    if sys.argv[1:2] == ["up"]:  # the local demo; every other command keeps the production default
        os.environ.setdefault("DURABLEWEB_DEBUG", "1")
    gc.set_threshold(50_000)  # a start throws nothing away: to look for that took a tenth of its time
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
