"""Changes of the catalog and log records of services as rows of silver, each once."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.ground import OTHER_DRAIN, A, Ground, Plot, at_ms, instance_change, log_record
from weft.pipeline.check import Check

pytestmark = pytest.mark.prove("whole batches in Spark")

RECORD = {"metadata": {"room": "7"}, "port": 9, "tags": ["x"]}
CHANGES = [
    instance_change(1, "register", RECORD),
    instance_change(2, "suspect", {}, state="suspect", since="never"),
    instance_change(3, "inactive", {"metadata": "none"}, state="inactive", reason="silent"),
    instance_change(4, "remove", None, state="none", reason="reaped"),
]
NO_CHANGES = [
    (instance_change(5, "update", {}, epoch=None), "missing-field"),
    (instance_change(6, "update", [1], op=7, state=None), "missing-field"),  # type: ignore[arg-type]  # it is none
    (instance_change(7, "update", [1]), "bad-type"),  # type: ignore[arg-type]  # it is none
]
LOGS = [
    log_record(1, fields={"b": 1, "a": [2]}, logger="m"),
    log_record(2, repeated=15),
    log_record(3, seq=None, ts=None, lost={"from": 7, "to": 9}),
]
NO_LOGS = [
    (log_record(4, message="left out"), "missing-field"),
    (log_record(5, level=None), "missing-field"),
    (log_record(6, instance=None), "missing-field"),
]


def instant(number: int) -> datetime:
    return datetime.fromtimestamp(at_ms(number) / 1000, UTC)


def refused(pairs: list[Any]) -> list[Any]:
    return [(record.sequence, reason) for record, reason in pairs]


@pytest.mark.proves("PIP-030", "PIP-031", "PIP-032", "CAT-040")
def test_a_change_of_an_instance_is_in_silver_once_and_what_is_none_is_kept_aside(
    spark: SparkSession, ground: Ground
) -> None:
    plot = Plot(ground.lake.root, spark, "catalog")
    plot.take(*CHANGES, *[record for record, _ in NO_CHANGES])
    done = plot.take(CHANGES[0], instance_change(2, "active", {}), drain=OTHER_DRAIN)
    assert (2, 0, 1, 1) == done.outcome[:4]
    columns = ("index", "op", "name", "instance", "state", "reason", "metadata", "record", "since")
    assert [
        (1, "register", "thermo", "a", "active", None, [("room", "7")], '{"metadata":{"room":"7"},"port":9,"tags":["x"]}', instant(1)),
        (2, "suspect", "thermo", "a", "suspect", None, None, "{}", None),
        (3, "inactive", "thermo", "a", "inactive", "silent", None, '{"metadata":"none"}', instant(1)),
        (4, "remove", "thermo", "a", "none", "reaped", None, None, instant(1)),
    ] == plot.rows("silver.catalog", *columns)  # fmt: skip
    assert {(A, "e" * 16, "10.0.0.1", None)} == set(plot.rows("silver.catalog", "broker", "epoch", "owner", "net"))
    assert sorted([(2, "changed"), *refused(NO_CHANGES)]) == plot.rows("quarantine.catalog", "sequence", "reason")
    verdict = Check(plot.lake).run()
    assert ("equal", []) == (verdict.state, verdict.differences)


@pytest.mark.proves("PIP-030", "PIP-031", "PIP-032", "LOG-005")
def test_a_log_record_is_in_silver_once_and_what_is_none_is_kept_aside(spark: SparkSession, ground: Ground) -> None:
    plot = Plot(ground.lake.root, spark, "logs")
    plot.take(*LOGS, *[record for record, _ in NO_LOGS])
    done = plot.take(LOGS[1], log_record(1, message="cold"), drain=OTHER_DRAIN)
    assert (2, 0, 1, 1) == done.outcome[:4]
    columns = ("at", "ts", "level", "seq", "logger", "message", "fields", "repeated", "lost_from", "lost_to")
    assert [
        (instant(1), instant(1), "WARNING", 1, "m", "hot", '{"a":[2],"b":1}', None, None, None),
        (instant(2), instant(2), "WARNING", 2, "", "hot", "{}", 15, None, None),
        (instant(3), None, "WARNING", None, "", "hot", "{}", None, 7, 9),
    ] == plot.rows("silver.logs", *columns)
    assert {(A, "thermo", "a", "green")} == set(plot.rows("silver.logs", "broker", "service", "instance", "net"))
    assert sorted([(1, "changed"), *refused(NO_LOGS)]) == plot.rows("quarantine.logs", "sequence", "reason")
    verdict = Check(plot.lake).run()
    assert ("equal", []) == (verdict.state, verdict.differences)
