"""The store core: any story of changes, infos, pings, clients, links and crashes (FUZ-002)."""

from collections.abc import Iterable
from typing import Any

import msgspec

from fuzz.house.choices import Choices
from fuzz.house.life import Cast, Life, play
from fuzz.house.running import run
from fuzz.house.stories import drawn
from fuzz.house.vectors import payloads
from weft.base.chance import Chance
from weft.base.changes import Chain, Event, Link
from weft.base.effects import Source
from weft.base.ranges import RangeSet
from weft.cores.store.bus import MESH, MQTT
from weft.cores.store.core import Store
from weft.cores.store.mesh import HEARD
from weft.cores.store.messages import (
    ClientCame,
    ClientGone,
    ClientPaused,
    ClientResumed,
    DropNode,
    Found,
    HoldBack,
    LinkDown,
    LinkUp,
    PeerHeard,
    RestoreLoser,
    SetDeleters,
    Show,
    StoreSettings,
)
from weft.wire.store import bus, clients, mesh
from weft.wire.store.clients import Request
from weft.wire.store.messages import Info, Ping, Publication, Update
from weft.wire.store.pack import pack

NODES = ("a", "b", "c", "me")
PATHS: tuple[tuple[Any, ...], ...] = (("p",), ("p", "x"), ("q",), (), (1,), (".moat", "kv"), ("del",))
VALUES = (pack(1), pack("x"), pack(None), pack([1, {"a": 2}]), None, None)
TOCK_LIMIT = 3  # kind of the record
CAPTURED = tuple(payloads("store-computed", of="info"))


def _link(choices: Choices) -> Link:
    return choices.pick(NODES), 1 + choices.below(6)


def _chain(choices: Choices) -> Chain:
    links = dict([_link(choices) for _ in range(1 + choices.below(3))])
    return Chain(tuple(links.items()), choices.flag(5))


def _ticks(choices: Choices) -> Any:
    return choices.pick((None, {choices.pick(NODES): RangeSet([(1 + choices.below(4), 5 + choices.below(4))])}, {}))


def _message(choices: Choices) -> Publication:
    """Something for the bus."""
    kind = choices.below(8)
    if kind < 4:
        event = Event(_chain(choices), 1 + choices.below(40), choices.pick(PATHS), choices.pick(VALUES))
        return Publication("update", bus.encode(Update(event, choices.pick((None, _link(choices))))))
    if kind < 6:
        tops = choices.pick((None, {"a": 3}, {"b": 9, "me": 2}))
        told = {
            "ticks": tops,
            "missing": _ticks(choices),
            "known": _ticks(choices),
            "deleted": _ticks(choices),
            "have": _ticks(choices),
        }
        node, tick = _link(choices)
        return Publication(
            "info",
            bus.encode(
                Info(node=node, tick=tick, tock=choices.below(50), node_drop=choices.pick((None, ("c",))), **told)
            ),
        )
    if kind == 6:
        return Publication("info", choices.pick(CAPTURED))
    return Publication(choices.pick(("wping", "ping")), bus.encode(Ping(_chain(choices), choices.below(50))))


def _broker(life: Life, choices: Choices) -> None:
    said = _message(choices)
    life.hear(Publication("", said.payload), Source(MQTT, said.topic.encode()))


def _mesh(life: Life, choices: Choices) -> None:
    """A node of the mesh says who it is, or what everybody gets."""
    source = Source(choices.pick((MESH, HEARD)), choices.pick((b"10.0.0.2:27500", b"10.0.0.3:27500")))
    name = choices.pick(NODES[:3])
    hello = mesh.Hello(
        fabric=choices.pick(("weft", "weft", "x")),
        node=name,
        boot=min(choices.number(5), (1 << 63) - 1),
        endpoint=source.peer.decode(),
        tock=3,
    )
    said: Any = choices.pick((hello, mesh.Beat(), mesh.Bye("stopping"), _message(choices), _message(choices)))
    if getattr(said, "topic", "") != "wping":
        life.hear(mesh.decode(mesh.encode(said)), source)


ACTIONS = (
    "set_value", "get_value", "delete_value", "get_tree", "watch", "get_state", "update", "diffs", "stop", "delete_tree", "get_value",
    "enumerate", "check_deleted", "set_tree", "no_such",
)  # fmt: skip
HOW: tuple[dict[str, Any], ...] = (
    {}, {"value": msgspec.Raw(b"\x05")}, {"nchain": -1}, {"since": None}, {"ack": "quorum"}, {"fetch": True},
)  # fmt: skip


def _request(choices: Choices) -> bytes:
    how: dict[str, Any] = choices.pick(HOW)
    request = Request(seq=choices.pick((0, 1, 2, 3)), action=choices.pick(ACTIONS), path=choices.pick(PATHS), **how)
    return clients.encode(request)


def _state(core: Store) -> Any:
    """All but the tock up to which a start may count, which is as far again after each."""
    return [record for record in core.condense() if record.kind != TOCK_LIMIT]


CAST = Cast(
    make=lambda start: Store(
        StoreSettings(name="me", boot=100 + start, endpoint="10.0.0.1:27500", peers=("10.0.0.2:27500",)), Chance(f"store/{start}")
    ),
    says=(((Source("store-clients", b"c1"), Source("store-clients", b"c2")), (_request,), clients.decode_request),),
    orders=(
        LinkUp("mqtt"), LinkDown("mqtt"), ClientCame, ClientGone, ClientPaused, ClientResumed, HoldBack, PeerHeard, Found(1, pack(None)),
        Show, RestoreLoser, DropNode, SetDeleters,
    ),
    hints={
        "peer": (b"c1", b"c2"), "endpoint": ("10.0.0.2:27500", "10.0.0.3:27500"), "ticket": (2, 3), "number": (1, 2),
        "what": ("state", "members", "conflicts", "orphans", "x"), "node": NODES, "nodes": ((), ("a",), ("a", "me")), "address": ("127.0.0.1",),
    },
    state=_state,
    acts=(_broker, _broker, _broker, _mesh),
    begin=(LinkUp("mqtt"), ClientCame(b"c1", "127.0.0.1", is_local=True)),
)  # fmt: skip


def one(data: bytes) -> None:
    """One node, which begins the store or hears of it."""
    play(CAST, data)


def seeds() -> Iterable[bytes]:
    """Stories drawn from seeds."""
    return drawn("store")


if __name__ == "__main__":
    run(one)
