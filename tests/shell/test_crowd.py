"""Who connects and proves nothing: how many of them there are at most, and that a known key comes in beside them (SEC-053)."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from tests.patience import PATIENCE_S
from weft.base.keys import Binding, KeyTable
from weft.lake.files import LocalFiles
from weft.shell.crowd import Crowd, Knock, Spoken, hang_up, peer_of, spoken
from weft.shell.keys import Keys
from weft.shell.sockets import Credentials, connect_with
from weft.shell.zap import Gatekeeper

OPEN = Path("/proc/self/fd")
HERE, THERE = "10.0.0.1", "10.0.0.2"


STRANGE, PROVED, LOUD = Spoken(234, 64), Spoken(301, 700), Spoken(64, 4_097)


def knock(number: int, address: str = HERE, door: int = 1) -> Knock:
    return Knock(door, number, (address, 40_000 + number))


def crowd_of(per_address: int = 64, in_all: int = 512, **others: Spoken | None) -> Crowd:
    """All are strangers that wait, but for these: by the number of the descriptor."""
    return Crowd(per_address, in_all, lambda knock: others.get(f"_{knock.fd}", STRANGE))


@pytest.mark.proves("SEC-053", part="connections without a proof, of one address and in all")
def test_beyond_64_of_an_address_and_512_in_all_who_has_waited_longest_goes() -> None:
    crowd = crowd_of()
    assert [None] * 64 == [crowd.came(knock(number), 0.0) for number in range(64)]
    assert knock(0) == crowd.came(knock(64), 0.0)
    assert knock(1) == crowd.came(knock(65), 0.0)
    others = [(n, f"10.0.1.{n % 200}") for n in range(100, 548)]
    assert [None] * 448 == [crowd.came(knock(number, address), 0.0) for number, address in others]
    assert 512 == len(crowd)
    assert knock(2) == crowd.came(knock(600, THERE), 0.0)
    assert (63, 1, 512) == (crowd.of(HERE), crowd.of(THERE), len(crowd))


@pytest.mark.proves("SEC-053", part="a descriptor that belongs to a file by now stays with its file")
def test_a_file_that_has_the_number_of_a_connection_by_now_is_kept_open_and_locked_by_nobody(tmp_path: Path) -> None:
    files = LocalFiles()
    for _ in range(3):
        with files.alone_in(tmp_path):
            (number,) = (int(path.name) for path in OPEN.iterdir() if path.resolve() == tmp_path.resolve())
            before = len(list(OPEN.iterdir()))
            assert (None, None, False) == (peer_of(number), spoken(knock(number)), hang_up(knock(number)))
            assert before == len(list(OPEN.iterdir()))
    with files.alone_in(tmp_path, patience_s=0):
        assert None is peer_of(1 << 20), "a number that nothing has"


def test_who_has_proved_a_key_or_has_gone_is_none_of_them() -> None:
    crowd = crowd_of(2, _1=PROVED, _3=None)
    for number in (1, 2, 3):
        assert None is crowd.came(knock(number), 0.0)
    crowd.went(1, 3)
    assert None is crowd.came(knock(4), 0.0)
    assert knock(2) == crowd.came(knock(5), 0.0)
    assert 2 == crowd.of(HERE)


def test_who_has_said_more_than_a_handshake_has_is_named_once() -> None:
    crowd = crowd_of(_1=PROVED, _2=LOUD, _3=None)
    for number in range(5):
        crowd.came(knock(number), 0.0)
    assert ([knock(2)], []) == (crowd.loud(), crowd.loud())
    assert 2 == crowd.of(HERE)


def test_after_six_seconds_libzmq_has_ended_what_has_proved_nothing() -> None:
    crowd = crowd_of(2)
    crowd.came(knock(1), 0.0)
    crowd.came(knock(2), 5.0)
    assert None is crowd.came(knock(3), 6.0)
    assert knock(2) == crowd.came(knock(4), 6.0)


def test_a_door_that_is_closed_takes_its_connections_along() -> None:
    crowd = crowd_of()
    for number in range(10):
        crowd.came(knock(number, door=number % 2), 0.0)
    crowd.leave(1)
    assert (5, 5) == (len(crowd), crowd.of(HERE))


STEPS = st.one_of(
    st.tuples(st.just("came"), st.integers(0, 9), st.sampled_from([HERE, THERE])),
    st.tuples(st.just("went"), st.integers(0, 9), st.just("")),
    st.tuples(st.just("proved"), st.integers(0, 9), st.just("")),
    st.tuples(st.just("later"), st.integers(0, 9), st.just("")),
)


@given(st.lists(STEPS, max_size=80))
def test_there_are_never_more_than_may_be_and_only_who_is_there_is_sent_away(steps: list[tuple[str, int, str]]) -> None:
    proved: set[int] = set()
    crowd, at = Crowd(3, 4, lambda knock: PROVED if knock.fd in proved else STRANGE), 0.0
    for what, number, address in steps:
        if what == "came":
            proved.discard(number)
            gone = crowd.came(knock(number, address), at)
            assert gone is None or (gone != knock(number, address) and gone.fd not in proved)
        elif what == "went":
            crowd.went(1, number)
        elif what == "proved":
            proved.add(number)
        else:
            at += number
        assert crowd.of(HERE) <= 3
        assert crowd.of(THERE) <= 3
        assert crowd.of(HERE) + crowd.of(THERE) == len(crowd) <= 4


def test_a_descriptor_that_is_anothers_by_now_is_left_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client, server.accept()[0] as taken:
            peer = peer_of(taken.fileno())
            assert client.getsockname() == peer
            assert not hang_up(Knock(1, taken.fileno(), ("127.0.0.1", 1)))
            client.sendall(b"there")
            assert b"there" == taken.recv(10)
            assert Spoken(0, 5) == spoken(Knock(1, taken.fileno(), client.getsockname()))
            assert hang_up(Knock(1, taken.fileno(), client.getsockname()))
            assert b"" == client.recv(10)
            fd = taken.fileno()
        gone = Knock(1, fd, ("127.0.0.1", 1))
        assert (None, False, None) == (peer_of(fd), hang_up(gone), spoken(gone))


@pytest.mark.proves("SEC-053", part="a key that is known comes in while strangers hold as many connections as they can")
def test_a_crowd_that_holds_on_ends_its_own_connections_and_a_known_key_comes_in() -> None:
    server, known = (Keys(*(each.decode() for each in zmq.curve_keypair())) for _ in range(2))
    table = KeyTable.of([(b"k" * 16, Binding(curve=(known.public,), name="pi-7", roles=("sensor",)))])

    async def main() -> None:
        context, outside = zmq.Context(), zmq.Context()
        keeper = Gatekeeper(context, table)
        keeper.open()
        bound, own = context.socket(zmq.ROUTER), outside.socket(zmq.DEALER)
        Credentials(server, table).serve(bound)
        keeper.watch(bound)
        port = bound.bind_to_random_port("tcp://127.0.0.1")
        strangers = []
        try:
            async with asyncio.timeout(PATIENCE_S):
                strangers += [await _one_more(port, keeper, number - 63) for number in range(100)]
                connect_with(own, known, server.public)
                own.connect(f"tcp://127.0.0.1:{port}")
                own.send(b"hello")
                await _until(lambda: bound.poll(0) > 0)
                strangers.pop().close()
                await _until(lambda: keeper.decided["no-handshake"] > 0)
            assert b"hello" == bound.recv_multipart()[1]
            assert keeper.decided.pop("crowd") in (36, 37)
            assert {"ok": 1, "no-handshake": 1} == keeper.decided, "each stranger is counted once"
            assert "127.0.0.1" == keeper.last_refused
            assert [True] * 36 == [_is_ended(each) for each in strangers[:36]]
        finally:
            for each in strangers:
                each.close()
            own.close(0)
            keeper.close()
            bound.close(0)
            context.term()
            outside.term()

    asyncio.run(main())


GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"CURVE".ljust(20, b"\0") + bytes(32)
ANNOUNCED = b"\x06" + (1 << 20).to_bytes(8, "big")
"""The head of a command of a megabyte."""


@pytest.mark.proves(
    "SEC-053", part="bytes without a proof: whoever says more than a handshake has is cut off, and counted"
)
def test_a_stranger_who_announced_a_megabyte_was_listened_to_until_the_handshake_was_over() -> None:
    server, known = (Keys(*(each.decode() for each in zmq.curve_keypair())) for _ in range(2))
    table = KeyTable.of([(b"k" * 16, Binding(curve=(known.public,), name="pi-7", roles=("sensor",)))])

    async def main() -> None:
        context, outside = zmq.Context(), zmq.Context()
        keeper = Gatekeeper(context, table)
        keeper.open()
        bound, own = context.socket(zmq.ROUTER), outside.socket(zmq.DEALER)
        bound.setsockopt(zmq.HANDSHAKE_IVL, 0)  # nothing else ends it
        Credentials(server, table).serve(bound)
        keeper.watch(bound)
        port = bound.bind_to_random_port("tcp://127.0.0.1")
        connect_with(own, known, server.public)
        own.connect(f"tcp://127.0.0.1:{port}")
        try:
            async with asyncio.timeout(PATIENCE_S):
                reader, stranger = await asyncio.open_connection("127.0.0.1", port)
                stranger.write(GREETING + ANNOUNCED + bytes(5_000))
                own.send(bytes(100_000))
                await _until(lambda: bound.poll(0) > 0 and keeper.decided["too-much"] > 0)
                await reader.read()
                stranger.close()
                while bound.poll(0):
                    bound.recv_multipart()
                own.send(b"still here")
                await _until(lambda: bound.poll(0) > 0)
                await _until(lambda: not len(keeper.crowd))
                with socket.create_connection(("127.0.0.1", port)):
                    await _until(lambda: len(keeper.crowd) == 1)
                await _until(lambda: not len(keeper.crowd))
            assert b"still here" == bound.recv_multipart()[1]
            assert {"ok": 1, "too-much": 1, "no-handshake": 1} == keeper.decided, "each stranger is counted once"
            assert ("127.0.0.1", 0) == (keeper.last_refused, len(keeper.crowd))
        finally:
            own.close(0)
            keeper.close()
            bound.close(0)
            context.term()
            outside.term()

    asyncio.run(main())


def _is_ended(link: socket.socket) -> bool:
    """Whether the other side has ended it, behind its greeting."""
    link.settimeout(0.05)
    try:
        while link.recv(100):
            continue
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110  # sockets wake no event
        await asyncio.sleep(0.001)  # tidy: a monitor wakes no event; the caller has a bound


async def _one_more(port: int, keeper: Gatekeeper, gone: int) -> socket.socket:
    """A stranger who connects and says nothing; when so many have been sent away."""
    made = socket.create_connection(("127.0.0.1", port))
    await _until(lambda: keeper.decided["crowd"] >= gone)
    return made
