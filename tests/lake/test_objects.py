"""A lake in an object store: one conditional put makes a segment, and whatever dies the lake becomes whole (LAK-009, PIP-105)."""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from pyspark_weft.rows import Reading
from tests.lake.objectstore import Store, store
from tests.lake.records import rows_of
from tests.lake.test_publication import NODE, drain_all, read, recorder
from weft.base.errors import UserError
from weft.cli.home import home_of
from weft.cores.drain.messages import InspectLake, LakeFound, LakeRefused, SegmentFailed, SegmentWritten, WriteSegment
from weft.lake import bucket as requests
from weft.lake import consumers, objects
from weft.lake.audit import audit
from weft.lake.bucket import Access, Request, access_of, signed
from weft.lake.fetching import Fetched, fetch
from weft.lake.layout import Layout
from weft.lake.manifest import NO_PRIOR, SegmentFault
from weft.lake.objects import ObjectPath, lake_path
from weft.lake.reader import Source, files_between
from weft.lake.retention import Keep, sweep
from weft.lake.schemas import SEGMENTS
from weft.lake.segments import open_lake
from weft.shell import recorder as recorders
from weft.shell.recorder import Recorder
from weft.shell.serve import founded

URI = "s3://fleet/home/lake"
KEYS = f"home/lake/drain/samples/{NODE.hex()}/00000000"
FIRST = WriteSegment(1, 1, 1, 3, NO_PRIOR)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store that the environment names, and no pause between tries."""
    with store() as made:
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(requests, "PAUSE_S", 0.0)
        yield made
        for bucket in ("fleet", "nowhere"):
            objects._bucket(bucket, access_of(os.environ))._line.close()


def drained(held: Store) -> Layout:
    drain_all(Recorder(URI, NODE, read, print))
    held.asked.clear()
    return Layout(lake_path(URI))


def content(lake: Layout, stream: str) -> list[dict[str, Any]]:
    return [row for piece in files_between(lake, stream) for row in rows_in(piece.path)]


def rows_in(path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(io.BytesIO(lake_path(path).read_bytes())).to_pylist()
    return found


def check(lake: Layout) -> None:
    assert [1, 2, 3, 4, 5, 8, 9, 10, 11] == [row["sequence"] for row in content(lake, "samples")]
    assert [1, 2] == [row["sequence"] for row in content(lake, "logs")]
    assert [] == [found for stream in ("samples", "logs") for found in audit(lake, stream, deep=True) if found.fault]


@pytest.mark.proves("LAK-009")
def test_the_file_is_put_then_its_manifest_each_only_if_there_is_none(held: Store) -> None:
    writer = Recorder(URI, NODE, read, print)
    assert isinstance(writer.outcome(InspectLake()), LakeFound)
    held.asked.clear()
    assert isinstance(writer.outcome(FIRST), SegmentWritten)
    puts = [line for line in held.asked if line.startswith("PUT")]
    assert [f"PUT {KEYS}/{1:016x}.{kind} if-none-match" for kind in ("parquet", "json")] == puts
    drain_all(writer)
    check(Layout(lake_path(URI)))
    assert 7 == len(held.objects)


@pytest.mark.proves("LAK-009")
@pytest.mark.varies("first", [0], [0, 3, 6], prove=[3, 6])
def test_the_recorder_dies_before_a_request_and_at_each_the_lake_becomes_whole(held: Store, first: int) -> None:
    drain_all(Recorder(URI, NODE, read, print))
    whole, requests_made = dict(held.objects), len(held.asked)
    assert requests_made > 30
    for dies_at in range(first, requests_made, 9):
        held.objects.clear()
        held.asked.clear()
        held.dies_at = dies_at
        with pytest.raises(AssertionError, match=r"LakeRefused|SegmentFailed"):
            drain_all(Recorder(URI, NODE, read, print))
        held.dies_at = None
        drain_all(Recorder(URI, NODE, read, print))
        assert whole.keys() == held.objects.keys(), dies_at
        check(Layout(lake_path(URI)))


@pytest.mark.proves("LAK-009")
def test_answers_that_are_lost_change_nothing(held: Store) -> None:
    drain_all(Recorder(URI, NODE, read, print))
    whole, chance = dict(held.objects), Random(9)
    for _ in range(4):
        held.objects.clear()
        writer = Recorder(URI, NODE, read, print)
        held.loses = chance.randrange(1, 3)
        drain_all(writer)
        held.loses = 1
        assert isinstance(writer.outcome(InspectLake()), LakeFound)
        assert whole.keys() == held.objects.keys()
        check(Layout(lake_path(URI)))


@pytest.mark.proves("LAK-009")
def test_of_two_that_write_under_one_name_each_writes_behind_the_other(
    held: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Recorder(URI, NODE, read, print), Recorder(URI, NODE, read, print)
    assert isinstance(one.outcome(InspectLake()), LakeFound)
    assert isinstance(other.outcome(InspectLake()), LakeFound)
    assert isinstance(one.outcome(FIRST), SegmentWritten)
    before = dict(held.objects)
    manifest = f"{KEYS}/{1:016x}.json"
    del held.objects[manifest]  # the other one is between its two puts
    behind = WriteSegment(1, 1, 1, 6, NO_PRIOR)
    with monkeypatch.context() as hurried:
        hurried.setattr(recorders, "PATIENCE_S", 0.0)
        refused = other.outcome(behind)
        assert isinstance(refused, SegmentFailed)
        assert "has begun a segment here and does not finish it" in refused.detail
    assert before[f"{KEYS}/{1:016x}.parquet"] == held.objects[f"{KEYS}/{1:016x}.parquet"]
    monkeypatch.setattr("weft.shell.recorder.time.sleep", lambda _: held.objects.update({manifest: before[manifest]}))
    late = other.outcome(behind)
    assert isinstance(late, SegmentWritten)
    assert 2 == late.number
    assert before.items() <= held.objects.items()
    held_now = [row["sequence"] for row in content(Layout(lake_path(URI)), "samples")]
    assert 9 == len(held_now) == len(set(held_now))


@pytest.mark.proves("LAK-009")
def test_a_store_that_keeps_no_condition_is_refused(held: Store) -> None:
    held.keeps_conditions = False
    refused = Recorder(URI, NODE, read, print).outcome(InspectLake())
    assert isinstance(refused, LakeRefused)
    assert "ignores `If-None-Match: *`" in refused.detail


def test_of_two_that_found_a_lake_both_are_in_the_same(held: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Layout(lake_path(URI))
    first = open_lake(lake, "a" * 32, 1)
    monkeypatch.setattr(ObjectPath, "exists", lambda _: False)  # it looked before the other one had written
    assert first == open_lake(lake, "b" * 32, 2)
    assert 1 == len(held.objects)


@pytest.mark.parametrize(
    ("status", "why"), [(403, "failed"), (507, "full"), (400, "failed")], ids=["denied", "full", "strange"]
)
def test_what_the_store_refuses_is_told_in_its_words(held: Store, status: int, why: str) -> None:
    held.says = [status]
    writer = Recorder(URI, NODE, read, print)
    refused = writer.outcome(InspectLake())
    assert isinstance(refused, LakeRefused)
    assert (why, True) == (refused.why, f"{status}" in refused.detail), refused
    held.says = []
    drain_all(writer)


def test_later_is_asked_again_and_not_for_ever(held: Store) -> None:
    held.says = [503, 500]
    drain_all(Recorder(URI, NODE, read, print))
    held.says = [503] * 3
    refused = Recorder(URI, NODE, read, print).outcome(InspectLake())
    assert isinstance(refused, LakeRefused)
    assert "503" in refused.detail


def test_a_bucket_that_is_not_there_is_no_empty_lake(held: Store) -> None:
    refused = Recorder("s3://nowhere/lake", NODE, read, print).outcome(InspectLake())
    assert isinstance(refused, LakeRefused)
    assert "NoSuchBucket no such bucket" in refused.detail
    assert {} == held.objects


@pytest.mark.proves("PIP-105", part="the segments of a lake in an object store are read by the Spark source's reader")
def test_the_source_reads_the_same_rows_from_objects(held: Store, tmp_path: Path) -> None:
    lake = drained(held)
    drain_all(recorder(tmp_path))
    reading = Reading(SEGMENTS["samples"], include_errors=True, verify=True)

    def seen(lake: Layout) -> list[dict[str, Any]]:
        source = Source(lake, "samples")
        pieces = source.slices(source.earliest(), source.latest())
        return [row for batch in reading.batches(pieces) for row in batch.to_pylist()]

    assert seen(Layout(tmp_path)) == seen(lake)
    key = f"{KEYS}/{1:016x}.parquet"
    held.objects[key] = held.objects[key][:-1] + b"?"
    with pytest.raises(SegmentFault, match="its bytes are not those of its manifest"):
        seen(lake)
    del held.objects[key]
    with pytest.raises(SegmentFault, match="its file is missing"):
        seen(lake)


@pytest.mark.proves("PIP-105", part="a directory follows a lake in an object store, file by file proved")
def test_a_copy_holds_what_the_lake_holds_and_goes_on_where_it_ended(held: Store, tmp_path: Path) -> None:
    lake, copy = drained(held), Layout(tmp_path / "copy")
    drain_all(recorder(tmp_path / "plain"))
    assert {("samples", 2, 9), ("logs", 1, 2)} == {(f.stream, f.segments, f.rows) for f in fetch(lake, copy)}
    for stream in ("samples", "logs"):
        assert rows_of(Layout(tmp_path / "plain"), stream) == rows_of(copy, stream)
    held.asked.clear()
    assert [] == list(fetch(lake, copy))
    assert [] == [line for line in held.asked if line.endswith(".parquet")]
    assert ["copy", "copy"] == [consumer.name for consumer in consumers.consumers(lake)]


@pytest.mark.proves("PIP-105", part="retention of a lake in an object store waits for its copies")
def test_what_a_copy_has_may_go_and_stays_provable_in_both(held: Store, tmp_path: Path) -> None:
    lake, copy = drained(held), Layout(tmp_path / "copy")
    keep, later, files = Keep(0, 1 << 30), 1 << 62, Recorder(URI, NODE, read, print)._files
    assert (0, 0) == sweep(lake, NODE.hex(), keep, later, files)
    assert 2 == len(list(fetch(lake, copy)))
    assert 1 == sweep(lake, NODE.hex(), keep, later, files).segments
    assert f"{KEYS}/{1:016x}.parquet" not in held.objects
    assert [] == [found for found in audit(lake, "samples", deep=True) if found.fault]
    second = Layout(tmp_path / "second")
    assert {("samples", 1), ("logs", 1)} == {(found.stream, found.segments) for found in fetch(lake, second, "second")}
    assert [8, 9, 10, 11] == [row["sequence"] for row in content(second, "samples")][-4:]


def test_a_copy_takes_nothing_that_is_not_as_its_manifest_says(held: Store, tmp_path: Path) -> None:
    lake, copy = drained(held), Layout(tmp_path / "copy")
    key = f"{KEYS}/{2:016x}.parquet"
    whole = held.objects[key]
    held.objects[key] = whole[:-1] + b"?"
    with pytest.raises(SegmentFault, match="its bytes are not those"):
        list(fetch(lake, copy))
    assert [1, 2, 3, 4, 5] == [row["sequence"] for row in content(copy, "samples")]
    held.objects[key] = whole
    assert [Fetched("samples", NODE.hex(), 1, 4, len(whole))] == list(fetch(lake, copy))[:1]
    (copy.root / "lake.json").unlink()
    open_lake(copy, "f" * 32, 1)
    with pytest.raises(UserError, match="a lake of its own"):
        list(fetch(lake, copy))
    with pytest.raises(UserError, match="is not a lake"):
        list(fetch(Layout(lake_path("s3://fleet/elsewhere")), copy))


# Signatures, places and words.

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
AMAZON = Access(
    "https://s3.amazonaws.com", "us-east-1", "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
)
STAMP = "20130524T000000Z"
HOST = {"host": "examplebucket.s3.amazonaws.com", "x-amz-content-sha256": EMPTY, "x-amz-date": STAMP}


@pytest.mark.parametrize(
    ("request_", "signature"),
    [
        (
            Request("GET", "/test.txt", "", HOST | {"range": "bytes=0-9"}, EMPTY),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            Request("GET", "/", "max-keys=2&prefix=J", HOST, EMPTY),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)
def test_signatures_are_those_of_amazons_own_examples(request_: Request, signature: str) -> None:
    assert signed(request_, AMAZON, STAMP).endswith(f",Signature={signature}")


def test_keys_come_from_the_environment_or_it_is_said_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    assert "https://s3.eu-west-3.amazonaws.com" == access_of(keys | {"AWS_REGION": "eu-west-3"}).endpoint
    for wrong in ("ftp://x", "store:9000", "http://x/path"):
        with pytest.raises(UserError, match="AWS_ENDPOINT_URL"):
            access_of(keys | {"AWS_ENDPOINT_URL": wrong})
    for name in keys:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match="needs its keys"):
        founded(settings_of(URI))


def settings_of(lake: str) -> Any:
    from weft.node.settings import LakeTable, NodeSettings, NodeTable

    return NodeSettings(node=NodeTable(name="s1", port=1), lake=LakeTable(path=lake))


@pytest.mark.parametrize(
    "wrong", ["s3://", "s3://B/lake", "s3://fleet/a b", "s3://fleet/../x/%41", "s3://fleet//", "http://x/y"]
)
def test_what_is_no_place_is_refused(wrong: str) -> None:
    with pytest.raises(UserError, match=r"cannot be the place|cannot be opened"):
        lake_path(wrong)


def test_paths_are_keys_and_what_an_object_store_cannot_do_is_said() -> None:
    path = lake_path(Path(URI))
    assert (URI, "home/lake/x") == (str(path), (path / "x").key if isinstance(path, ObjectPath) else "")
    assert lake_path(URI) == path == lake_path(path)
    for refused in (path.mkdir, lambda: os.fspath(path), lambda: path.rename("x"), lambda: path.open("wb")):
        with pytest.raises(OSError, match="an object store cannot"):
            refused()
    with pytest.raises(UserError, match="weft lake fetch s3://fleet/home/lake --lake DIR"):
        home_of(path)
