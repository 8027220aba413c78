"""A running root follows servers of the Clone pattern: mute ones, late ones, some that lose words or begin anew."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.clone.peers import Server
from tests.clone.rig import Place, run, until
from weft.cores.clone.messages import KeyRefused, ServerFollowed, ServerLost
from weft.cores.clone.states import State
from weft.shell.blocks import free_blocks


def held(place: Place) -> dict[str, bytes]:
    return {key: value for key, value in place.pairs.items() if key.startswith("/guide/")}


def told(server: Server) -> dict[str, bytes]:
    return {"/guide/" + key.decode().lstrip("/"): value for key, (_, _, value) in server.pairs.items()}


def kinds(place: Place) -> list[type]:
    watched = (ServerFollowed, ServerLost, KeyRefused)
    return [type(event) for event in place.told if isinstance(event, watched)]


def scene(play: Callable[[Place, int], Awaitable[None]], **chp: Any) -> None:
    (port,) = free_blocks(1, 20_000)

    async def with_port(place: Place) -> None:
        await play(place, port)

    run(with_port, **{"import": f"127.0.0.1:{port}", "import_prefix": "/guide/"} | chp)


async def is_equal(place: Place, server: Server) -> None:
    await until(lambda: place.clone.state is State.FOLLOWING and told(server) == held(place))


@pytest.mark.proves("CFG-060", "CFG-064")
def test_a_primary_that_is_mute_until_its_partner_has_come_is_asked_again() -> None:
    async def play(place: Place, port: int) -> None:
        with Server(port, mute=1) as server:
            server.set("/client/a", b"1")
            await is_equal(place, server)
            assert server.asked > 1
            for number in range(100):
                server.set(f"/client/{number % 7}", b"%d" % number)
            server.set("/client/3", b"")
            await is_equal(place, server)
        assert [ServerFollowed] == kinds(place)

    scene(play)


@pytest.mark.proves("CFG-064")
def test_a_late_answer_to_a_question_that_was_given_up_is_not_taken_for_another() -> None:
    async def play(place: Place, port: int) -> None:
        with Server(port, late_s=1.2) as server:
            server.set("/client/a", b"1")
            server.set("/client/b", b"2", ttl=600)
            await is_equal(place, server)
            assert (2, 1) == (server.asked, place.clone.counters.snapshots)
        assert place.pairs["/guide/client/b"] == b"2"

    scene(play, serves=False)


@pytest.mark.parametrize("beats", [True, False])
def test_an_update_that_was_lost_is_found_out(beats: bool) -> None:
    async def play(place: Place, port: int) -> None:
        with Server(port, beats=beats) as server:
            server.set("/client/a", b"1")
            await is_equal(place, server)
            server.set("/client/b", b"1")
            await is_equal(place, server)
            server.skip()
            if not beats:  # the next update tells
                server.set("/client/a", b"2")
            await is_equal(place, server)
            assert place.clone.counters.holes > 0

    scene(play)


def test_a_server_that_begins_anew_is_followed_anew() -> None:
    async def play(place: Place, port: int) -> None:
        with Server(port) as server:
            for number in range(9):
                server.set(f"/client/{number}", b"old")
            await is_equal(place, server)
        with Server(port) as server:
            server.set("/client/new", b"1")
            await is_equal(place, server)
        assert {"/guide/client/new": b"1"} == held(place)

    scene(play)


def test_what_somebody_else_wrote_under_the_prefix_goes_with_the_next_snapshot() -> None:
    async def play(place: Place, port: int) -> None:
        place.write("/guide/mine", b"1")
        place.write("/other", b"1")
        with Server(port) as server:
            server.set("/client/a b", b"1")
            server.set("7813", b"1")
            await until(lambda: {"/guide/7813": b"1"} == held(place))
        assert {"/guide/7813": b"1", "/other": b"1"} == place.pairs
        assert KeyRefused in kinds(place)

    scene(play)


def test_two_roots_of_weft_follow_one_another_so() -> None:
    async def play(place: Place) -> None:
        source: dict[str, Any] = {"import": f"127.0.0.1:{place.clients}", "import_prefix": "/guide/"}
        follower = Place(serves=False, **source)
        try:
            place.write("/client/a", b"1")
            await until(lambda: {"/guide/client/a": b"1"} == held(follower))
            place.write("/client/a", b"2")
            place.write("/client/b", b"3")
            await until(lambda: {"/guide/client/a": b"2", "/guide/client/b": b"3"} == held(follower))
        finally:
            follower.close()

    run(play, epoch=3)
