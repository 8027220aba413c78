"""Two hundred thousand messages of strangers, through codec, node and core: none ends it, none gets it to lie (CAT-081)."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from weft.base.chance import Chance
from weft.base.effects import Source
from weft.base.now import MILLISECOND, SECOND, Now
from weft.cores.catalog.core import Catalog
from weft.cores.catalog.messages import Ports
from weft.node.assembly import build_node
from weft.node.node import Node, Transmit
from weft.node.settings import settings_of

VECTORS = Path(__file__).parents[1] / "vectors"
MESSAGES: Final = 200_000
WALL: Final = 1_795_227_299 * SECOND
HONEST: Final = {"name": "honest", "ip": "127.0.0.1", "port": 9, "tags": ["true"]}
KINDS: Final = ("DEALER 10.0.0.9", "REQ 10.0.0.9", "DEALER 10.0.0.8", " 10.0.0.9", "PUB 10.0.0.9")
WORDS: Final = (
    b"u_U",
    b"UwU",
    b"UoU",
    b"<3",
    b"</3",
    b"u.u",
    b"ping",
    b"o=o",
    b"O_o",
    b"<\\3",
    b"OwO",
    b"o_O",
    b"^o^",
    b"",
)
NAMES: Final = (
    b"honest",
    b"a",
    b"Error",
    b"_dbp",
    b"dbp.x",
    b"dbp.query",
    b"dbp.watch",
    b"dbp.deregister",
    b"\xff\xfe",
    b"*" * 90,
)
BODIES: Final = (
    *(b"", b"{}", b"[]", b"null", b"{" * 99, b'{"name":1}', b'{"name":"honest"}', b'{"name":"honest","id":"x"}'),
    *(b'{"name":"a","heartbeat":1e999}', b'{"name":"a","port":70000}', b'{"name":"a","_dbp":{}}', b'{"\\ud800":1}'),
    *(b'{"name":"a","ip":"1.2.3.4","port":9}', b'{"name":"b","tags":["t"],"metadata":{"k":"v"}}', b"x" * 70_000),
    *(b'{"name":"*a*a*a*a*b"}', b'{"tags":[]}', b'{"state":"active"}', b'{"since":-1,"epoch":"x"}', b"1" * 5_000),
)
DATAGRAMS: Final = (
    b"<3 1 honest",
    b"</3 1 honest",
    b"honest <3",
    b"<3 x honest",
    b"\xff",
    b"",
    b"<3 1 a\tid=1\tseq=9",
    b"\n" * 40,
)


class Fabric:
    """One node with a catalog, an honest service in it, and a great many strangers."""

    def __init__(self) -> None:
        table = {"name": "root", "level": "root", "runs": []}
        open_network = {"mode": "none", "allow_insecure": True}
        self.node: Node = build_node(
            settings_of({"node": table, "security": open_network, "catalog": {}}), b"n" * 16, 1, "hostile"
        )
        self.now = Now(SECOND, WALL)
        self.node.restore([], 1, self.now)
        self.node.command("catalog", Ports(5246, 5247), self.now)
        self.answers: list[Transmit] = []

    @property
    def catalog(self) -> Catalog:
        core = self.node.cores["catalog"]
        assert isinstance(core, Catalog)
        return core

    def say(self, channel: str, peer: bytes, frames: list[bytes], kind: str = "") -> list[Transmit]:
        self.node.receive(Source(channel, peer, None, kind), frames, self.now)
        due = self.node.deadline()
        if due is not None and due <= self.now.mono:
            self.node.wake(self.now)
        effects = self.node.effects()
        return [one for one in effects if isinstance(one, Transmit) and (one.channel, one.peer) == ("catalog", peer)]

    def ask(self, *frames: bytes) -> Any:
        (answer,) = self.say("catalog", b"checker", [b"", b"u_U", b"\0\0\0\0", *frames], "REQ 127.0.0.1")
        return json.loads(answer.frames[3])

    def beat(self) -> None:
        self.say("catalog-beats", b"127.0.0.1:7", [b"<3 1 honest"])


class Stranger:
    """Draws what somebody might say who knows the protocol well, or not at all."""

    def __init__(self, seed: str) -> None:
        self.draw = Chance(seed)
        rows = [json.loads(line) for file in VECTORS.glob("catalog-*.jsonl") for line in file.read_text().splitlines()]
        self.known = [[bytes.fromhex(frame) for frame in row["frames"]] for row in rows if row.get("frames")]

    def message(self) -> list[bytes]:
        draw = self.draw
        if draw.randrange(4) == 0:
            frames = list(draw.choice(self.known))
            spot = draw.randrange(len(frames))
            frames[spot] = draw.choice(
                (b"", frames[spot][:-1], frames[spot] + b"\0", frames[spot][::-1], draw.choice(BODIES))
            )
            return frames
        envelope = [b"e"] * draw.randrange(10) if draw.randrange(9) == 0 else []
        delimiter = [] if draw.randrange(30) == 0 else [b""]
        time = draw.choice((b"\0\0\0\0", b"", b"12345678", b"1795227299", b"x" * 40))
        body = [draw.choice((draw.choice(BODIES), draw.choice(NAMES))) for _ in range(draw.randrange(4))]
        return [*envelope, *delimiter, draw.choice(WORDS), time, *body]


@pytest.mark.prove("two hundred thousand messages")
@pytest.mark.proves("CAT-003", "CAT-080", "CAT-081")
def test_no_message_of_two_hundred_thousand_ends_the_broker_or_makes_it_answer_wrong() -> None:
    fabric, stranger = Fabric(), Stranger("hostile")
    fabric.say("catalog", b"service", [b"", b"UwU", b"\0\0\0\0", json.dumps(HONEST).encode()], "DEALER 127.0.0.1")
    draw, most = stranger.draw, 0
    for number in range(MESSAGES):
        fabric.now = Now(fabric.now.mono + MILLISECOND // 2, WALL + number)
        channel = draw.choice(("catalog",) * 8 + ("catalog-beats", "catalog-events"))
        if channel == "catalog":
            most = max(
                most, len(fabric.say(channel, b"p%d" % draw.randrange(400), stranger.message(), draw.choice(KINDS)))
            )
        elif channel == "catalog-beats":
            fabric.say(channel, b"10.0.0.9:7", [draw.choice(DATAGRAMS)])
        else:
            fabric.say(
                channel, b"", [draw.choice((b"\1tick", b"\0tick", b"\1lcv/", b"\1logs/", b"\1", b"", b"\1" * 999))]
            )
        if number % 1_000 == 0:
            fabric.beat()
            judge(fabric)
    judge(fabric)
    assert 1 == most
    assert 0 == fabric.catalog.context.counters["faults", ""]
    assert MESSAGES // 100 < fabric.catalog.context.counters.total()


def judge(fabric: Fabric) -> None:
    """What it says is right, and it remembers no more than it may."""
    found = fabric.ask(b"honest")["honest"]
    assert ("127.0.0.1", 9, ["true"], "active") == (found["ip"], found["port"], found["tags"], found["_dbp"]["state"])
    missing = fabric.ask(b"zz")
    assert ("inactive", "zz", "unknown") == (missing["warning"], missing["service"], missing["state"])
