"""Programs that are not of the node's user, at real sockets: by the kernel's word, and by the keys of a closed fabric."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.client.node import in_loop, until
from tests.fabric.closed import enrolled
from tests.shell.ports import free_port
from weft.base.errors import UserError
from weft.client.chain.client import ChainClient
from weft.cores.chains.core import Chains
from weft.node.settings import settings_of
from weft.shell.blocks import free_blocks
from weft.shell.keys import Known, save_known
from weft.shell.process import Process

ALLOW = [{"user": "key:cam", "verbs": ["rewrite"], "types": ["demo.report"]}]


@asynccontextmanager
async def running(place: Path, **chains: Any) -> AsyncIterator[Process]:
    """A root with chains, from when mail is taken."""
    node = {"name": "root", "level": "root", "state": str(place), "port": free_blocks(1, 14_000)[0], "beacons": False}
    process = Process(settings_of({"node": node, "fleet": {"beacon_port": free_port()}, "chains": chains}))
    run = asyncio.ensure_future(process.run())
    try:
        core = process.node.cores["chains"]
        assert isinstance(core, Chains)
        await until(lambda: not core.context.awaits_filters)
        yield process
    finally:
        process.stop()
        await run


async def may(opens: Callable[[], ChainClient]) -> dict[str, str]:
    """What becomes of reading, rewriting and sending, for two types; a client that was refused ends, so each has its own."""
    told = {}
    for kind in ("demo.report", "app.note"):
        async with opens() as chain:
            chain.reads(kind)(print)
            told[f"read {kind}"] = await _became(chain.ready())
        async with opens() as chain:
            chain.rewrites(kind, on="out")(lambda message: message)
            told[f"rewrite {kind}"] = await _became(chain.ready())
        async with opens() as chain:
            told[f"send {kind}"] = await _became(chain.send(kind, b"1"))
    return told


async def _became(done: Awaitable[Any]) -> str:
    try:
        await done
    except (UserError, weft.SendFailed) as refused:
        return refused.code
    return "done"


@pytest.mark.proves("CHN-081")
@in_loop
async def test_keys_may_what_their_role_and_the_rules_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = enrolled(tmp_path / "root", "root", ("collector",))
    roles = {"cam": "service", "boss": "operator"}
    guests = {name: enrolled(tmp_path / name, name, (role,)) for name, role in roles.items()}
    bindings = {each.uuid.hex(): each.binding for each in (root, *guests.values())}
    save_known(tmp_path / "root", Known(bindings=bindings))
    async with running(tmp_path / "root", tcp=True, allow=ALLOW) as process:
        endpoint = f"tcp://127.0.0.1:{process.settings.node.port + 8}"
        told = {}
        for name, guest in guests.items():
            keys = weft.Curve(root.keys.public.encode(), guest.keys.public.encode(), guest.keys.secret.encode())
            told[name] = await may(partial(weft.chain_client, name, endpoint, keys))
        monkeypatch.setenv("WEFT_KEYS", os.fspath(tmp_path / "cam"))
        save_known(
            tmp_path / "cam", Known(bindings=bindings, places={endpoint.removeprefix("tcp://"): root.uuid.hex()})
        )
        assert told["cam"] == await may(partial(weft.chain_client, "cam", endpoint))
    every = ("read", "rewrite", "send")
    assert {f"{verb} {kind}": "done" for kind in ("demo.report", "app.note") for verb in every} == told["boss"]
    assert {**told["boss"], "rewrite app.note": "denied"} == told["cam"]


@pytest.mark.proves("CHN-080", part="at a real socket, the user is whom the kernel names")
@in_loop
async def test_another_user_of_the_machine_needs_a_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me, opens = os.geteuid(), partial(weft.chain_client, "other", tmp_path)
    rule = {"user": f"uid:{me}", "verbs": ["send"], "types": ["app.*"]}
    monkeypatch.setattr("weft.cores.chains.rights.SUPERUSER", -1)  # who runs the tests may be root
    monkeypatch.setattr("weft.shell.process.os.geteuid", lambda: me + 1)
    async with running(tmp_path):
        with pytest.raises(UserError) as refused:
            await opens().__aenter__()
        assert "denied" == refused.value.code
    async with running(tmp_path, allow=[rule]) as process:
        assert ["denied"] * 5 + ["done"] == list((await may(opens)).values())
        core = process.node.cores["chains"]
        assert isinstance(core, Chains)
        assert {"denied": 1} == core.context.counters.refused
