"""The times that a fleet has when nobody says otherwise (CFG-074)."""

import pytest

from weft.base.chance import Chance
from weft.base.now import MILLISECOND, SECOND
from weft.base.settings import HOUR
from weft.cores.configuration import limits as replication
from weft.cores.configuration.messages import ConfigurationSettings
from weft.cores.measurement.messages import MeasurementSettings
from weft.cores.topology import limits as places
from weft.cores.topology.context import Context
from weft.cores.topology.messages import TopologySettings
from weft.node.settings import HEARTBEAT_NS, settings_of

PLACE = TopologySettings(fleet="f", name="n", level="auto", base_port=27_500)


@pytest.mark.proves("CFG-074")
def test_beats_snapshots_answers_elections_and_flushes() -> None:
    told, kept = settings_of({"node": {"name": "n"}}), ConfigurationSettings()
    assert (2 * SECOND, 5) == (told.heartbeat_ns, told.fleet.dead_after)
    assert (2 * SECOND, 5) == (kept.heartbeat_ns, kept.dead_after)
    assert (2 * SECOND, 5) == (PLACE.heartbeat_ns, PLACE.dead_after)
    assert (50 * MILLISECOND, HOUR) == HEARTBEAT_NS
    assert (2 * SECOND, 2 * SECOND) == (replication.SNAPSHOT_NS, places.ANSWER_NS)
    assert SECOND == MeasurementSettings().flush_ns


@pytest.mark.proves("CFG-074")
@pytest.mark.parametrize("beat_ms, expected_ms", [(2_000, 1_000), (600, 300), (200, 300)])
def test_an_election_waits_half_a_beat_and_at_least_300_ms(beat_ms: int, expected_ms: int) -> None:
    settings = TopologySettings(fleet="f", name="n", level="auto", base_port=1, heartbeat_ns=beat_ms * MILLISECOND)
    assert expected_ms * MILLISECOND == Context(settings, b"n" * 16, 1, Chance("x")).election_ns
