"""Why a notice did not go, as rows have it, said again in the reader's language."""

from __future__ import annotations

from django.utils.translation import gettext_noop

from runs.pages.recorded import Sentences

troubles = Sentences(
    gettext_noop("the mail server refuses the address (%(code)s)"),
    gettext_noop("the mail server answered %(code)s"),
    gettext_noop("the mail server cannot be reached (%(kind)s)"),
    gettext_noop("Apprise does not know such an address"),
    gettext_noop("refused: %(why)s"),
    gettext_noop("%(service)s did not take it"),
    gettext_noop("no answer (%(kind)s)"),
    gettext_noop("it answered %(code)s"),
    gettext_noop("it leads on to an address without https"),
    gettext_noop("it leads on more than %(most)s times"),
)
