"""Documents over real processes: three machines, a cable that is pulled, crashes, and everything in the lake (docs/doc.md)."""

from pathlib import Path
from typing import Self

import pyarrow.parquet as pq
import pytest

from tests.fabric.cable import Cabled
from tests.fabric.edited import Edited
from weft.doc import DocError
from weft.shell.blocks import free_blocks

TREE = {"root": "", "sensor-a": "root", "sensor-b": "root"}
TABLE = """
[doc.session.friday]
mdns = false
listen = "127.0.0.1:{port}"
advertise = "127.0.0.1:{port}"
peers = {peers}
operator = "{name}"

[doc.timing]
beat = "500ms"
evasive = "1s"
gone = "2s"
gossip = "500ms"
"""
POINTS = '<pass team="{team}" points="{points}"/>'


class Hall(Edited):
    """A root and two sensors that edit one document; each calls the root only, and is introduced to the other."""

    is_fresh = True  # what lists of processes show of them is looked at

    def __init__(self, place: Path) -> None:
        super().__init__(place, TREE)
        (block,) = free_blocks(1, 21_000)
        self.listen = {name: block + number for number, name in enumerate(TREE)}

    def __enter__(self) -> Self:
        super().__enter__()
        self.until(self.is_mesh, "everybody knows everybody")
        return self

    def settings(self, name: str, port: int, state: Path) -> str:
        peers = [] if name == "root" else [f"127.0.0.1:{self.listen['root']}"]
        return super().settings(name, port, state) + TABLE.format(port=self.listen[name], peers=peers, name=name)

    def shows(self, word: str) -> bool:
        """Whether the arguments of a node's process say a word of its settings."""
        processes = [self.member(name).process for name in TREE]
        return any(word in Path(f"/proc/{process.pid}/cmdline").read_text("utf-8") for process in processes if process)

    def agreed(self) -> None:
        self.until(self.is_equal, "the same log everywhere")


@pytest.mark.proves("GSP-030", "PEE-003")
def test_what_is_entered_anywhere_is_everywhere_survives_a_kill_and_is_a_row_of_the_lake(tmp_path: Path) -> None:
    with Hall(tmp_path) as hall:
        for number, name in enumerate(TREE, 1):
            with hall.client(name) as client:
                client.add(f"period=1 jam={number}", POINTS.format(team="home", points=number))
        hall.agreed()
        assert 1 == len(hall.digests())
        assert not hall.shows("friday"), "settings may have a token in them, and stand in no list of processes"
        before = hall.digests()
        hall.kill("sensor-a")
        with hall.client("sensor-b") as client:
            client.set("period=1 jam=1", {"duration": 90})
        hall.until(lambda: hall.active("sensor-a") == 2, "it is started again, and finds the others")
        hall.agreed()
        assert 1 == len(hall.digests())
        assert before != hall.digests()
        with hall.client("sensor-a") as client:
            text = client.show()
            assert 4 == client.status()["operations"]
        assert 'duration="90"' in text
        hall.stop()
        rows = [
            row
            for file in sorted(hall.lake.rglob("*.parquet"))
            for row in pq.read_table(file).to_pylist()
            if "documents" in file.name or "documents" in str(file.parent)
        ]
        assert 4 == len({(row["origin"], row["sequence"]) for row in rows})


@pytest.mark.prove("a second story of documents")
def test_all_nodes_off_and_on_again_have_everything_from_their_disks(tmp_path: Path) -> None:
    with Hall(tmp_path) as hall:
        with hall.client("root") as client:
            for number in range(1, 31):
                client.add(f"period=1 jam={number}", POINTS.format(team="away", points=3))
        hall.agreed()
        before = hall.digests()
        for name in TREE:
            hall.kill(name)
        hall.until(hall.is_mesh, "all are back")
        assert before == hall.digests()
        with hall.client("sensor-b") as client:
            assert 30 == client.status()["operations"]


@pytest.mark.prove("a second story of documents")
def test_a_reference_that_leads_nowhere_is_refused_in_words(tmp_path: Path) -> None:
    with Hall(tmp_path) as hall, hall.client("root") as client:
        with pytest.raises(DocError) as refused:
            client.add("nonsense=1", "<a/>")
        assert "reference" in refused.value.code
        assert 0 == client.status()["operations"]


@pytest.mark.prove("a second story of documents")
@pytest.mark.proves("DOC-040")
def test_a_pulled_cable_loses_nothing_and_shows_the_conflict_on_both_sides(tmp_path: Path) -> None:
    with Cabled(tmp_path) as cable:
        cable.pull()
        cable.until(lambda: cable.active("sensor-a") == cable.active("root") == 0, "both are alone")
        for name, points in (("root", 3), ("sensor-a", 4)):
            with cable.client(name) as client:
                client.set("period=1 jam=1", {"lead": name})
                client.add("period=1 jam=2", POINTS.format(team="home", points=points))
        cable.plug()
        cable.until(cable.is_equal, "the same log")
        assert 1 == len(cable.digests())
        with cable.client("root") as client:
            found = client.conflicts()
            text = client.show()
        assert ["set-set"] == [conflict.kind for conflict in found]
        assert text.count("<pass ") == 2
