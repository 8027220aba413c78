"""Real MoaT-KV servers and programs as guests of Weft: it founds, they join; a broker that fails; upstream's own client.

Meets the newest release, or those of the variable WEFT_MOAT, as `test_moat` does; the tests of one release share a room.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path as File
from typing import Any, Final

import pytest

from tests.interop.moat.peers import CYCLE_S, Program, python_of, until, versions
from tests.interop.moat.speaker import GONE, Path, RefusedError, Speaker
from tests.interop.moat.world import Room
from tests.patience import PATIENCE_S

BROKEN_S: Final = 3.0
RETURN_S: Final = 20.0  # an attempt to connect comes up to four seconds later, and the machine may be busy


@pytest.fixture(scope="module", params=versions())
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def house(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """A store that a node of Weft founded, with a second one."""
    with Room(tmp_path_factory.mktemp(f"house-{version}"), version) as room:
        room.woven("n3", founds="home").ready()
        room.woven("n5").ready()
        yield room
        room.all_live()


def speaker(room: Room, name: str) -> Speaker:
    return room.members[name].client()


@pytest.mark.proves("LNK-002", "HEA-006")
def test_nodes_find_together_by_themselves_after_the_broker_was_away(house: Room) -> None:
    house.left.kill()
    returns_at = time.monotonic() + BROKEN_S
    for name in ("n3", "n5"):
        with speaker(house, name) as client:
            client.set_all([(f"apart.{name}.{number}", number) for number in range(10)])
            client.set("apart.both", name)
    until(
        lambda: all(not member.status()["has_broker"] for member in house.woven_ones()), "both have noticed", BROKEN_S
    )
    until(lambda: time.monotonic() >= returns_at, "so long it is away")
    house.left.start()
    whole = house.equal(RETURN_S, tombstones=True)
    assert 21 == sum(path[:1] == ("apart",) for path in whole)


@pytest.mark.proves("CLN-021", "PNG-032", "PNG-034")
def test_a_real_server_joins_what_weft_has_founded_and_lacks_nothing(house: Room) -> None:
    with speaker(house, "n3") as client:
        client.set_all([(f"early.{number}", {"number": number}) for number in range(300)])
        client.set_all([(f"early.{number}", GONE) for number in range(0, 300, 3)])
    house.equal(2 * CYCLE_S, tombstones=True)
    house.real("n1").ready()
    with speaker(house, "n1") as client:
        assert not client.missing(), "at once"
    whole = house.equal(2 * CYCLE_S, tombstones=True)
    assert 100 == sum(path[:1] == ("early",) and value is GONE for path, (value, _) in whole.items())
    with speaker(house, "n1") as client:
        assert {"number": 1} == client.get("early.1")
        client.set("early.1", "theirs")
    whole = house.equal(2 * CYCLE_S, tombstones=True)
    assert ("theirs", "n1") == (whole[Path.of("early.1")][0], whole[Path.of("early.1")][1][0])
    house.all_live()


def kv(room: Room, *words: str, noun: str = "data") -> list[str]:
    """Upstream's own command line, at a node of Weft."""
    port = str(room.members["n3"].port)
    return [python_of("new"), "-m", "moat", "kv", "-h", "127.0.0.1", "-p", port, noun, *words]


NEWEST: Final = [version for version in versions() if version == "new"]
"""The one release that has a command line in its environment."""


