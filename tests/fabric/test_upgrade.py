"""A fleet is upgraded node by node as `weft upgrade check` says it, while it measures and clients write at its nodes."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from tests.fabric.older import OLDER, older_sources
from tests.fabric.test_store_rounds import TREE, Houses, Rounds, Verdict, read_book, wrong_rows
from weft import __version__
from weft.base.chance import Chance
from weft.cli.fleet import Fleet
from weft.cli.upgrade import of_fleet
from weft.pipeline.doctor import FINE


class Versions(Fleet):
    """A fleet of fresh processes, which run the older sources until their node is upgraded."""

    def __init__(self, directory: Path, older: Path) -> None:
        super().__init__(directory)
        self.older, self.upgraded = older, set[str]()

    def _run(self, arguments: Sequence[str], out: IO[bytes], errors: IO[bytes]) -> "subprocess.Popen[bytes]":
        is_new = Path(arguments[-1]).stem in self.upgraded
        with pytest.MonkeyPatch.context() as patch:
            if not is_new:
                patch.setenv("PYTHONPATH", os.pathsep.join([str(self.older), os.environ.get("PYTHONPATH", "")]))
            return super()._run(arguments, out, errors)


class Upgraded(Houses):
    """Nodes that begin with the older version."""

    is_fresh = True

    def __init__(self, place: Path, parents: dict[str, str]) -> None:
        super().__init__(place, parents)
        self.fleet: Versions = Versions(place, older_sources(place / "older"))

    def versions(self) -> dict[str, str]:
        """What each node says that it runs."""
        return {name: str(self.status(name).get("version")) for name in self.parents}

    def findings(self) -> dict[str, Any]:
        """What `weft upgrade check` finds, as it is typed."""
        command = [
            sys.executable,
            "-m",
            "weft.cli.main",
            "upgrade",
            "check",
            "--json",
            "--port",
            str(self.ports["root"]),
        ]
        environment = os.environ | {"XDG_STATE_HOME": str(self.place / "none")}
        said = subprocess.run(command, capture_output=True, env=environment, timeout=120, check=False)
        found = [json.loads(line) for line in said.stdout.splitlines()]
        return {one["what"]: one for one in found}

    def is_well(self) -> bool:
        """Whether nothing but the version stands in the way of the next one."""
        return all(one.state == FINE for one in of_fleet(self.ports["root"]) if one.what != "fleet: version")

    def upgrade(self, name: str) -> None:
        """As one does it: the new version is there, its service is started again."""
        self.fleet.upgraded.add(name)
        self.fleet.stop([name], patience_s=60)
        assert not self.fleet.news, self.fleet.news
        self.start(name)
        self.until(lambda: self.versions()[name] == __version__, f"{name} runs the new version")
        self.until(lambda: self.is_well() and self.is_whole(name), f"after {name} the fleet is well again")


@pytest.mark.prove("four nodes started twice, one after the other")
@pytest.mark.proves(
    "OPS-003", part="a fleet is upgraded node by node under load; nothing is lost, all run the new version"
)
def test_a_fleet_is_upgraded_node_by_node_while_it_measures_and_clients_write(tmp_path: Path) -> None:
    with Upgraded(tmp_path, TREE) as fabric:
        rounds = Rounds(fabric, Chance("upgrade"), 0.05)
        fabric.until(lambda: all(map(fabric.is_whole, TREE)) and fabric.is_well(), "all have joined")
        assert {OLDER} == set(fabric.versions().values())
        rounds.hands.start()
        fabric.measure_on()
        found = fabric.findings()
        assert "warn" == found["fleet: version"]["state"], found
        order = found["order"]["text"].rpartition(": ")[2].split(", ")
        assert ["sensor-1", "sensor-2", "collector-1", "root"] == order
        for name in order:
            before = {hand.node: len(hand.acks) for hand in rounds.hands.hands}
            fabric.upgrade(name)
            fabric.measure_on(30)
            fabric.until(
                lambda before=before: all(len(hand.acks) > before[hand.node] for hand in rounds.hands.hands),  # type: ignore[misc]  # bound
                "each client writes on",
            )
        assert {__version__} == set(fabric.versions().values())
        assert {"ok"} == {one["state"] for what, one in fabric.findings().items() if what.startswith("fleet")}
        rounds.settle()
        lost = rounds.conflicts()
        rounds.hands.end()
        fabric.stop()
        books = {name: read_book(tmp_path / name / "journal", name) for name in TREE}
        acks = [ack for hand in rounds.hands.hands for ack in hand.acks]
        wrong = [*Verdict(books, rounds.whole(), lost).wrong(acks), *wrong_rows(fabric.lake, books)]
        assert [] == wrong + [each for hand in rounds.hands.hands for each in hand.strange]
        made, (drained, doubled) = fabric.made(), fabric.drained()
        assert 0 == doubled
        assert {} == {str(origin): list(missing) for origin, missing in made - drained}
        assert 2 * len(TREE) == len(drained)  # each was started twice
