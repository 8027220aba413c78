"""Weft's store among real MoaT-KV servers: joined, split, healed, and of one mind with them.

Meets the newest release, or those that the variable WEFT_MOAT names: `new,mid,old`, or `all`. The tests of one release
share one room, in which more and more happens, so they run in the order in which they stand here.
"""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.interop.moat.peers import CYCLE_S, until, versions
from tests.interop.moat.speaker import GONE, Path, Speaker, living, ticks_of
from tests.interop.moat.world import Room, Woven

VALUES: Final[dict[str, Any]] = {
    "null": None,
    "true": True,
    "int": 42,
    "negative": -(1 << 63),
    "large": (1 << 64) - 1,
    "huge": (1 << 70) + 5,
    "half": 0.5,
    "float": 1.1,
    "text": "für alle",
    "empty": "",
    "bytes": b"\x00\xff",
    "long": "x" * 1_000,
    "list": [1, "two", None, [0.25]],
    "map": {"a": 1, "b": {"c": [b"d"]}},
    "path": Path(("a", 1, "b c")),
}
RACES: Final = 60
SPLIT_WRITES: Final = 2_000
JOIN_S: Final = 5 * CYCLE_S  # three, and two for a machine that is busy
HEAL_S: Final = 60.0  # a healing takes six cycles; real servers on a busy machine take their time for each change


@pytest.fixture(scope="module", params=versions())
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Guest:
    """A room that real servers have lived in for a while, and the node of Weft that came later."""

    def __init__(self, room: Room) -> None:
        self.room = room
        room.real("n1", "hello").ready()
        room.real("n2", right=True).ready()
        with self.client("n1") as one, self.client("n2") as two:
            one.set_all([(f"before.one.{number}", number) for number in range(200)])
            two.set_all([(f"before.two.{number}", [number]) for number in range(200)])
            one.set_all([(f"before.one.{number}", GONE) for number in range(0, 200, 3)])
        self.woven: Woven = room.woven("n3")
        self.woven.ready()

    def client(self, name: str) -> Speaker:
        return self.room.members[name].client()

    def everywhere(self, path: str, value: Any) -> None:
        """Wait until each member has that value."""
        for name in self.room.members:
            until(lambda: self.at(name, path) == value, lambda: f"{path} at {name}: {self.at(name, path)!r}", 10)  # noqa: B023  # ends before the next

    def at(self, name: str, path: str) -> Any:
        with self.client(name) as client:
            return client.get(path)


