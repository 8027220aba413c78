"""Three nodes of each core that talks with others, everything that may happen to them in any order, then quiet (FUZ-005)."""

from typing import Any

import pytest

from tests.machines.rounds import play
from tests.machines.stories import STORIES
from tests.topology.test_canaries import aye_before_durable
from weft.cores.carrier.core import Carrier
from weft.cores.catalog import context as catalog
from weft.cores.chains.engine import Engine
from weft.cores.clone import context as clone
from weft.cores.configuration.core import Configuration
from weft.cores.document.log import Log
from weft.cores.enrolment.invitations import Invitations
from weft.cores.service.core import Service
from weft.cores.store.replica import Replica as StoreReplica
from weft.cores.topology.election import Election
from weft.sim.catalogbugs import approved_before_persist
from weft.sim.wholebugs import deleted_pairs_stay_with_clones

STEPS = 30


ALSO = {
    "enrolment": pytest.mark.proves("FLT-023", part="keys are invited, revoked and rotated in any order"),
}
"""What a story proves beside the rest."""


@pytest.mark.proves("FUZ-005")
@pytest.mark.varies("times", [1], [2_000], prove=[5])
@pytest.mark.parametrize("name", [pytest.param(name, marks=ALSO.get(name, ())) for name in STORIES])
def test_after_anything_and_then_quiet_all_is_as_it_should_be(name: str, times: int) -> None:
    story, examples = STORIES[name]
    play(story, times * examples, STEPS)


PLANTED: dict[str, tuple[Any, str, Any]] = {
    "carrier": (Carrier, "restore", lambda *_: None),
    "catalog": (catalog.Context, "take", approved_before_persist(catalog.Context.take)),
    "chains": (Engine, "confirm", lambda *_: None),
    "clone": (clone.Context, "learn", deleted_pairs_stay_with_clones(clone.Context.learn)),
    "configuration": (Configuration, "restore", lambda *_: None),
    "document": (Log, "restore", lambda *_: None),
    "enrolment": (Invitations, "restore", lambda *_: None),
    "service": (Service, "come_back", lambda *_: None),
    "store": (StoreReplica, "restore", lambda *_: None),
    "topology": (Election, "vote", aye_before_durable),
}
"""By core: a part that does nothing, or too early, which its machine must notice."""


@pytest.mark.prove("many lives")
@pytest.mark.parametrize("name", PLANTED)
def test_planted_bug_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*PLANTED[name])
    with pytest.raises((AssertionError, BaseExceptionGroup)):
        play(STORIES[name][0], 200, STEPS, is_shrunk=False)  # until one shows it
