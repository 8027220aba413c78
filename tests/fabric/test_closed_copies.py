"""A machine of a closed fabric whose disk, with its key, was copied and runs a second time (FLT-021, CHN-037)."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fabric.test_heir import parent_check, parent_of, why_shut
from tests.fabric.test_rotation import OFTEN, QUICK, Measuring, leads
from weft.cli.asking import try_status

pytestmark = pytest.mark.prove("fleets with a machine that is there twice")

TWICE = "a later start of this node is here"


class Copied(Measuring):
    """A root and the machine `a`, whose disk is copied while it runs; `copy` runs beside it at another address.

    Nobody hears datagrams of others, as between machines of two networks: on one machine the copy would hear that `a` is
    there, and end by itself.
    """

    def copy(self) -> None:
        here, there = self.place / "a", self.place / "copy"
        shutil.copytree(here, there, ignore=_sockets)
        file = there / "node.toml"
        moved = file.read_text("utf-8").replace(str(here), str(there))
        file.write_text(moved.replace(str(self.others[0]), str(self.others[1])), "utf-8")
        self.come_back("copy")
        self.all.append("copy")

    def port_of(self, name: str) -> int:
        return self.ports[("root", "a", "copy").index(name)]

    def status(self, name: str) -> dict[str, Any]:
        return try_status(self.port_of(name)) or {}

    def in_place(self) -> int:
        """The start of `a` that the root has below it; 0: none."""
        return next((int(row["era"]) for row in self.status("root").get("children", []) if row["name"] == "a"), 0)

    def has_taken_over(self) -> bool:
        """Whether the copy stands in the place of `a`, which was told so."""
        return 0 < self.in_place() == self.status("copy").get("era") and TWICE in parent_check(self.port_of("a"))

    def refused(self, why: str) -> int:
        """How often the root has refused a child."""
        return int(self.status("root")["cores"]["carrier"]["refused"].get(why, 0))

    def end(self, number: int) -> None:
        """Stop a process, by the order of their starts."""
        ended = self.running.pop(number)
        ended.terminate()
        assert 0 == ended.wait(30), self.said()


def _sockets(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(folder, name).is_socket()]


@pytest.fixture
def copied(tmp_path: Path) -> Iterator[Copied]:
    made = Copied(tmp_path)
    made.file.write_text(f"{QUICK}beacons = false\n", "utf-8")
    with made:
        made.until(lambda: leads(made.port), "the root may write")
        made.run("config", "set", "all/metric/cpu", OFTEN, "--port", str(made.port))
        made.bring_in("a", 0)
        made.measure_on()
        made.copy()
        made.until(made.has_taken_over, "the copy has taken the place of a")
        yield made


@pytest.mark.proves("FLT-021", "CHN-037", part="a copy of a disk, with the key that is on it, between real processes")
def test_a_copied_disk_takes_over_with_the_key_of_the_first_which_is_refused_until_it_is_alone(copied: Copied) -> None:
    assert copied.refused("two-nodes-one-id") > 0
    assert '"why": "two-nodes-one-id"' in copied.said()
    assert "weft key rotate" in parent_check(copied.port_of("a"))
    copied.measure_on()
    assert copied.has_taken_over()
    copied.end(-1)
    copied.until(lambda: copied.in_place() == copied.status("a")["era"], "a is back in its place")
    copied.measure_on()
    copied.stop()
    assert ({}, 0) == copied.lost_and_doubled()


@pytest.mark.proves("FLT-021", "SEC-054", part="of two with one key, a rotation leaves the one that stands in the tree")
def test_a_rotated_key_shuts_out_the_one_of_two_that_has_no_place(copied: Copied) -> None:
    former = copied.secret("a")
    copied.rotate("a")
    assert (former, True) == (copied.secret("a"), former != copied.secret("copy"))
    copied.until(lambda: why_shut(copied.port_of("a")) == {"key-refused"}, "nobody knows the key of a any more")
    copied.until(lambda: copied.in_place() == copied.status("copy").get("era"), "the copy is in its place")
    assert copied.status("root")["security"]["handshakes"]["unknown-key"] > 0
    copied.end(-1)
    copied.run("key", "revoke", "a", "--port", str(copied.port))
    copied.end(-1)
    copied.join(copied.invite()["token"], "a", 0)
    copied.until(lambda: parent_of(copied.port_of("a")) == "root", "a token has let a in")
    copied.measure_on()
    copied.stop()
    assert ({}, 0) == copied.lost_and_doubled()
