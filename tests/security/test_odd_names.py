"""Keys and names become columns and idempotency keys: what one database would refuse is refused for both."""

from __future__ import annotations

import pytest

from runs import Permanent
from runs.core.keys import KEY_LENGTH, Keys


@pytest.mark.parametrize("name", ["", " \t", "x" * (KEY_LENGTH + 1), "a\x00b", "a\ud800b", "\udfff"])
def test_a_key_that_no_column_holds_is_refused_when_it_is_asked_for(name: str) -> None:
    """P9: explicit keys and interrupts' names, and those of recorded values, which get a count."""
    for ask in (lambda: Keys().named(name, "key"), lambda: Keys().counted(name)):
        with pytest.raises(Permanent, match="characters|lone surrogates"):
            ask()


def test_any_other_key_is_kept_as_it_is() -> None:
    assert Keys().named("Rechnung №7 – {run_id} 💶", "key") == "Rechnung №7 – {run_id} 💶"
    assert Keys().counted("x" * KEY_LENGTH) == "x" * KEY_LENGTH + "#1"
