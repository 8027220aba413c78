"""Bad nights of whole cores, link by mesh or by broker: all equal afterwards, nothing lost without a word."""

import pytest

from tests.store.storms import Storm
from weft.cores.store.conflicts import Conflicts

pytestmark = pytest.mark.prove("storms")

SEEDS, SOAK_SEEDS = 8, 2_000


@pytest.mark.proves("STO-012", "STO-013", "STO-032", "STO-034")
def test_after_a_storm_all_are_equal_and_what_was_acknowledged_is_accounted_for(soak: bool) -> None:
    wrong = {seed: found for seed in range(SOAK_SEEDS if soak else SEEDS) if (found := Storm(seed).go())}
    assert {} == wrong


def test_a_storm_sees_a_core_that_hides_who_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Conflicts, "note", lambda self, kept, lost, reason: None)
    assert any(what.startswith("acknowledged and lost") for seed in range(6) for what in Storm(seed).go())
