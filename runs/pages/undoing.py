"""How far a run has undone what it did, in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.db.models import Count, Q
from django.utils.translation import gettext as _

from runs.pages.words import status_word

if TYPE_CHECKING:
    from runs.models import Run
    from runs.pages.sentences import Sentence


@dataclass(frozen=True)
class Progress:
    """Of `all` writes that were done and can be undone, `done` are."""

    done: int
    all: int

    @classmethod
    def of(cls, run: Run) -> Progress:
        can_be = run.entries.filter(write=True, status__in=("done", "compensated")).exclude(compensation="")
        return cls(**can_be.aggregate(done=Count("pk", filter=Q(status="compensated")), all=Count("pk")))


def told(run: Run, said: Sentence, progress: Progress | None) -> Sentence:
    """The sentence about a run, with what is undone in front, or of an ended run behind it."""
    if run.ended:
        if progress is None:
            return said
        text = _("%(said)s; %(done)s of %(all)s writes undone")
        return replace(said, text=text % {"said": said.text, "done": progress.done, "all": progress.all})
    if not run.ending:
        return said
    ending = str(status_word(run.ending).word).lower()
    if progress is None:
        text = _("Undoing what was done, then %(ending)s") % {"ending": ending}
    else:
        text = _("Undoing: %(done)s of %(all)s, then %(ending)s") % {
            "done": progress.done,
            "all": progress.all,
            "ending": ending,
        }
    return replace(
        said, text=text if run.status == "running" and said.status == "running" else f"{text}. {said.text}"
    )
