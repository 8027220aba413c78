"""Imported logs in the tables: what a segment of an import becomes, and which samples are the same (PIP-095..099)."""

from datetime import UTC
from pathlib import Path

import pytest

from tests.pipeline.ground import NOW_NS, Ground
from weft.lake.importing.delimited import Reading
from weft.lake.importing.identity import origin_of
from weft.lake.importing.running import Wish, import_files
from weft.pipeline.tables import BRONZE_SAMPLES, VALUES
from weft.pipeline.transforms.columns import batch_mark
from weft.pipeline.transforms.imported import in_time_order, twins
from weft.pipeline.transforms.samples import to_samples

LINE = "{} source=localhost:55900 value={} base={} detail=CPU config-name=proc config-seqid=4 type=percent\n"
TAKEN = [(1795226590369, 95133, 217439), (1795226591000, 95253, 217563), (1795226592001, 95432, 217762)]
WISH = Wish("attic", "dcamp", Reading(UTC, NOW_NS))


def log(home: Path, name: str, rows: list[tuple[int, int, int]]) -> Path:
    (home / name).write_text("".join(LINE.format(*row) for row in rows), "utf-8")
    return home / name


@pytest.mark.proves("PIP-095")
def test_a_log_arrives_in_silver_once_and_several_files_tell_one_story(ground: Ground, tmp_path: Path) -> None:
    first, second, third = TAKEN
    doubled = log(tmp_path, "leaf", [first, second, second, third])
    again = log(tmp_path, "root", [second, (third[0], 7, 217762)])
    (tmp_path / "bad").write_text("1795226590369 source=h type=basic\n", "utf-8")
    import_files(ground.lake, [doubled, again, tmp_path / "bad"], WISH, NOW_NS)
    done = ground.take()
    rows, silver, duplicates, quarantined, _ = done.outcome
    assert (7, 6, 0, 1) == (rows, silver, duplicates, quarantined)
    assert [("missing-field",)] == ground.rows("quarantine.samples", "reason")
    import_files(ground.lake, [doubled, again], WISH, NOW_NS)
    assert ground.work.source.latest() == ground.start, "nothing new"
    origin = origin_of("attic", "localhost:55900")
    assert {(origin, "localhost:55900", "proc")} == set(ground.rows("silver.samples", "origin", "node", "config_name"))

    told = twins(ground.work.tables.read(BRONZE_SAMPLES)).persist()
    judged = told.where("error is null").orderBy("lsn").select("value_long", "twin", "is_ambiguous").collect()
    assert [
        (95133, 1, False), (95253, 1, False), (95253, 2, False), (95432, 1, True), (95253, 3, False), (7, 1, True),
    ] == [tuple(row) for row in judged]  # fmt: skip

    one = to_samples(told.where("twin = 1 and error is null and value_long != 7"))
    made = in_time_order(one, batch_mark(7))
    assert list(VALUES.schema.names) == made.columns
    assert [(631, 96.7741935483871), (1001, 89.9497487437186)] == [
        (row["span_ms"], pytest.approx(row["result"], rel=1e-14)) for row in made.orderBy("at").collect()
    ]
