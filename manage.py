#!/usr/bin/env python
"""Django's command line for durableweb: `manage.py help` lists the commands."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "durableweb.settings")
    if sys.argv[1:2] == ["up"]:  # the local demo; every other command keeps the production default
        os.environ.setdefault("DURABLEWEB_DEBUG", "1")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
