"""The test kit, for the authors of graphs: no waiting, no worker to start, and real kills.

    from runs.testing import crash_everywhere, drive

    @pytest.mark.django_db(transaction=True)
    def test_the_brief_is_sent_once():
        run = drive(brief, {"goal": "compare"}, answers={"email?": {"verdict": "approve"}})
        assert run.status == "completed"
        crash_everywhere(brief, {"goal": "compare"}, answers={"email?": {"verdict": "approve"}})

`drive` takes one run from its start to its end in this process, with real rows, a fresh worker for every claim and a
clock that jumps to the moment the run waits for. `crash_everywhere` starts the same run again and again in a child
process that is killed (SIGKILL) at its first durable boundary, its second one, and so on; each time other processes
bring the run to its end, and that end and the effects must be those of a run that nobody killed. `kill_at_statements`
does the same to one verb, at every SQL statement.

All of it needs committed rows, so a test is marked `@pytest.mark.django_db(transaction=True)`.
"""

from __future__ import annotations

from runs.testing.clock import Clock, moved_clock
from runs.testing.crash import CrashFound, Report, crash_everywhere
from runs.testing.driving import Unanswered, drive, go_on
from runs.testing.faults import fail_at_statements, kill_at_statements
from runs.testing.process import ChildFailed, in_child

__all__ = [
    "ChildFailed",
    "Clock",
    "CrashFound",
    "Report",
    "Unanswered",
    "crash_everywhere",
    "drive",
    "fail_at_statements",
    "go_on",
    "in_child",
    "kill_at_statements",
    "moved_clock",
]
