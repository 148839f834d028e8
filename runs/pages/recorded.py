"""What the engine wrote into rows, said again in the reader's language. The row keeps its English (docs/adr/0033)."""

from __future__ import annotations

import re

from django.utils.translation import gettext, gettext_noop

from runs.naming import full_names
from runs.pages.words import status_word

# Only what is no longer is looked at, and each place is as narrow as it can be: what nodes and providers wrote is
# matched as well, and may be made to match nearly.
LONGEST = 500  # letters
_PLACE = re.compile(r"%\((\w+)\)s")
_NUMBER, _WORD = r"\d{1,12}(?:\.\d{1,6})?", r"\S{1,200}"
_WITHIN = dict.fromkeys(("count", "steps", "tries", "most", "seconds"), _NUMBER)
_WITHIN |= dict.fromkeys(("worker", "run", "kind"), _WORD) | {
    "status": r"\w{1,20}",
    "moment": r"[\d :.-]{1,30}",
}
_BEFORE = r"(?P<before>(?:[\w.#-]{1,100}: ){0,3})"  # the class of an error, the key of a call


class Sentences:
    """A closed set of them, in English, as gettext has their places."""

    def __init__(self, *sentences: str) -> None:
        self.all = sentences
        self._forms = [(sentence, re.compile(_BEFORE + _form(sentence))) for sentence in sentences]

    def retold(self, text: str, *, within: bool = False) -> str:
        """One line; what people, authors and providers wrote stays as it is. `within`: it stands in another one."""
        if len(text) > LONGEST:
            return text
        for sentence, form in self._forms:
            if found := form.fullmatch(text):
                values = found.groupdict()
                before = values.pop("before")
                told = {name: self._told(name, value, within) for name, value in values.items()}
                return before + gettext(sentence) % told
        return text

    def _told(self, name: str, value: str, within: bool) -> str:
        match name:
            case "said" if not within:
                return self.retold(value, within=True)
            case "run":
                return value[-6:]  # as pages name it (Run.short_id), also where a row has all of it
            case "status":
                return str(status_word(value).word).lower()
            case "by":
                return full_names([value])[0]
            case _:
                return value


def _form(sentence: str) -> str:
    parts = _PLACE.split(sentence)
    return "".join(
        f"(?P<{part}>{_WITHIN.get(part, '.*?')})" if number % 2 else re.escape(part)
        for number, part in enumerate(parts)
    )


of_runs = Sentences(
    gettext_noop("Its parent, run %(run)s, is %(status)s."),
    gettext_noop("%(worker)s ended without word in node '%(node)s'"),
    gettext_noop("Poison: %(count)s workers that drove it alone died. %(said)s"),
    gettext_noop("Its node '%(node)s' killed %(count)s workers, the last one %(worker)s (%(moment)s UTC)."),
    gettext_noop("%(steps)s steps; the last node was '%(node)s'"),
    gettext_noop("node %(node)s was not done after %(seconds)s s, its time limit"),
    gettext_noop("No signal '%(name)s' came before %(moment)s UTC."),
    gettext_noop("No signal “%(name)s” came in time."),
    gettext_noop("The question “%(question)s” expired without an answer."),
    gettext_noop("Rejected by %(by)s: %(reason)s"),
    gettext_noop("not found at the provider after %(tries)s of %(most)s attempts"),
    gettext_noop("sent, outcome unknown (%(said)s); no way to ask the provider gave an answer"),
    gettext_noop("An earlier try may have happened, though the last one failed: %(said)s"),
    gettext_noop("the worker was gone before the answer came"),
    gettext_noop("the run ended while the call was under way"),
)

# Before the reason of whoever did it (runs/engine/repairing.py, forking.py)
of_repairs = Sentences(
    gettext_noop("Retry: %(reason)s"),
    gettext_noop("Retry, with another state: %(reason)s"),
    gettext_noop("Skip: %(reason)s"),
    gettext_noop("Skip, with another state: %(reason)s"),
    gettext_noop("Skip to %(node)s, with another state: %(reason)s"),
    gettext_noop("Skip to %(node)s: %(reason)s"),
    gettext_noop("Move to %(node)s, with another state: %(reason)s"),
    gettext_noop("Move to %(node)s: %(reason)s"),
    gettext_noop("From run %(run)s, checkpoint %(count)s: %(reason)s"),
    gettext_noop("Its parent, run %(run)s, goes on."),
)