@pytest.fixture(scope="module")
def guest(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    with Room(tmp_path_factory.mktemp(version), version, is_split=True) as room:
        yield Guest(room)
        room.all_live()


@pytest.mark.proves("CLN-020", "PNG-032")
def test_a_node_of_weft_joins_real_servers_and_has_what_they_have(guest: Guest) -> None:
    whole = guest.room.equal(5, tombstones=True)
    assert 67 == sum(path[:2] == ("before", "one") and value is GONE for path, (value, _) in whole.items())
    assert (400, "hello") == (sum(path[:1] == ("before",) for path in whole), whole[Path()][0])
    assert guest.woven.seconds_between("store.link-up", "store.joined") <= JOIN_S
    guest.room.all_live()


@pytest.mark.proves("COD-001", "COD-002")
@pytest.mark.parametrize("writer", ["n3", "n1", "n2"])
def test_every_kind_of_value_arrives_everywhere_whoever_writes_it(guest: Guest, version: str, writer: str) -> None:
    values = dict(VALUES)
    if version == "mid" and writer != "n3":
        del values["path"]  # 0.70 takes paths from other servers, and none from clients
    with guest.client(writer) as client:
        client.set_all([(f"kinds.{writer}.{name}", value) for name, value in values.items()])
        client.set_all([(f"kinds.{writer}.{name}", GONE) for name in ("null", "list")])
    whole = guest.room.equal(5, tombstones=True)
    for name, value in values.items():
        found = whole[Path(("kinds", writer, name))][0]
        expected = GONE if name in ("null", "list") else value
        assert (expected, type(expected)) == (found, type(found)) or (name, round(found, 6)) == ("float", 1.1)


@pytest.mark.proves("STO-006")
def test_three_writers_of_one_entry_are_known_in_their_order(guest: Guest) -> None:
    for round_ in range(3):
        for turn, writer in enumerate(["n1", "n3", "n2"]):
            with guest.client(writer) as client:
                client.set("turns", [round_, turn])
            guest.everywhere("turns", [round_, turn])
    chains = {}
    for name in guest.room.members:
        with guest.client(name) as client:
            chains[name] = [node for node, _ in client.tree("turns")[Path(("turns",))].chain]
    assert [["n2", "n3", "n1"]] * len(chains) == list(chains.values())
    with guest.client("n3") as client:
        client.delete("turns")
    guest.everywhere("turns", GONE)


def in_step(one: Speaker, two: Speaker) -> None:
    """Let two real servers count alike: each answer of theirs takes a number."""
    for _ in range(20):
        ahead = one.ask("get_tock")["tock"] - two.ask("get_tock")["tock"]
        if not ahead:
            return
        for _ in range(abs(ahead)):
            (two if ahead > 0 else one).ask("get_tock")
    pytest.fail("they never count alike")


def race(guest: Guest, ours: list[tuple[str, Any]], theirs: list[tuple[str, Any]]) -> list[tuple[int, int]]:
    """Both servers are told at once, and hear of one another a tenth of a second later; the numbers of the changes."""
    names = ("n1", "n2")
    for name in names:
        guest.room.wires[name].delay_s = 0.1
    with guest.client("n1") as one, guest.client("n2") as two:
        in_step(one, two)
        sent = [
            [
                client.send(
                    "delete_value" if value is GONE else "set_value",
                    path=Path.of(path),
                    nchain=1,
                    **({} if value is GONE else {"value": value}),
                )
                for path, value in pairs
            ]
            for client, pairs in ((one, ours), (two, theirs))
        ]
        answers = [client.answers(numbers) for client, numbers in zip((one, two), sent, strict=True)]
    for name in names:
        guest.room.wires[name].delay_s = 0.0
    return [(one["tock"], two["tock"]) for one, two in zip(*answers, strict=True)]


@pytest.mark.proves("STO-014")
def test_what_two_real_servers_would_hold_against_one_another_for_ever_is_repaired(guest: Guest) -> None:
    tocks = race(
        guest,
        [(f"race.{number}", f"one {number}") for number in range(RACES)],
        [(f"race.{number}", f"two {number}") for number in range(RACES)],
    )
    assert sum(one == two for one, two in tocks) > RACES // 2, "or there would be nothing to repair"
    guest.room.equal(4 * CYCLE_S)


@pytest.mark.proves("STO-014", "STO-015")
def test_what_one_real_server_deletes_and_another_writes_is_the_same_everywhere_in_the_end(guest: Guest) -> None:
    tocks = race(
        guest,
        [(f"race.{number}", f"anew {number}" if number % 2 else GONE) for number in range(RACES)],
        [(f"race.{number}", GONE if number % 2 else f"anew {number}") for number in range(RACES)],
    )
    assert RACES == len(tocks)
    guest.room.equal(4 * CYCLE_S)


@pytest.mark.proves("HEA-003", "HEA-011", "PNG-034")
def test_halves_that_wrote_for_themselves_are_one_again_and_nobody_misses_anything(guest: Guest, soak: bool) -> None:
    room, count = guest.room, SPLIT_WRITES if soak else SPLIT_WRITES // 20
    room.woven("n5", right=True).ready()
    room.bridge.cut()
    for side, names in (("left", ("n1", "n3")), ("right", ("n2", "n5"))):
        for name in names:
            with guest.client(name) as client:
                client.set_all([(f"split.{number}", f"{side} {number}") for number in range(count)])
                client.set_all([(f"split.{side}.{name}.{number}", number) for number in range(count // 10)])
                client.set_all([(f"split.{number}", GONE) for number in range(0, count, 7)])
    room.bridge.mend()
    whole = room.equal(HEAL_S * (3 if soak else 1))
    assert 4 * (count // 10) == sum(len(path) == 4 and path[0] == "split" for path in whole)
    assert count - len(range(0, count, 7)) == sum(len(path) == 2 and path[0] == "split" for path in whole)
    room.all_live()


def spoilt(guest: Guest) -> set[Path]:
    """Entries that releases before 0.71 lose when they load from one another: a change in their chain is a deletion."""
    found = set()
    with guest.client("n1") as client:
        deleted = client.ask("get_state", deleted=True)["deleted"]
        gone = {(node, tick) for node, ranges in deleted.items() for tick in ticks_of(ranges)}
        for path, entry in client.tree().items():
            if entry.value is not GONE and gone.intersection(entry.chain):
                found.add(path)
    return found


@pytest.mark.proves("CLN-021")
def test_a_real_server_that_comes_later_still_has_all_that_lives(guest: Guest, version: str) -> None:
    """Whom it loads from is its choice. From one of its own kind it never gets tombstones, and misses them for ever."""
    expected = guest.room.equal(HEAL_S)
    guest.room.real("n4", right=True).ready()
    with guest.client("n4") as client:
        found = living(client.whole())
    lost = {path: held for path, held in expected.items() if found.get(path) != held}
    assert {} == lost if version == "new" else lost.keys() <= spoilt(guest)
    guest.room.all_live()
