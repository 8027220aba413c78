"""Datagrams of a closed fabric: who lacks its secret, or says again what was said, is dropped and counted (SEC-015, BEA-007)."""

import asyncio
import socket

import pytest

from tests.shell.ports import free_port
from tests.shell.test_links import hear
from weft.shell.beaconseal import Seal
from weft.shell.links import Links
from weft.wire import beacon
from weft.wire.beacon import Beacon

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
SAID = b"WEFTN1 lab pi " + b"0f" * 16 + b" sensor 27510 3"
SEALED = SAID + b" seq=1 mac=bc5f7c3d"
NODE = bytes.fromhex("0f" * 16)


def test_what_is_sealed_is_read_as_before_by_who_has_no_secret() -> None:
    sealed = Seal(KEY).seal(SAID)
    assert sealed.startswith(SAID + b" seq=1 mac=")
    assert Beacon("lab", "pi", NODE, "sensor", 27_510, 3) == beacon.decode([sealed])


@pytest.mark.proves(
    "SEC-015", part="with keys a beacon has `mac` and `seq`: another's, an altered and a repeated one are not heard"
)
def test_a_datagram_is_heard_once_and_only_under_the_own_secret() -> None:
    speaker, listener, stranger = Seal(KEY), Seal(KEY), Seal(OTHER_KEY)
    first, second = speaker.seal(SAID), speaker.seal(SAID)
    assert "" == listener.fault(first)
    assert "said-before" == listener.fault(first)
    assert "" == listener.fault(second)
    assert "said-before" == listener.fault(first)
    assert ["bad-mac"] * 4 == [listener.fault(each) for each in (SAID, SEALED, stranger.seal(SAID), b"")]
    altered = speaker.seal(SAID)
    flipped = [bytes([*altered[:at], altered[at] ^ 1, *altered[at + 1 :]]) for at in range(len(altered))]
    assert {"bad-mac"} == {listener.fault(each) for each in flipped}
    assert "" == listener.fault(altered)
    assert "bad-beacon" == listener.fault(speaker.seal(b"WEFTN1 lab"))


def test_a_start_of_a_node_begins_to_count_anew_and_yesterdays_is_over() -> None:
    yesterday, today, listener = Seal(KEY), Seal(KEY), Seal(KEY)
    recorded = [yesterday.seal(SAID) for _ in range(9)]
    assert "" == listener.fault(today.seal(SAID.replace(b" 3", b" 4")))
    assert {"said-before"} == {listener.fault(each) for each in recorded}


@pytest.mark.proves("SEC-015", part="at a real socket what is not sealed is counted and goes nowhere")
def test_links_with_a_secret_hear_only_who_has_it() -> None:
    async def main() -> None:
        port = free_port(socket.SOCK_DGRAM)
        sides = [Links(lambda: None) for _ in range(3)]
        for side, seal in zip(sides, (Seal(KEY), Seal(KEY), None), strict=True):
            side.seal = seal
            side.listen(port, is_local=True)
        sides[2].send("beacon", b"", [SAID])
        sides[0].send("beacon", b"", [SAID])
        (heard,) = await hear(sides[1], 1)
        assert SAID == beacon.encode(beacon.decode(heard.frames))[0]
        assert {"beacon:bad-mac": 1} == dict(sides[1].dropped)
        assert 2 == len(await hear(sides[2], 2))
        for side in sides:
            side.close()

    asyncio.run(main())
