"""A deploy that went wrong."""

import a_package_that_nobody_has_installed  # noqa: F401
