"""The same facts, asked of libzmq itself, on this machine (SIM-020)."""

from pathlib import Path

import pytest
import zmq

LIMIT = 64


@pytest.mark.proves("SIM-020")
def test_z4_a_dealer_to_nobody_takes_what_its_queue_holds_and_delivers_it_to_whoever_binds_there(
    tmp_path: Path,
) -> None:
    address = f"ipc://{tmp_path}/z4"
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router, context.socket(zmq.DEALER) as dealer:
        for made in (router, dealer):
            made.setsockopt(zmq.LINGER, 0)
        dealer.setsockopt(zmq.SNDHWM, LIMIT)
        dealer.connect(address)
        accepted = 0
        try:
            for number in range(LIMIT + 10):
                dealer.send(b"%d" % number, zmq.NOBLOCK)
                accepted += 1
        except zmq.Again:
            pass
        assert accepted == LIMIT
        router.bind(address)
        assert router.poll(10_000)
        heard: list[int] = []
        while len(heard) < LIMIT and router.poll(5_000):
            heard.append(int(router.recv_multipart()[1]))
        assert heard == list(range(LIMIT))


@pytest.mark.proves("SIM-020")
def test_z3_a_router_with_mandatory_says_that_a_peer_is_not_there() -> None:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.setsockopt(zmq.LINGER, 0)
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        router.bind_to_random_port("tcp://127.0.0.1")
        with pytest.raises(zmq.ZMQError) as caught:
            router.send_multipart([b"nobody", b"x"])
        assert caught.value.errno == zmq.EHOSTUNREACH
