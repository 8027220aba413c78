"""Turns among channels: who says much does not keep the others from being heard."""

import asyncio
from typing import Any

import pytest
import zmq

from tests.patience import PATIENCE_S
from tests.shell.test_channels import stranger
from weft.base.endpoints import CONTROL, LINK
from weft.shell import links
from weft.shell.blocks import free_blocks
from weft.shell.links import Links


def test_a_flood_on_one_channel_does_not_starve_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "BUDGET_BYTES", 1_000)
    monkeypatch.setattr(links, "SHARE_BYTES", 500)

    async def main() -> None:
        (port,) = free_blocks(1, 14_000)
        side = Links(lambda: None)
        side.serve("127.0.0.1", port, ["down", "control", "announced", "serve"])
        fat, thin = stranger(zmq.DEALER, port + LINK), stranger(zmq.DEALER, port + CONTROL)
        pub = stranger(zmq.PUB, port)

        async def until(channel: str, *flood: Any) -> int:
            """How many turns of a flood it took until that channel was heard."""
            turns = 0
            while not any(item.source.channel == channel for item in side.drain()[0]):
                for each in flood:
                    each.send(b"x" * (400 if each is fat else 2_000))
                turns += 1
                await asyncio.sleep(0)
            return turns

        try:
            for _ in range(500):
                fat.send(b"x" * 400)
            async with asyncio.timeout(PATIENCE_S):
                await until("down", fat)
                await until("announced", pub)
                thin.send(b"I came")  # until this is heard it may be the connection that takes its time
                await until("control", fat, pub)
                thin.send(b"here I am")
                turns = await until("control", fat, pub)
            assert turns < 400
        finally:
            for peer in (fat, thin, pub):
                peer.close()
            side.close()

    asyncio.run(main())
