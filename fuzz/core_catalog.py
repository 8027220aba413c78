"""The catalog core: any story of services, beats, publications, questions and crashes (FUZ-002)."""

import json
from collections.abc import Iterable
from typing import Any

from fuzz.house.choices import Choices
from fuzz.house.life import Cast, Life, play
from fuzz.house.running import run
from fuzz.house.stories import drawn
from weft.base.chance import Chance
from weft.base.effects import SendFailed, Source
from weft.cores.catalog.context import BEATS, EVENTS, PROBE, ROUTER, VALUES
from weft.cores.catalog.core import Catalog
from weft.cores.catalog.messages import CatalogSettings, Garbled, HoldBack, Ports
from weft.wire.catalog import beats, commands, publications
from weft.wire.catalog.messages import COMMANDS, Beat, Beats, Message, Subscription, Taken

ME = bytes(range(16))
NAMES = ("thermo", "door", "a")
T = bytes.fromhex("fd01d64e")


def _body(choices: Choices) -> tuple[bytes, ...]:
    """What a service says of itself, a filter, or a name."""
    record: dict[str, Any] = {"name": choices.pick(NAMES)}
    if choices.flag():
        record |= {
            "ip": choices.pick(("10.0.0.4", "*")),
            "port": choices.pick((5_555, 5_556)),
            "topics": choices.pick((None, [], ["a."])),
        }
    if choices.flag(3):
        record |= choices.pick(
            (
                {"id": "i1"},
                {"id": "i2"},
                {"tags": ["x"]},
                {"health": "critical"},
                {"weight": 3},
                {"port": "x"},
                {"heartbeat": 200},
            )
        )
    kind = choices.below(6)
    if kind < 4:
        return (json.dumps(record).encode(),)
    queries = (
        b"dbp.status",
        b"dbp.list",
        b"dbp.query",
        b"dbp.instances",
        b"dbp.liveness",
        b"dbp.watch",
        b"dbp.values",
        b"dbp.logs",
    )
    return (
        choices.pick((*queries, b"thermo", b"th*", b"")),
        choices.pick((b"", b"thermo", b'{"name":"th*"}', b'{"limit":1}', b"[")),
    )


def _message(choices: Choices) -> Message:
    return Message(
        choices.pick((b"UwU", b"UwU", b"UoU", b"u_U", *sorted(COMMANDS))), choices.pick((T, b"")), _body(choices)
    )


def _beat(choices: Choices) -> Beats:
    word, at = choices.pick((b"<3", b"<3", b"</3")), choices.pick((None, 1.0, 1_795_000_000.0))
    return Beats((Beat(word, choices.pick(NAMES), at, choices.pick((None, "i1")), choices.pick((None, 1, 7))),))


def _taken(choices: Choices) -> Taken:
    log = json.dumps({"v": 1, "message": "hot", "seq": choices.number(), "level": "warn", "fields": {"a": 1}}).encode()
    topic = choices.pick((b"a.b", b"log.thermo.WARN.x", b"log.x", b"", b"a." + b"x" * 300))
    return Taken((topic, choices.pick((b"1", log, b"\xff", b"{}"))))


def _value(life: Life, choices: Choices) -> None:
    """A service publishes on a connection that the broker has opened."""
    if VALUES in life.tags:
        life.hear(_taken(choices), Source(VALUES, life.tags[VALUES]))


def _state(core: Catalog) -> Any:
    return list(core.condense())[:-1]


SETTINGS = CatalogSettings(
    instances_max=4, per_name_max=3, values_max=4, logs_max=5, ring_max=8, topics_max=3, beacon_ns=0
)
CAST = Cast(
    make=lambda start: Catalog(SETTINGS, ME, start, Chance(f"catalog/{start}")),
    says=(
        (tuple(Source(ROUTER, b"%b%d" % (kind.lower(), n), None, f"{kind.decode()} {address}") for kind in (b"DEALER", b"REQ")
               for n, address in enumerate(("127.0.0.1", "10.0.0.4", ""))),
         (_message, _message), lambda message: commands.decode(commands.encode(message))),
        ((Source(BEATS, b"127.0.0.1:7"), Source(BEATS, b"10.0.0.4:7")), (_beat,), lambda message: beats.decode(beats.join(message.lines))),
        ((Source(EVENTS, b""),), (Subscription(True, b"watch/44136fa355b3678a"), Subscription(True, b""), Subscription(False, b"a.")),
         lambda message: publications.decode(publications.encode_subscription(message))),
        ((Source(PROBE, b"10.0.0.4:5555"), Source(PROBE, b"127.0.0.1:5555")), (_message,), lambda message: message),
    ),
    orders=(Ports(5246, 5247), Garbled(ROUTER, b"dealer0", "malformed"), HoldBack, SendFailed(ROUTER, b"dealer1")),
    acts=(_value,),
    state=_state,
    begin=(Ports(5246, 5247),),
)  # fmt: skip


def one(data: bytes) -> None:
    """One broker."""
    play(CAST, data)


def seeds() -> Iterable[bytes]:
    """Stories drawn from seeds."""
    return drawn("catalog")


if __name__ == "__main__":
    run(one)
