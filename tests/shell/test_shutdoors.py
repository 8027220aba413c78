"""Doors that refuse a node: how it finds out, and how seldom it knocks there (SEC-052)."""

import asyncio
import socket

import pytest
import zmq

from weft.base.keys import Binding, KeyTable
from weft.node.handshake import PUBLISH
from weft.shell.doorstep import knock
from weft.shell.keys import Keys
from weft.shell.shutdoors import Place, ShutDoors
from weft.shell.sockets import Credentials
from weft.shell.zap import Gatekeeper

DOOR = "10.0.0.1:27507"


def pauses(share: float, count: int) -> list[float]:
    """How long it is not knocked at after each refusal."""
    doors, now, found = ShutDoors(lambda least, most: least + share * (most - least)), 100.0, []
    for _ in range(count):
        doors.note(DOOR, "key-refused", now)
        waits = next(seconds for seconds in range(1, 1_000) if doors.is_due(DOOR, now + seconds / 10)) / 10
        found.append(waits)
        now += waits
    return found


@pytest.mark.proves("SEC-052", part="a refused client backs off, to 60 s, with spread")
def test_the_pause_doubles_to_a_minute_and_is_spread() -> None:
    assert [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 50.0, 50.0] == pauses(0.5, 8)
    assert [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 40.0] == pauses(0.0, 7)
    assert [1.2, 2.4, 4.8, 9.6, 19.2, 38.4, 60.0, 60.0] == pauses(1.0, 8)


def test_a_door_is_shut_until_it_lets_in_and_says_so_once() -> None:
    doors = ShutDoors()
    assert [True, False, False] == [doors.note(DOOR, "key-refused", at) for at in (0.0, 2.0, 5.0)]
    assert (True, 3) == (doors.is_shut(DOOR), doors.facts(5.0)[0]["tries"])
    assert [True, False] == [doors.note(DOOR, "ok", 30.0), doors.note(DOOR, "ok", 31.0)]
    assert (False, []) == (doors.is_shut(DOOR), doors.facts(31.0))
    assert (False, True) == (doors.is_due(DOOR, 90.0), doors.is_due(DOOR, 91.0))


def test_where_nobody_is_any_more_nobody_refuses() -> None:
    doors = ShutDoors()
    doors.note(DOOR, "other-key", 0.0)
    assert (True, False) == (doors.note(DOOR, "away", 2.0), doors.is_shut(DOOR))


def test_when_keys_change_everybody_is_tried_at_once() -> None:
    doors = ShutDoors()
    for at in (0.0, 2.0, 5.0, 10.0):
        doors.note(DOOR, "key-refused", at)
    doors.note("10.0.0.2:27507", "ok", 10.0)
    doors.forget()
    assert [True, True] == [doors.is_due(where, 10.0) for where in (DOOR, "10.0.0.2:27507")]
    assert doors.is_shut(DOOR)


def test_no_more_than_1024_doors_are_remembered() -> None:
    doors = ShutDoors()
    for number in range(1_100):
        doors.note(f"10.0.0.1:{number}", "key-refused", 0.0)
    assert (1_024, False, True) == (
        len(doors.facts(0.0)),
        doors.is_shut("10.0.0.1:75"),
        doors.is_shut("10.0.0.1:76"),
    )


@pytest.mark.proves(
    "SEC-052", part="it learns why: its key is not known there or may not come in, or another's was expected"
)
def test_a_knock_says_who_is_there_and_whether_it_lets_us_in() -> None:
    server, member, service, stranger = (Keys(*(each.decode() for each in zmq.curve_keypair())) for _ in range(4))
    table = KeyTable.of(
        [
            (b"m" * 16, Binding(curve=(member.public,), name="pi-7", roles=("sensor",))),
            (b"s" * 16, Binding(curve=(service.public,), name="thermo", roles=("service",))),
        ]
    )

    async def main() -> None:
        context = zmq.Context()
        keeper = Gatekeeper(context, table)
        keeper.open()
        router, published = context.socket(zmq.ROUTER), context.socket(zmq.PUB)
        credentials = Credentials(server, table)
        credentials.serve(router)
        credentials.serve(published, PUBLISH)
        control, updates = (f"127.0.0.1:{made.bind_to_random_port('tcp://127.0.0.1')}" for made in (router, published))
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))  # and nobody listens: a free port another process may take meanwhile
        nobody = f"127.0.0.1:{taken.getsockname()[1]}"
        right, wrong = (server.public,), (stranger.public,)

        async def heard(keys: Keys, servers: tuple[str, ...]) -> list[str]:
            places = [
                Place(control, "DEALER", servers),
                Place(updates, "SUB", servers),
                Place(nobody, "DEALER", servers),
            ]
            found = await knock(context, places, keys)
            return [found[place.endpoint] for place in places]

        assert ["ok", "ok", "away"] == await heard(member, right)
        assert ["ok", "ok", "away"] == await heard(member, wrong + right)
        assert ["ok", "key-refused", "away"] == await heard(service, right)
        assert ["key-refused", "key-refused", "away"] == await heard(stranger, right)
        assert ["other-key", "other-key", "away"] == await heard(member, wrong)
        taken.close()
        for made in (router, published):
            made.close(0)
        keeper.close()
        context.term()

    asyncio.run(main())
