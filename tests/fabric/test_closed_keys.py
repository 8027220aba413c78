"""Keys that are nobody's any more, and doors that are not as they should be, at nodes on real sockets (SEC-025, 051, 052)."""

import asyncio
from pathlib import Path

import pytest
import zmq

from tests.fabric.closed import Hall
from tests.fabric.test_closed_doors import Intruder
from weft.base.errors import UserError
from weft.base.keys import binding_key, encode_binding
from weft.cores.configuration.messages import Write, WriteKeys
from weft.shell import sockets
from weft.shell.process import Process
from weft.shell.sockets import Credentials
from weft.shell.zap import Gatekeeper
from weft.wire import discovery
from weft.wire.discovery import Control

pytestmark = pytest.mark.prove("a second story of keys")

TREE = {"root": "", "sensor-1": "root"}


def _write(hall: Hall, *writes: Write) -> None:
    hall.up["root"].runner.order("configuration", WriteKeys(7, writes, who="test", ack="local"))


def _bindings(hall: Hall) -> tuple[Write, ...]:
    everybody = (*hall.fabric.nodes.values(), *hall.fabric.guests.values())
    return tuple(Write(binding_key(each.uuid), encode_binding(each.binding)) for each in everybody)


def _unknown(process: Process) -> int:
    gatekeeper = process.links.gatekeeper
    assert gatekeeper is not None, "it has keys"
    return gatekeeper.decided["unknown-key"]


@pytest.mark.proves("SEC-025", "SEC-052", "SEC-012")
def test_a_revoked_key_is_refused_also_on_open_connections(tmp_path: Path) -> None:
    async def main() -> None:
        async with Hall(tmp_path, TREE, {"spare": "sensor"}) as hall:
            _write(hall, *_bindings(hall))
            spare, nodes = hall.fabric.guests["spare"], hall.up
            known = len(_bindings(hall))
            await hall.until(
                lambda: all(len(each.links.credentials.table) == known for each in nodes.values()),
                "all know the bindings",
            )
            guest = Intruder(spare.keys)
            polo = discovery.encode_call(Control("whois", "127.0.0.1:29999", spare.uuid, {"fleet": "weft"}))
            for name in nodes:
                guest.knock(*hall.doors(name)["control"], [polo], hall.fabric.nodes[name].keys.public)
            before = {name: _unknown(each) for name, each in nodes.items()}
            while len({bytes(heard[-2]) for heard in guest.heard}) < len(nodes):
                guest.speak()
                await asyncio.sleep(0.01)  # tidy: answers of sockets wake nobody here; bounded by the test's time
            _write(hall, Write(binding_key(spare.uuid), b""))
            await hall.until(
                lambda: all(each.links.credentials.table.node(spare.uuid) is None for each in nodes.values()), "revoked"
            )

            def is_refused(times: int) -> bool:
                guest.speak()
                return all(_unknown(each) >= before[name] + times for name, each in nodes.items())

            await hall.until(lambda: is_refused(1), "the open connections are closed, and new ones refused")
            guest.leave()
            guest.heard.clear()  # answers of before
            for name in nodes:
                guest.knock(*hall.doors(name)["control"], [polo], hall.fabric.nodes[name].keys.public)
            await hall.until(lambda: is_refused(2), "nobody lets it in that comes again")
            assert [] == guest.heard
            guest.close()
            await hall.until(
                lambda: "sensor-1" in nodes["root"].node.standing.children.values(), "the sensor is back at the root"
            )

    asyncio.run(main())


def _lets_everybody_in(self: Credentials, made: sockets.Socket, domain: bytes = b"") -> None:
    """A build whose sockets have no keys."""


def _lets_any_key_in(self: Credentials, made: sockets.Socket, domain: bytes = b"") -> None:
    """A build that asks nobody whose key it is."""
    assert self.keys is not None
    made.setsockopt(zmq.CURVE_SERVER, 1)
    made.setsockopt(zmq.CURVE_SECRETKEY, self.keys.secret.encode())


@pytest.mark.proves("SEC-051")
@pytest.mark.parametrize("fault", [_lets_everybody_in, _lets_any_key_in])
def test_a_door_that_lets_a_stranger_in_ends_the_start(
    fault: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Credentials, "serve", fault)
    monkeypatch.setattr(Gatekeeper, "open", lambda _: None)  # with it nobody comes in without a domain either

    async def main() -> None:
        async with Hall(tmp_path, {"root": ""}, {}):
            pass

    with pytest.raises(UserError) as refused:
        asyncio.run(main())
    assert "door-open" == refused.value.code
    assert "control" in str(refused.value)
