"""Programs with keys at the broker of a closed fabric that other machines reach: what each role may, and who hears nothing."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zmq

import weft
from tests.client.catalogbroker import ports
from tests.client.node import in_loop
from tests.fabric.closed import Enrolled, enrolled
from weft import catalog
from weft.base.errors import UserError
from weft.base.keys import Binding
from weft.client.link.keyring import Keyring
from weft.node.settings import settings_of
from weft.shell.keys import Known, save_known
from weft.shell.process import Process

EVERYWHERE = "0.0.0.0"  # so that the broker asks for keys, which on loopback it does not
ROLES = {"cam": ("service",), "eye": ("reader",), "boss": ("operator",)}


class Closed(NamedTuple):
    """A broker that asks for keys, and who has some."""

    broker: str
    guests: dict[str, Enrolled]
    server: str

    def keys(self, name: str) -> weft.Curve:
        pair = self.guests[name].keys
        return weft.Curve(self.server.encode(), pair.public.encode(), pair.secret.encode())

    def client(self, name: str, **how: Any) -> catalog.Client:
        return catalog.Client(self.broker, keys=self.keys(name), timeout=5.0, **how)


@asynccontextmanager
async def closed(place: Path) -> AsyncIterator[Closed]:
    """A node that runs nothing but a catalog, has keys, and knows three programs; of `cam` the names cam-*."""
    at, root = ports(), enrolled(place / "root", "root", ("collector",))
    guests = {name: enrolled(place / name, name, roles) for name, roles in ROLES.items()}
    bindings = {each.uuid.hex(): each.binding for each in (root, *guests.values())}
    cam = guests["cam"]
    bindings[cam.uuid.hex()] = Binding(curve=(cam.keys.public,), name="cam", roles=("service",), names=("cam-*",))
    save_known(place / "root", Known(bindings=bindings, places={f"127.0.0.1:{at.node}": root.uuid.hex()}))
    node = {"name": "root", "level": "root", "runs": [], "beacons": False, "state": str(place / "root")}
    table = {"port": at.router, "beacon_port": at.beacon, "beacon": 0.2, "host": EVERYWHERE}
    process = Process(settings_of({"node": {**node, "port": at.node}, "catalog": table}))
    run = asyncio.ensure_future(process.run())
    try:
        found = Closed(at.broker, guests, root.keys.public)
        async with found.client("boss"):
            pass
        yield found
    finally:
        process.stop()
        await run


async def code_of(asked: Awaitable[Any]) -> str:
    """`done`, or the code of what was refused."""
    try:
        await asked
    except catalog.CatalogError as error:
        return error.code
    return "done"


async def _removed(client: catalog.Client, name: str) -> str:
    await client.deregister(name)
    return "removed" if name not in await client.list() else "there"


ASKS: dict[str, Callable[[catalog.Client], Awaitable[Any]]] = {
    "read": lambda client: client.status(),
    "register cam-7": lambda client: client.register("cam-7", ip="127.0.0.1", port=1, heartbeat=60_000),
    "update cam-7": lambda client: client.update("cam-7", weight=3),
    "register door": lambda client: client.register("door", ip="127.0.0.1", port=2, heartbeat=60_000),
    "logs": lambda client: client.logs(),
    "deregister": lambda client: client.request(b"dbp.deregister", b"cam-7"),
}


@pytest.mark.proves("CAT-060")
@in_loop
async def test_each_role_may_what_the_table_says_and_a_service_only_its_names(tmp_path: Path) -> None:
    async with closed(tmp_path) as fabric:
        told: dict[str, dict[str, str]] = {}
        for name in ("cam", "eye", "boss"):
            async with fabric.client(name) as client:
                told[name] = {what: await code_of(ask(client)) for what, ask in ASKS.items()}
        assert {
            "cam": {
                "read": "done",
                "register cam-7": "done",
                "update cam-7": "done",
                "register door": "not-authorised",
                "logs": "done",
                "deregister": "not-authorised",
            },
            "eye": {
                "read": "done",
                "register cam-7": "not-authorised",
                "update cam-7": "not-authorised",
                "register door": "not-authorised",
                "logs": "not-authorised",
                "deregister": "not-authorised",
            },
            "boss": {
                "read": "done",
                "register cam-7": "done",
                "update cam-7": "done",
                "register door": "done",
                "logs": "done",
                "deregister": "done",
            },
        } == told
        async with fabric.client("boss") as client:
            assert not (await client.status())["insecure"]
            assert "removed" == await _removed(client, "door")


@pytest.mark.proves(
    "CAT-060", part="whoever has no key, or one that nobody knows, is heard by no broker that others reach"
)
@in_loop
async def test_without_a_key_or_with_an_unknown_one_nobody_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with closed(tmp_path) as fabric:
        monkeypatch.setattr("weft.client.catalog.finding.ANSWER_S", 0.2)
        stranger = weft.Curve(fabric.server.encode(), *zmq.curve_keypair())
        wrong = fabric.keys("cam")._replace(server=zmq.curve_keypair()[0])
        for keys in (None, stranger, wrong):
            assert "unreachable" == await code_of(catalog.Client(fabric.broker, keys=keys).__aenter__())


@pytest.mark.proves("CAT-060", part="services register, beat and are followed with their keys")
@in_loop
async def test_a_service_with_a_key_is_found_called_and_watched_by_a_reader(tmp_path: Path) -> None:
    async with closed(tmp_path) as fabric, fabric.client("eye", cache=True) as client:
        cam = catalog.Service("cam-1", broker=fabric.broker, beacon_port=0, keys=fabric.keys("cam"))

        @cam.endpoint
        async def shot(_: bytes) -> str:
            return "click"

        async with cam, client.watch() as watch:
            assert "cam-1" == (await anext(watch)).name
            assert (b"click",) == await client.call("cam-1", "shot", "now")
            assert "active" == (await client.get("cam-1")).state
        door = catalog.Service("door", broker=fabric.broker, beacon_port=0, keys=fabric.keys("cam"))
        with pytest.raises(catalog.Denied) as refused:
            await door.start()
        assert "not-authorised" == refused.value.code


ROOT_KEY, HEIR, OWN, NEXT = ("R" * 40, "H" * 40, "O" * 40, "N" * 40)


def joined(place: Path, mode: int = 0o600) -> Path:
    """What `weft join` leaves."""
    folder = place / "keys"
    folder.mkdir(0o700)
    (folder / "node.key_secret").write_text(f'curve\n    public-key = "{OWN}"\n    secret-key = "{"S" * 40}"\n')
    bindings = {
        "aa" * 16: {"curve": [ROOT_KEY, NEXT], "name": "root", "roles": ["collector"], "host": "10.0.0.1"},
        "bb" * 16: {"curve": [HEIR], "name": "heir", "roles": ["collector"], "host": "10.0.0.2"},
        "cc" * 16: {"curve": [OWN], "name": "cam", "roles": ["service"], "host": "10.0.0.3"},
    }
    known = {"bindings": bindings, "places": {"10.0.0.1:27500": "aa" * 16}}
    (folder / "known.json").write_text(json.dumps(known))
    for path in folder.iterdir():
        path.chmod(mode)
    return place


@pytest.mark.proves(
    "CAT-060", part="a directory of weft join says whose key is met where, and nothing else is met there"
)
def test_of_the_keys_that_joining_left_those_of_the_place_are_met_and_elsewhere_never_none(tmp_path: Path) -> None:
    ring = Keyring.read(joined(tmp_path))
    assert ((NEXT, ROOT_KEY), (HEIR,)) == (ring.servers("10.0.0.1:5246"), ring.servers("10.0.0.2:5246"))
    assert (NEXT, ROOT_KEY, HEIR) == ring.servers("root.example:5246")
    assert ("", NEXT, ROOT_KEY, HEIR) == ring.servers("127.0.0.1:5246")
    target = ring.target("tcp://10.0.0.2:5246", HEIR)
    assert weft.Curve(HEIR.encode(), OWN.encode(), b"S" * 40) == target.curve
    assert "SSSS" not in repr(target)


def test_the_environment_says_where_the_keys_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEFT_KEYS", raising=False)
    assert Keyring.of() is None
    monkeypatch.setenv("WEFT_KEYS", os.fspath(joined(tmp_path)))
    ring = Keyring.of()
    assert ring is not None
    assert (HEIR,) == ring.servers("10.0.0.2:5246")


@pytest.mark.parametrize(
    ("break_it", "code"),
    [
        (lambda keys: (keys / "node.key_secret").unlink(), "no-keys"),
        (lambda keys: (keys / "known.json").unlink(), "no-keys"),
        (lambda keys: (keys / "node.key_secret").write_text("nothing"), "bad-keys"),
        (lambda keys: (keys / "known.json").write_text("{"), "bad-keys"),
        (lambda keys: (keys / "node.key_secret").chmod(0o640), "open-keys"),
        (lambda keys: keys.chmod(0o755), "open-keys"),
    ],
)
def test_keys_that_cannot_be_used_are_refused_with_a_mend(
    tmp_path: Path, break_it: Callable[[Path], object], code: str
) -> None:
    break_it(joined(tmp_path) / "keys")
    with pytest.raises(UserError) as refused:
        catalog.Client("10.0.0.1", keys=tmp_path)
    assert code == refused.value.code
    assert "weft join" in str(refused.value)
