"""The service core: any story of brokers, beacons and changes (FUZ-002)."""

from collections.abc import Iterable

from fuzz.house.life import Cast, Life, play
from fuzz.house.running import run
from fuzz.house.stories import drawn
from weft.base.chance import Chance
from weft.base.effects import Source
from weft.cores.service.core import Service
from weft.cores.service.messages import BEACONS, BEATS, BROKER, Lost, ServiceSettings, Start, Stop, Update
from weft.wire.catalog import beacon, beats, commands
from weft.wire.catalog.messages import COMMANDS, Beacon, Beat, Beats, Message

BODIES = (
    b'{"dbp":1,"epoch":"0123456789abcdef","heartbeat":1000,"liveness":3,"instance":"i1","hb":5246}',
    b'{"dbp":1,"epoch":"fedcba9876543210","heartbeat":3000,"hb":0,"beat_key":"6b6579"}',
    b'{"Error":"no","code":"bad-field","fields":["ip"]}', b'{"Error":"no","code":"limit"}', b"{}", b"", b"\xff", b"[",
)  # fmt: skip


def _cast(seeds: tuple[str, ...]) -> Cast:
    settings = ServiceSettings(name="thermo", record={"ip": "10.0.0.9", "port": 9}, seeds=seeds)

    def broker(life: Life) -> Source:
        core = life.core
        assert isinstance(core, Service)
        return Source(BROKER, core.tag)

    return Cast(
        make=lambda start: Service(settings, Chance(f"service/{start}")),
        says=(
            ((broker, broker, Source(BROKER, b"old")), (Message, Message), lambda message: commands.decode(commands.encode(message))),
            ((Source(BEACONS, b"10.0.0.1"), Source(BEACONS, b"10.0.0.2")), (Beacon,),
             lambda message: beacon.decode(beacon.encode(message))),
            ((Source(BEATS, b"10.0.0.1:5246"),), (lambda choices: Beats((Beat(choices.pick((b"u.u", b"<3")), "thermo", 1.0),)),),
             lambda message: beats.decode(beats.join(message.lines))),
        ),
        orders=(Start(), Start(), Stop(), Update, Update, lambda choices: Lost(choices.pick((b"", b"1", b"2")))),
        hints={
            "command": (b"OwO", b"(O_O)", b"u.u", *sorted(COMMANDS)), "time": (b"", b"\xfd\x01\xd6\x4e"), "envelope": ((),),
            "body": tuple((body,) for body in BODIES), "ticket": (1, 2, 3), "port": (5246, 5247), "dbp": (1, 1, 0),
            "Beacon.id": ("", "0123456789abcdef"), "hb": (0, 5246), "pub": (0,), "caps": ((), ("f64",)), "net": ("",), "mac": ("",),
            "signed": (b"",), "changes": ({"tags": ["a"]}, {"port": 7}, {"metadata": None}, {"port": "x"}),
        },
        begin=(Start(),),
    )  # fmt: skip


CASTS = (_cast(("10.0.0.1:5246", "10.0.0.2:5246")), _cast(()))


def one(data: bytes) -> None:
    """The first byte says whether it knows its brokers."""
    play(CASTS[data[0] % len(CASTS) if data else 0], data[1:])


def seeds() -> Iterable[bytes]:
    """Stories drawn from seeds."""
    return drawn("service", len(CASTS))


if __name__ == "__main__":
    run(one)
