"""Who gets in: the vectors, everything that is nearly a request, and real sockets."""

import asyncio
import json
from pathlib import Path

import pytest
import zmq

from tests.patience import PATIENCE_S
from weft.base.keys import Binding, KeyTable
from weft.node.handshake import decide
from weft.shell.keys import Keys
from weft.shell.sockets import Credentials, connect_with
from weft.shell.zap import Gatekeeper

VECTORS = {
    entry["id"]: entry
    for line in (Path(__file__).parents[1] / "vectors" / "security.jsonl").read_text("utf-8").splitlines()
    if (entry := json.loads(line))["id"].startswith("s-zap")
}
REQUEST = [bytes.fromhex(frame) for frame in VECTORS["s-zap-request"]["frames"]]
KEY = "szs#hp/J=p+C%@ouhp/lzke8P<-A2PtgxmzxZ}%D"
KNOWN = KeyTable.of([(b"k" * 16, Binding(curve=(KEY,), name="pi-7", roles=("sensor",)))])


@pytest.mark.proves("SEC-011")
@pytest.mark.parametrize(("name", "table"), [("s-zap-ok", KNOWN), ("s-zap-no", KeyTable())])
def test_requests_are_decided_as_the_vectors_say(name: str, table: KeyTable) -> None:
    verdict = decide(REQUEST, table)
    assert [bytes.fromhex(frame) for frame in VECTORS[name]["frames"]] == verdict.frames
    assert (VECTORS[name]["means"]["allowed"], "10.0.0.7") == (verdict.allowed, verdict.address)


@pytest.mark.parametrize(
    ("place", "frame", "code", "why"),
    [
        (0, b"2.0", b"500", "malformed"),
        (2, b"", b"400", "domain"),
        (2, b"weft-other", b"400", "domain"),
        (5, b"NULL", b"400", "no-key"),
        (5, b"PLAIN", b"400", "no-key"),
        (6, b"short", b"400", "no-key"),
        (6, b"\0" * 32, b"400", "unknown-key"),
    ],
)
def test_a_request_with_one_wrong_frame_is_refused(place: int, frame: bytes, code: bytes, why: str) -> None:
    request = [*REQUEST[:place], frame, *REQUEST[place + 1 :]]
    verdict = decide(request, KNOWN)
    assert ([b"1.0", b"1", code], b"", why) == (verdict.frames[:3], verdict.frames[4], verdict.why)


@pytest.mark.parametrize("count", range(7))
def test_a_request_that_breaks_off_is_refused(count: int) -> None:
    verdict = decide(REQUEST[:count], KNOWN)
    assert (False, 6, b"") == (verdict.allowed, len(verdict.frames), verdict.frames[4])
    assert [b"1.0", b"1" if count >= 2 else b""] == verdict.frames[:2]


def test_a_request_with_a_frame_too_many_is_refused() -> None:
    assert "no-key" == decide([*REQUEST, b""], KNOWN).why


@pytest.mark.proves("SEC-011", "SEC-013")
def test_a_socket_lets_known_keys_in_and_nobody_when_the_handler_is_gone() -> None:
    server, known, unknown = (Keys(*(each.decode() for each in zmq.curve_keypair())) for _ in range(3))
    table = KeyTable.of([(b"k" * 16, Binding(curve=(known.public,), name="pi-7", roles=("sensor",)))])

    async def main() -> None:
        context, outside = zmq.Context(), zmq.Context()
        keeper = Gatekeeper(context, table)
        keeper.open()
        bound = context.socket(zmq.ROUTER)
        Credentials(server, table).serve(bound)
        port = bound.bind_to_random_port("tcp://127.0.0.1")
        dealers = []

        async def knock(keys: Keys, pinned: Keys) -> None:
            dealer = outside.socket(zmq.DEALER)
            dealer.setsockopt(zmq.LINGER, 0)
            connect_with(dealer, keys, pinned.public)
            dealer.connect(f"tcp://127.0.0.1:{port}")
            dealer.send(b"hello")
            dealers.append(dealer)

        await knock(unknown, server)
        await knock(known, unknown)  # it takes the server for another
        await knock(known, server)
        async with asyncio.timeout(PATIENCE_S):
            while not (bound.poll(0) and keeper.decided["unknown-key"]):  # noqa: ASYNC110  # sockets wake no event
                await asyncio.sleep(0)
        frames = bound.recv_multipart(copy=False)
        assert (known.public, b"hello") == (frames[1].get("User-Id"), frames[1].bytes)
        keeper.close()
        await knock(known, server)
        assert 0 == bound.poll(300)  # longer than all handshakes above took
        for made in (*dealers, bound):
            made.close(0)
        context.term()
        outside.term()

    asyncio.run(main())


@pytest.mark.proves("SEC-022", part="the door admits any key, and no other socket does")
def test_who_joins_has_a_key_that_nobody_knows_and_only_the_door_lets_it_in() -> None:
    request = [b"1.0", b"1", b"weft-join", b"10.0.0.7", b"", b"CURVE", b"k" * 32]
    verdicts = [decide([*request[:2], domain, *request[3:]], KeyTable()).why for domain in (b"weft-join", b"weft")]
    assert ["ok", "unknown-key"] == verdicts
    assert "no-key" == decide([*request[:5], b"NULL"], KeyTable()).why
    assert "no-key" == decide([*request[:6], b"k" * 31], KeyTable()).why
