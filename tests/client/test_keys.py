"""A node that asks for keys is spoken to with the right ones, and by nobody else."""

import asyncio
from pathlib import Path

import pytest
import zmq

import weft
from tests.client.node import FakeNode, in_loop, until
from weft.base.errors import UserError
from weft.wire import clients


async def refusal_of(node: FakeNode, keys: weft.Curve | None) -> str:
    with pytest.raises(UserError) as refused:
        async with weft.chain_client("keyed", node.endpoint, keys):
            pass
    return refused.value.code


@in_loop
async def test_a_client_with_the_nodes_key_is_heard_and_one_with_another_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.client.chain.client.HELLO_S", 0.2)
    server, secret = zmq.curve_keypair()
    own, other = zmq.curve_keypair(), zmq.curve_keypair()
    async with FakeNode(tmp_path, secret) as node:
        for wrong in (weft.Curve(other[0], *own), None):
            assert "unavailable" == await refusal_of(node, wrong)
        assert [] == node.heard
        monkeypatch.setattr("weft.client.chain.client.HELLO_S", 30)
        welcomed = asyncio.ensure_future(node.welcomes())
        async with weft.chain_client("keyed", node.endpoint, weft.Curve(server, *own)) as chain:
            assert "keyed" == (await welcomed).name
            await chain.send("demo.report", b"1", want="none")
            await until(lambda: any(isinstance(message, clients.Send) for message in node.heard))
