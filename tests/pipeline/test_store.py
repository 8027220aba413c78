"""Changes of the store: in silver exactly once, whichever nodes tell of them, and the entries as they stand (PIP-051)."""

import math
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession

from tests.pipeline.conftest import Filled
from tests.pipeline.ground import OTHER_DRAIN, Ground, Plot, at_ms, change
from weft.pipeline.check import Check
from weft.pipeline.sql import Lake
from weft.pipeline.tables import VIEWS
from weft.wire.store.path import pack_path

pytestmark = pytest.mark.prove("whole batches in Spark")

ODD = {
    "p": msgspec.msgpack.Ext(3, pack_path(("a", "b c"))),
    "big": msgspec.msgpack.Ext(2, b"\x40" + bytes(8)),
    "f": math.nan,
}
SPOKEN = [
    change("n1", 1, (), "root", tock=1),
    change("n1", 2, ("lab", "rack.7", 3, True), [1, b"\x00"], tock=5, by="joe", chain=[["n1", 2], ["n2", 9]]),
    change("n2", 1, (None, "node", "n2"), ODD, tock=6),
    change("n1", 3, ("lab",), None, tock=7),
]
REFUSED = [
    (change("n1", 4, ("a",), b"\xc1", tock=8), "undecodable"),
    (change("n1", 5, ("a",), 1, tock=8, path=b"\xc1"), "undecodable"),
    (change("n1", 6, ("a",), 1, tock=1 << 63), "out-of-range"),
    (change("n1", 7, ("a",), 1, tock=8, chain=[["n1"]]), "bad-type"),
    (change("n1", 8, ("a",), 1, tock=8, deleted=None), "missing-field"),
]


@pytest.fixture
def plot(spark: SparkSession, ground: Ground) -> Plot:
    """The changes of a lake."""
    return Plot(ground.lake.root, spark, "store")


def ask(plot: Plot, text: str) -> list[tuple[Any, ...]]:
    with Lake(plot.lake.root) as lake:
        return [tuple(row.values()) for row in lake.query(text).to_pylist()]


@pytest.mark.proves("PIP-030", "PIP-031", "PIP-032", "STO-030")
def test_a_change_is_in_silver_once_whoever_tells_of_it_and_what_nobody_can_read_is_kept_aside(plot: Plot) -> None:
    """One batch with everything, then one that brings foreign changes again, and a number with another value."""
    heard = change("x", 9, ("lab",), 1.5, tock=9)
    done = plot.take(*SPOKEN, heard, *[record for record, _ in REFUSED])
    assert (len(SPOKEN) + 1, len(REFUSED), 8) == (done.outcome.silver, done.outcome.quarantined, done.missing)
    again = change("x", 9, ("lab",), 1.5, tock=12, told_ns=7_000_000, chain=[["x", 9], ["y", 2]])
    done = plot.take(
        again, change("n1", 1, (), "other", tock=1), change("n1", 9, ("b",), 0, tock=20), drain=OTHER_DRAIN
    )
    assert (3, 1, 1, 1) == done.outcome[:4]
    columns = ("node", "tick", "path", "path_text", "value", "deleted", "tock", "by")
    assert [
        ("n1", 1, [], ":", '"root"', False, 1, None),
        ("n1", 2, ["lab", "rack.7", "3", "true"], "lab.rack:.7:3:t", '[1,{"$b":"AA=="}]', False, 5, "joe"),
        ("n1", 3, ["lab"], "lab", None, True, 7, None),
        ("n1", 9, ["b"], "b", "0", False, 20, None),
        ("n2", 1, [None, "node", "n2"], ":n.node.n2",
         '{"big":{"$i":"1180591620717411303424"},"f":{"$f":"nan"},"p":{"$p":"a.b:_c"}}', False, 6, None),
        ("x", 9, ["lab"], "lab", "1.5", False, 9, None),
    ] == plot.rows("silver.store", *columns)  # fmt: skip
    (row,) = [row for row in plot.rows("silver.store") if row["tick"] == 2]
    assert ("n1", None, 2, at_ms(2) * 1_000_000) == (row["origin"], row["era"], row["sequence"], row["at_ns"])
    assert [{"node": "n1", "tick": 2}, {"node": "n2", "tick": 9}] == row["chain"]
    refused = {(record.sequence, reason) for record, reason in REFUSED} | {(1, "changed")}
    assert refused == set(plot.rows("quarantine.store", "sequence", "reason"))
    assert [(":", '"root"', "n1"), ("b", "0", "n1")] == ask(
        plot, "SELECT path_text, value, node FROM store_current WHERE path_text IN (':', 'b', 'lab.x') ORDER BY 1"
    )
    verdict = Check(plot.lake).run()
    assert ("equal", []) == (verdict.state, verdict.differences)


CURRENT = "SELECT path_text, value, node, tick, tock, path FROM gold.store_current ORDER BY 1"


@pytest.mark.proves("PIP-051")
def test_an_entry_is_what_its_greatest_change_says(filled: Filled) -> None:
    with Lake(filled.ground.lake.root) as lake:
        assert [{"path_text": "a.b", "value": "5", "node": "n1", "tick": 1, "tock": 10, "path": ["a", "b"]}] == (
            lake.query(CURRENT).to_pylist()
        )


@pytest.mark.proves("PIP-051")
@pytest.mark.parametrize(
    "bug",
    [
        ("ORDER BY tock DESC, tick DESC, node", "ORDER BY received DESC, node DESC"),
        ("tick DESC, node)", "tick DESC, node DESC)"),
        ("WHERE NOT deleted", ""),
    ],
    ids=["winner by arrival", "names the other way round", "deleted ones shown"],
)
def test_a_planted_bug_of_the_view_would_be_seen(
    bug: tuple[str, str], filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = VIEWS["gold.store_current"]
    assert bug[0] in view.sql
    monkeypatch.setitem(VIEWS, "gold.store_current", view._replace(sql=view.sql.replace(*bug)))
    with pytest.raises(AssertionError):
        test_an_entry_is_what_its_greatest_change_says(filled)
