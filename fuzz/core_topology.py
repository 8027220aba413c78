"""The topology core: any story of calls, elections, places and crashes (FUZ-002)."""

from collections.abc import Iterable
from typing import Any

from fuzz.house.life import Cast, play
from fuzz.house.running import run
from fuzz.house.stories import drawn
from weft.base.chance import Chance
from weft.base.effects import Source
from weft.cores.topology.core import Topology
from weft.cores.topology.messages import (
    Beacon,
    ChildIs,
    LearnHolds,
    LearnPairs,
    LinkIs,
    NoteDiverged,
    ParentIs,
    RecordWritten,
    ResetRoot,
    StopNodes,
    TopologySettings,
)
from weft.wire import beacon, discovery
from weft.wire.discovery import Announcement, Control
from weft.wire.envelope import Answer, Asked
from weft.wire.replication import Wtf

ME = b"me".ljust(16, b".")
NODES = (ME, b"a" * 16, b"b" * 16, b"c" * 16)
HERE = "10.0.0.1:27500"
ENDPOINTS = (HERE, "10.0.1.1:27500", "10.0.1.2:27500", "10.0.1.3:27500")
EPOCHS = (0, 1, 2, 3, 7, 40, 1 << 22)
PROPERTIES: tuple[dict[str, Any], ...] = (
    {}, {"epoch": 1}, {"propose": 1, "holds": [0, 3]}, {"propose": 2, "holds": [1, 9], "election": "e"},
    {"fleet": "lab", "level": "auto", "name": "n", "epoch": 1}, {"fleet": "lab", "name": "me", "era": 9},
    {"parent": ENDPOINTS[1], "root": ENDPOINTS[1], "level": "branch", "tier": 1, "epoch": 1, "group": "web"},
    {"parent": ENDPOINTS[2], "root": ENDPOINTS[1], "level": "leaf", "epoch": 2, "root_uuid": NODES[1].hex()},
    {"fleet": "lab", "epoch": 1, "count": 3, "protocol": 1}, {"fleet": "lab", "epoch": 3, "acting": True},
    {"election": "e", "epoch": 2, "holds": [1, 9], "votes": 2, "of": 3},
)  # fmt: skip
RECORD = b'{"endpoint":"%s","level":"branch","tier":1,"parent":"10.0.0.1:27500","incarnation":1,"name":"a"}'
PAIRS = (
    ("/CONFIG/web/members", b'["10.0.*"]'), ("/CONFIG/web/collectors", b'["10.0.1.1:27500"]'),
    ("/CONFIG/web/fanout", b"2"), ("/CONFIG/site/members", b'["10.*"]'), ("/CONFIG/web/parent", b'"site"'),
    ("/CONFIG/web/members", None), ("/TOPO/root", b'{"endpoint":"10.0.1.1:27500","uuid":"%s"}' % NODES[1].hex().encode()),
    ("/TOPO/root", b'{"endpoint":"10.0.0.1:27500","uuid":"%s"}' % ME.hex().encode()),
    *((f"/TOPO/web/node/{node.hex()}", RECORD % here.encode()) for node, here in zip(NODES, ENDPOINTS, strict=True)),
    *((f"/TOPO/web/node/{node.hex()}", None) for node in NODES),
)  # fmt: skip


def _make(start: int, level: str = "auto") -> Topology:
    host, _, port = HERE.rpartition(":")
    settings = TopologySettings(
        fleet="lab", name="me", level=level, base_port=int(port), host=host, join=ENDPOINTS[1:2], labels={"rack": "7"}
    )
    return Topology(settings, ME, start, Chance(f"topology/{start}"))


def _called(message: Any) -> Asked:
    return discovery.decode_control(discovery.encode_call(message))


def _cast(level: str) -> Cast:
    callers = tuple(Source("control", peer) for peer in (b"p1", b"p2", b"p3"))
    return Cast(
        make=lambda start: _make(start, level),
        says=(
            ((Source("announced", b""),), (Announcement,), lambda m: discovery.decode_announcement(discovery.encode_announcement(m))),
            (callers, (Control, Control, Wtf), _called),
            (tuple(Source("call", here.encode()) for here in ENDPOINTS), (Control, Control, Wtf),
             lambda m: discovery.decode_called(discovery.encode_control_answer(Answer((b"",), m)))),
            (tuple(Source("beacon", here.encode()) for here in ("10.0.1.1", "10.0.0.1")), (Beacon,),
             lambda m: beacon.decode(beacon.encode(m))),
        ),
        orders=(LearnPairs, LearnPairs, LearnHolds, NoteDiverged(), RecordWritten, ParentIs, LinkIs, ChildIs, ResetRoot, StopNodes),
        hints={
            "key": ("/MARCO", "/GROUP/web/", "/RECOVERY/wutup", "/RECOVERY/iwin"),
            "command": discovery.COMMANDS,
            "endpoint": ENDPOINTS,
            "uuid": NODES,
            "node": NODES,
            "content": PROPERTIES,
            "properties": PROPERTIES,
            "pairs[]": PAIRS,
            "number": (0, 3, 9, 1 << 40, (1 << 40) + 9, (2 << 40) + 1, (7 << 40) + 9),
            "digest": (b"", b"d" * 16),
            "ticket": (0, 1, 2, 3, 4),
            "code": (0, 5, 9, 11),
            "text": ("", "epoch 3", "root 10.0.1.1:27500"),
            "state": ("heard", "quiet", "silent", "joined", "lost"),
            "group": ("", "web", "site"),
            "fleet": ("lab", "weft"),
            "name": ("me", "a"),
            "level": beacon.LEVELS,
            "port": (27_500, 0),
        },
    )  # fmt: skip


CASTS = (_cast("auto"), _cast("root"), _cast("sensor"))


def one(data: bytes) -> None:
    """The first byte says what the node's file says."""
    play(CASTS[data[0] % len(CASTS) if data else 0], data[1:])


def seeds() -> Iterable[bytes]:
    """Stories drawn from seeds."""
    return drawn("topology", len(CASTS))


if __name__ == "__main__":
    run(one)
