"""Probes of ports close what they opened, also where one of them cannot be made (SEC-051, SEC-052)."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import zmq

from weft.shell.doorstep import knock
from weft.shell.keys import Keys
from weft.shell.shutdoors import Place
from weft.shell.trying import Entrance, open_entrances

OWN, OTHER = (Keys(*(each.decode() for each in zmq.curve_keypair())) for _ in range(2))
GOOD, BAD = "127.0.0.1:9", "no.such.name:with-letters"


async def tries_its_own(context: "zmq.Context[Any]") -> None:
    del context  # it makes its own
    await open_entrances([Entrance(at, f"tcp://{at}", "ROUTER") for at in (GOOD, BAD)], OTHER.public)


async def knocks(context: "zmq.Context[Any]") -> None:
    await knock(context, [Place(at, "DEALER", (OTHER.public,)) for at in (GOOD, BAD)], OWN)


@pytest.mark.parametrize("probe", [tries_its_own, knocks])
def test_a_probe_that_cannot_be_made_leaves_none_open(
    probe: Callable[[Any], Coroutine[Any, Any, None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[zmq.Socket[bytes]] = []

    class Noted(zmq.Context["zmq.Socket[bytes]"]):
        def socket(self, *args: Any, **kwargs: Any) -> "zmq.Socket[bytes]":
            made.append(super().socket(*args, **kwargs))
            return made[-1]

    monkeypatch.setattr(zmq, "Context", Noted)
    context = Noted()
    with pytest.raises(zmq.ZMQError):
        asyncio.run(probe(context))
    are_closed = [each.closed for each in made]
    context.destroy(linger=0)
    assert len(are_closed) > 2, "the first one was opened, with its monitor, and the bad one"
    assert [True] * len(are_closed) == are_closed
