"""A lake that cannot be written: the journal keeps everything, the node says so, and later all is there, once."""

import errno
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.shell.world import Host, Lake, World
from weft.base.identity import Origin
from weft.base.vectors import VersionVector
from weft.cores.drain.messages import InspectLake, WriteSegment
from weft.lake.files import LocalFiles
from weft.shell.recorder import Recorder


class TroubledFiles(LocalFiles):
    """A lake's disk that refuses every change as long as `number` says so."""

    def __init__(self) -> None:
        self.number = 0
        self.refused = 0

    def _check(self, path: Path) -> None:
        if self.number:
            self.refused += 1
            raise OSError(self.number, errno.errorcode[self.number], str(path))

    def make_directory(self, path: Path) -> None:
        self._check(path)
        super().make_directory(path)

    def write(self, path: Path, data: bytes | memoryview) -> None:
        self._check(path)
        super().write(path, data)

    def rename(self, old: Path, new: Path) -> None:
        self._check(new)
        super().rename(old, new)

    def sync_directory(self, path: Path) -> None:
        self._check(path)
        super().sync_directory(path)


class RealLake(Lake):
    """The recorder as it ships, without its thread."""

    def __init__(self, place: Path, files: TroubledFiles) -> None:
        super().__init__()
        self.place, self.files = place, files

    def perform(self, host: Host, work: InspectLake | WriteSegment) -> Any:
        process = host.up
        recorder = Recorder(self.place, process.identity.node_id, process.journal.read, lambda _: None, self.files)
        return recorder.outcome(work)

    def rows(self) -> tuple[VersionVector, int]:
        seen: Counter[tuple[str, int | None, int | None]] = Counter()
        for path in sorted((self.place / "drain" / "samples").rglob("*.parquet")):
            columns = pq.read_table(path, columns=["origin", "era", "sequence"]).to_pydict()
            seen.update(zip(columns["origin"], columns["era"], columns["sequence"], strict=True))
        vector = VersionVector()
        for origin, era, sequence in seen:
            if len(origin) == 32 and era is not None and sequence is not None:
                vector.add(Origin(bytes.fromhex(origin), era), sequence)
        return vector, sum(times - 1 for (_, _, sequence), times in seen.items() if sequence is not None)


def health(host: Host) -> tuple[str, str, str]:
    facts = host.up.telemetry.health_facts()
    (check,) = [check for check in facts["checks"] if check["name"] == "lake"]
    return facts["state"], check["state"], check["text"] + " " + check["do"]


def events(host: Host) -> list[str]:
    return [type(event).__name__ for event in host.told if type(event).__name__.startswith("Lake")]


def lake_under(world: World, place: Path) -> tuple[Host, Host, RealLake]:
    root, sensor = world.host("root", "root"), world.host("sensor", "sensor", "root")
    root.lake = lake = RealLake(place, TroubledFiles())
    return root, sensor, lake


@pytest.mark.proves("LAK-015", "OBS-005")
@pytest.mark.proves("FLT-019", part="the lake")
@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EACCES, errno.EIO], ids=errno.errorcode.get)
def test_a_lake_that_refuses_while_the_root_runs_costs_nothing(number: int, tmp_path: Path) -> None:
    world = World(tmp_path)
    root, sensor, lake = lake_under(world, tmp_path / "lake")

    async def play() -> None:
        for host in (root, sensor):
            host.start()
        sensor.take(10)
        await world.until(lambda: root.up.telemetry.segments > 0)
        assert ("ok", "ok") == health(root)[:2]
        lake.files.number = number
        for _ in range(5):
            sensor.take(10)
            await world.pass_time(2)
        state, check, said = health(root)
        assert ("degraded", "degraded", True) == (state, check, "[lake] path" in said)
        assert ["LakeFull" if number == errno.ENOSPC else "LakeFailed"] == events(root)
        assert 0 == sensor.counters("carrier").spool_records  # taken from the sensor, kept at the root
        lake.files.number = 0
        await world.until(lambda: root.up.node.cores["drain"].behind == (0, 0))  # type: ignore[attr-defined]  # a drain has
        assert "LakeBack" == events(root)[-1]
        assert "ok" == health(root)[0]
        assert (world.made(), 0) == lake.rows()

    world.run(play())


def test_a_place_that_can_be_no_lake_is_waited_for(tmp_path: Path) -> None:
    world = World(tmp_path)
    place = tmp_path / "disk" / "lake"
    (tmp_path / "disk").write_text("not mounted yet")
    root, sensor, lake = lake_under(world, place)

    async def play() -> None:
        for host in (root, sensor):
            host.start()
        sensor.take(10)
        await world.pass_time(5)
        assert ("degraded", False) == (health(root)[0], root.up.telemetry.health.is_ready)
        (tmp_path / "disk").unlink()
        (tmp_path / "disk").mkdir()
        await world.until(lambda: root.up.telemetry.segments > 1)
        assert (world.made(), 0) == lake.rows()
        assert root.up.telemetry.health.is_ready

    world.run(play())


def test_a_root_that_is_killed_beside_a_lake_in_trouble_goes_on_where_it_was(tmp_path: Path) -> None:
    world = World(tmp_path)
    root, sensor, lake = lake_under(world, tmp_path / "lake")

    async def play() -> None:
        for host in (root, sensor):
            host.start()
        for number in (0, errno.EROFS, errno.ENOSPC, 0):
            lake.files.number = number
            sensor.take(10)
            await world.pass_time(3)
            root.kill()
            await world.pass_time(1)
            root.start()
            await world.pass_time(7)
        await world.until(lambda: root.up.node.cores["drain"].behind == (0, 0))  # type: ignore[attr-defined]  # a drain has
        assert (world.made(), 0) == lake.rows()

    world.run(play())
