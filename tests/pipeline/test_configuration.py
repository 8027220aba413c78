"""Writes of the root: in silver exactly once, and out again as the state that the root really had (PIP-052)."""

from base64 import b64encode
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.ground import OTHER_DRAIN, Plot, at_ms, write
from tests.pipeline.plain import applied, put
from weft.base.chance import Chance
from weft.base.effects import Persist, Reply
from weft.base.now import SECOND, Now
from weft.base.records import StreamRecord
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.messages import ConfigurationSettings, KeysListed, ListKeys, TakeRoot, Write, WriteKeys
from weft.pipeline.check import Check
from weft.pipeline.configuration import state_at
from weft.pipeline.tables import EVENTS

pytestmark = pytest.mark.prove("whole batches in Spark")

DEEP = b"[" * 100 + b"]" * 100
ODD = [
    write(3, "/client/raw", b"\xff\x00", who=""),
    write(4, "/client/word", b"hello", who=None, at=5),
    write(5, "/client/deep", DEEP, at=-5),
    write(6, "/client/null", b"null"),
    write(7, "/CONFIG/web/metric/net", b' {"rate": "1s", "detail": "NET_IF", "x": 1.50}'),
]
"""Whatever bytes were written, at whatever time: the root had them, so they are rows."""
REFUSED = [
    (write(8, "/app/x", b"1", epoch=None), "missing-field"),
    (write(9, "/app/x", b"1", epoch=1 << 23), "out-of-range"),
    (write(1 << 40, "/app/x", b"1", epoch=1 << 23, at=0), "out-of-range"),
]


@pytest.mark.proves("CFG-003", "PIP-030", "PIP-031", "PIP-032", "PIP-061")
def test_a_write_is_in_silver_once_and_numbers_go_on_from_root_to_root(spark: SparkSession, tmp_path: Any) -> None:
    plot = Plot(tmp_path / "lake", spark, "configuration")
    first, lost = write(1, "/app/x", b"1"), write(8, "/app/x", b"8")
    done = plot.take(first, write(2, "/app/x", b""), *ODD, *[record for record, _ in REFUSED])
    assert (7, 3, 0) == (done.outcome.silver, done.outcome.quarantined, done.outcome.duplicates)
    # Another root counts on from 7. The one before it had written 8; and comes back with what it has written.
    news = [write(8, "/app/y", b"8", epoch=2), write(10, "/app/y", b"10", epoch=2)]
    done = plot.take(first, lost, *news, write(2, "/app/x", b"2"), drain=OTHER_DRAIN)
    assert (5, 3, 1, 1) == done.outcome[:4], "1 came twice, of 2 there is another value"
    rows = plot.rows("silver.configuration", "epoch", "counter", "key", "value", "by", "at_ns")
    at = [at_ms(number) * 1_000_000 for number in range(11)]
    assert [
        (1, 1, "/app/x", "1", "joe", at[1]),
        (1, 2, "/app/x", None, "joe", at[2]),
        (1, 3, "/client/raw", '{"$b":"/wA="}', None, at[3]),
        (1, 4, "/client/word", '{"$b":"aGVsbG8="}', None, 5),
        (1, 5, "/client/deep", f'{{"$b":"{b64encode(DEEP).decode()}"}}', "joe", -5),
        (1, 6, "/client/null", "null", "joe", at[6]),
        (1, 7, "/CONFIG/web/metric/net", '{"detail":"NET_IF","rate":"1s","x":1.5}', "joe", at[7]),
        (1, 8, "/app/x", "8", "joe", at[8]),
        (2, 8, "/app/y", "8", "joe", at[8]),
        (2, 10, "/app/y", "10", "joe", at[10]),
    ] == rows
    refused = {(record.sequence, reason) for record, reason in REFUSED} | {(2, "changed")}
    assert refused == set(plot.rows("quarantine.configuration", "sequence", "reason"))
    verdict = Check(plot.lake).run()
    assert ("equal", []) == (verdict.state, verdict.differences)


class Fleet:
    """A root, what it answered when, and what it has for the lake."""

    def __init__(self) -> None:
        self.core = Configuration(ConfigurationSettings(), bytes(16), Chance("as of"))
        self.records: list[StreamRecord] = []
        self.answers: dict[int, list[tuple[str, int, str]]] = {}
        self.second = 0

    def obey(self, order: Any) -> Any:
        """One order a second; its answer."""
        at = at_ms(self.second) * 1_000_000
        self.core.command(order, Now(at, at))
        answer = None
        for effect in self.core.effects():
            if isinstance(effect, Persist):
                self.records += [record for record in effect.records if isinstance(record, StreamRecord)]
            if isinstance(effect, Reply):
                answer = effect.answer
        return answer

    def write(self, *pairs: tuple[str, bytes]) -> None:
        """Written in one order; then all of it is read, and kept as what was answered at that second."""
        self.second += 1
        self.obey(WriteKeys(1, tuple(Write(key, value) for key, value in pairs), "joe"))
        listed = self.obey(ListKeys(2, "", 1_000))
        assert isinstance(listed, KeysListed)
        self.answers[self.second] = [(key, number, value.decode()) for key, number, value in listed.pairs]


def shown(lake: Any, second: int | None, **of: Any) -> list[tuple[str, int, str]]:
    state = state_at(lake, None if second is None else at_ms(second) * 1_000_000 + SECOND // 2, **of)
    return [(each.key, each.number, each.value) for each in state.settings]


@pytest.mark.proves("PIP-052")
def test_what_the_lake_shows_of_an_instant_is_what_the_root_answered_then(spark: SparkSession, tmp_path: Any) -> None:
    fleet = Fleet()
    fleet.obey(TakeRoot(epoch=3))
    for number in range(1, 9):
        pairs = [(f"/app/{key}", b"%d" % number) for key in "abcd" if number % (ord(key) - 96) == 0]
        fleet.write(*pairs, ("/app/gone", b"" if number % 3 == 0 else b'"there"'))
    plot = Plot(tmp_path / "lake", spark, "configuration")
    done = plot.take(*reversed(fleet.records))
    assert (len(fleet.records), 0, 0) == (done.outcome.silver, done.outcome.quarantined, done.missing)
    assert 8 == len(fleet.answers)
    for second, answer in fleet.answers.items():
        assert answer == shown(plot.lake.root, second)
    ran = {2: fleet.answers[1], 5: fleet.answers[4], 6: fleet.answers[4]}
    said = [applied("s1", second, max(number for _, number, _ in answer)) for second, answer in ran.items()]
    put(plot.lake, EVENTS, *said)
    for second, answer in {**ran, 3: ran[2], 8: ran[6]}.items():
        assert answer == shown(plot.lake.root, second, node="s1")