@pytest.mark.proves("CLN-001", "CLN-002", "CLN-003")
@pytest.mark.parametrize("version", NEWEST, indirect=True, scope="module")
def test_upstreams_command_line_works_at_a_node_of_weft(house: Room) -> None:
    for words, said in (
        (("tool.a", "set", "-v", ":", "text"), ""),
        (("tool.a", "get"), "'text'\n"),
        (("tool.b", "set", "-e", ":", "42"), ""),
        (("tool", "list"), "- !P a\n- !P b\n"),
        (("tool", "get", "-r"), "- !P a: text\n- !P b: 42\n"),
        (("tool.a", "delete"), ""),
        (("tool.a", "get"), ""),
    ):
        ran = subprocess.run(kv(house, *words), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (0, said) == (ran.returncode, ran.stdout), (words, ran.stderr[-1500:])


@pytest.mark.proves("ADM-010", "ADM-011")
@pytest.mark.parametrize("version", NEWEST, indirect=True, scope="module")
def test_types_and_codecs_of_upstreams_command_line_work_at_a_node_of_weft(version: str, tmp_path: File) -> None:
    """No real server is there: a type with a schema would end it."""
    with Room(tmp_path, version) as room:
        room.woven("n3", founds="home").ready()
        room.woven("n5").ready()
        use_types_and_codecs(room)


def use_types_and_codecs(house: Room) -> None:
    place = house.place
    for name, text in (
        ("schema", '{"type": "number", "maximum": 100}'),
        ("encode", "return 'on' if value else 'off'"),
        ("decode", "return value == 'on'"),
        ("rest", "name: switch"),
    ):
        (place / name).write_text(text, "utf-8")
    schema, encode, decode, rest = (str(place / name) for name in ("schema", "encode", "decode", "rest"))
    codec = ("-e", encode, "-d", decode, "-D", rest, "-i", "'on'", "True", "-o", "False", "'off'")
    for noun, words, is_done, said in (
        ("type", ("set", "-S", schema, "-g", "1", "-g", "99.5", "-b", "101", "percent"), True, ""),
        ("type", ("set", "-S", schema, "-g", "1", "-g", "101", "-b", "'x'", "wrong"), False, ""),
        ("type", ("match", "-t", "percent", "typed.#"), True, ""),
        ("data", ("typed.a", "set", "-e", ":", "50"), True, ""),
        ("data", ("typed.a", "set", "-e", ":", "101"), False, ""),
        ("data", ("typed.a", "get"), True, "50\n"),
        ("codec", ("set", *codec, "lamp"), True, ""),
        ("codec", ("list", ":"), True, "lamp\n"),
        ("codec", ("convert", "-c", "lamp", "panel", "lamps.#"), True, None),
    ):
        ran = subprocess.run(
            kv(house, *words, noun=noun), capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert (words, is_done) == (words, ran.returncode == 0), ran.stderr[-1500:]
        assert not is_done or said in (None, ran.stdout), (words, ran.stdout)
    house.equal(2 * CYCLE_S)
    port = f"127.0.0.1:{house.members['n5'].port}"
    ours: list[tuple[tuple[str, ...], bool, str | None]] = [
        (("set", "lamps.hall", "-v", "on", "--group", "panel"), True, ""),
        (("get", "lamps.hall"), True, "true\n"),
        (("get", "lamps.hall", "--group", "panel"), True, "'on'\n"),
        (("set", "typed.b", "101"), False, ""),
        (("store", "type", "percent", "--json"), True, None),
    ]
    for command, is_done, said in ours:
        line = [sys.executable, "-m", "weft.cli.main", *command, "--node", port]
        ran = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert (command, is_done) == (command, ran.returncode == 0), ran.stderr
        assert said in (None, ran.stdout)


@pytest.mark.proves("CLN-010")
@pytest.mark.parametrize("version", NEWEST, indirect=True, scope="module")
def test_upstreams_monitor_shows_what_changes_at_a_node_of_weft(house: Room) -> None:
    watching = Program("monitor", house.place, kv(house, "seen", "monitor"), PYTHONUNBUFFERED="1")
    with watching, speaker(house, "n5") as client:

        def is_seen() -> bool:
            client.set("seen.a", 5)
            client.delete("seen.a")
            return watching.said().count("path: !P seen.a") >= 2

        until(is_seen, watching.said)
        assert "value: 5" in watching.said()


@pytest.mark.proves("CLN-002", "CLN-003", "CLN-005", "CLN-010")
def test_clients_of_real_servers_hear_the_same_from_a_node_of_weft(house: Room) -> None:
    said = {name: conversation(house, name) for name in ("n1", "n3")}
    assert said["n1"] == said["n3"]


def conversation(room: Room, name: str) -> list[Any]:
    """What a server answers, as far as it is not about numbers of its own."""
    said: list[Any] = []
    with speaker(room, name) as client, speaker(room, name) as watcher:
        items = watcher.stream("watch", path=Path((name,)), fetch=True, nchain=1)
        assert "uptodate" == next(items)["state"]
        said.append(client.set(f"{name}.a", 1, nchain=1)["changed"])
        said.append(client.set(f"{name}.a", 1, idem=True)["changed"])
        said.append(client.set(f"{name}.a", 2)["prev"])
        said.append(client.set(f"{name}.b.c", [3])["changed"])
        said.append(refusal(client, f"{name}.a", chain=None))
        said.append(sorted(client.ask("enum", path=Path((name,)), empty=True)["result"]))
        said.append(refusal(client, f"{name}.new", chain={"node": name, "tick": 1}))
        said.append(client.delete(f"{name}.a")["prev"])
        said.append(client.delete(f"{name}.none")["changed"])
        said += [(tuple(item["path"])[1:], item.get("value", GONE)) for _, item in zip(range(4), items, strict=False)]
    return said


def refusal(client: Speaker, path: str, **more: Any) -> str:
    with pytest.raises(RefusedError) as refused:
        client.set(path, 3, **more)
    return refused.value.text.partition("(")[0]


@pytest.mark.proves("PNG-037", "DEL-004")
def test_what_all_deleters_have_seen_is_forgotten_by_real_servers_and_by_weft_and_stays_away(house: Room) -> None:
    with speaker(house, "n3") as client:
        client.ask("set_internal", path=Path.of("actor.del"), value={"nodes": ["n1", "n3"]})
        client.set_all([(f"purged.{number}", number) for number in range(50)])
        client.set_all([(f"purged.{number}", GONE) for number in range(50)])
    house.equal(2 * CYCLE_S, tombstones=True)

    def left() -> dict[str, int]:
        return {name: sum(path[:1] == ("purged",) for path in whole) for name, whole in house.whole().items()}

    until(lambda: set(left().values()) == {0}, lambda: f"tombstones left: {left()}", 60)
    house.equal(2 * CYCLE_S)
    assert {0} == set(left().values())
    house.all_live()
