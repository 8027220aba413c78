"""Taps at the broker: who is asked to copy, what is published of it, and how a tap ends."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.catalog.rig import Broker, Peer, T
from weft.base.effects import Send, Source
from weft.cores.catalog.context import EVENTS, MONITOR
from weft.cores.catalog.messages import Ports, TapEnded, TapStarted
from weft.cores.kit.tapping import Sampler
from weft.wire.catalog import taps
from weft.wire.catalog.messages import Message

ID = "00ff"


class Tapping(Broker):
    """A broker whose monitor port is open, and what it publishes."""

    def __init__(self, **settings: Any) -> None:
        self.published: list[tuple[bytes, tuple[bytes, ...]]] = []
        self.monitored: list[tuple[bytes, Message]] = []
        super().__init__(**settings)
        self.core.command(Ports(5246, 5247, 5248), self.now)
        self.turn()

    def perform(self, effects: list[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Send) and effect.channel == EVENTS:
                self.published.append((effect.message.topic, effect.message.body))
            elif isinstance(effect, Send) and effect.channel == MONITOR:
                self.monitored.append((effect.peer, effect.message))
        super().perform(effects)

    def service(self, name: str = "thermo", caps: Sequence[str] = ("tap",), address: str = "127.0.0.1") -> Peer:
        peer = self.dealer(address)
        assert [b"OwO"] == peer.commands(b"UwU", {"name": name, "id": f"{name}1", "caps": list(caps)})
        return peer

    def monitor(self, header: Any, *frames: bytes, peer: bytes = b"m1", address: str = "127.0.0.1") -> None:
        """A service says something to the monitor port; its reports with what `start` told it."""
        if isinstance(header, taps.Report) and not header.proof:
            header = replace(header, proof=self.proof)
        said = taps.message_of(header, T, frames)
        self.core.receive(said, Source(MONITOR, peer, None, f"DEALER {address}"), self.now)
        self.turn()

    @property
    def proof(self) -> str:
        """What the service alone was told."""
        started = [json.loads(each.body[0]) for _, each in self.said if each.command == b"O_o"]
        return str([each for each in started if each["type"] == "start"][-1]["proof"])

    def tapped(self) -> list[tuple[bytes, ...]]:
        """What was published of taps."""
        return [body for topic, body in self.published if topic == b"tap/00ff"]

    def begin(self, **wanted: Any) -> Any:
        """An administrator asks for a tap of the service `thermo`."""
        (answer,) = self._ask(self.admin(), {"service": "thermo", "id": ID, **wanted})
        return answer

    def _ask(self, asker: Peer, wanted: dict[str, Any]) -> list[Any]:
        message = Message(b"u_U", T, (b"dbp.tap", json.dumps(wanted).encode()))
        source = Source("catalog", asker.identity, None, f"{asker.kind} {asker.address}")
        self.core.receive(message, source, self.now)
        asker._heard = len(self.said)
        self.turn()
        return [answer.json for answer in asker.heard()]

    def code(self, asker: Peer, **wanted: Any) -> str:
        (answer,) = self._ask(asker, {"service": "thermo", **wanted})
        return str(answer["code"])


def copy_of(**more: Any) -> taps.Copy:
    usual = {"seq": 1, "dir": "in", "socket": "router", "peer": "10.0.0.9/00", "ts": 5.0, "frames": 2, "bytes": 4}
    return taps.Copy(**{"tap": ID, "service": "thermo", "instance": "thermo1", "cut": False, **usual, **more})


def report_of(ended: str = "", **counts: Any) -> taps.Report:
    return taps.Report(tap=ID, service="thermo", instance="thermo1", **{"ended": ended, **counts})


@pytest.mark.proves("MON-001", "MON-002")
def test_a_service_is_asked_over_its_connection_and_told_to_stop_over_it() -> None:
    broker = Tapping()
    thermo = broker.service()
    told = broker.begin(dir="in", sample=3, max_frame=9, rate=7, seconds=2, sockets=["router"])
    assert {"tap": ID, "endpoint": "127.0.0.1:5247", "topic": "tap/00ff", "instances": ["thermo1"]} == told
    (start,) = thermo.heard()
    assert (b"O_o", 1) == (start.command, len(start.body))
    wanted = {"sockets": ["router"], "dir": "in", "sample": 3, "max_frame": 9, "rate": 7, "seconds": 2}
    assert {"type": "start", "tap": ID, "port": 5248, "proof": broker.proof, **wanted} == start.json
    assert 32 == len(broker.proof)
    (shown,) = broker._ask(broker.admin(), {"list": True})
    assert ["00ff", "thermo", ["thermo1"]] == [shown["taps"][0][key] for key in ("tap", "service", "instances")]
    assert [{"tap": ID, "stopped": True}] == broker._ask(broker.admin(), {"stop": ID})
    (stop,) = thermo.heard()
    assert {"type": "stop", "tap": ID} == stop.json


@pytest.mark.proves("MON-001", "CAT-080", part="refusals")
def test_what_cannot_be_tapped_is_refused_and_nobody_is_asked() -> None:
    broker = Tapping()
    plain, far = broker.service("plain", caps=["f64"]), broker.dealer("10.0.0.7")
    broker.req().ask(b"plain")
    assert "unsupported" == broker.code(broker.admin(), service="plain")
    assert "not-registered" == broker.code(broker.admin(), service="nobody")
    assert "bad-argument" == broker.code(broker.admin(), service="")
    assert "bad-argument" == broker.code(broker.admin(), sample=0)
    assert "bad-argument" == broker.code(broker.admin(), stop="77")
    broker.service()
    (denied,) = far.say(b"u_U", b"dbp.tap", {"service": "thermo"})
    assert (b"(O_O)", "not-authorised") == (denied.command, denied.json["code"])
    for number in range(8):
        broker._ask(broker.admin(), {"service": "thermo", "id": f"{number}"})
    assert "limit" == broker.code(broker.admin())
    assert [] == plain.heard()


@pytest.mark.proves("MON-003", "MON-006")
def test_a_copy_is_published_as_it_came() -> None:
    broker = Tapping()
    broker.service()
    broker.begin()
    broker.monitor(report_of())
    broker.monitor(copy_of(word="read"), b"a", b"bcd")
    header = taps.encode_header(copy_of(word="read"))
    assert [(taps.encode_header(report_of()),), (header, b"a", b"bcd")] == broker.tapped()


@pytest.mark.proves("MON-003", part="strangers")
def test_copies_of_strangers_and_of_no_tap_are_dropped_and_counted() -> None:
    broker = Tapping()
    broker.service()
    broker.begin()
    broker.monitor(copy_of(), address="10.0.0.3")
    broker.monitor(copy_of(tap="77"))
    broker.monitor(copy_of(instance="other"))
    broker.monitor(report_of())
    broker.monitor(copy_of(), peer=b"m2")
    assert 4 == broker.counted("tap_dropped", "foreign")
    assert [taps.encode_header(report_of())] == [body[0] for body in broker.tapped()]


@pytest.mark.proves("MON-003", part="strangers on the same machine")
def test_who_comes_first_is_no_member_without_what_the_service_was_told() -> None:
    broker = Tapping()
    broker.service()
    broker.begin()
    broker.monitor(copy_of(), peer=b"other")
    broker.monitor(replace(report_of(), proof="0" * 32), peer=b"other")
    broker.monitor(report_of())
    broker.monitor(copy_of(), b"a")
    broker.monitor(copy_of(), b"forged", peer=b"other")
    published = [taps.encode_header(report_of()), taps.encode_header(copy_of())]
    assert published == [body[0] for body in broker.tapped()], "its own, and no proof in them"
    assert 3 == broker.counted("tap_dropped", "foreign")


@pytest.mark.proves("MON-004", "MON-006")
def test_the_accounts_are_told_last_and_the_tap_is_forgotten() -> None:
    broker = Tapping()
    broker.service()
    broker.begin()
    broker.monitor(report_of(seen=9, copied=5, dropped=1, sampled=3))
    assert [(b"m1", {"type": "beat", "tap": ID})] == [(to, json.loads(said.body[0])) for to, said in broker.monitored]
    broker._ask(broker.admin(), {"stop": ID})
    broker.monitor(report_of("stopped", seen=10, copied=6, dropped=1, sampled=3))
    accounts = {"seen": 10, "copied": 6, "dropped": 1, "sampled": 3}
    assert {"type": "end", "tap": ID, "why": "stopped", **accounts} == json.loads(broker.tapped()[-1][0])
    assert [TapStarted(ID, "thermo", 1, "127.0.0.1"), TapEnded(ID, "thermo", "stopped", **accounts)] == broker.events[
        -2:
    ]
    assert [{"taps": []}] == broker._ask(broker.admin(), {"list": True})


@pytest.mark.proves("MON-005", part="at the broker")
@pytest.mark.parametrize(
    ("wanted", "reports_s", "expected"),
    [({"seconds": 5}, 1.0, ("time", 6.0)), ({"seconds": 60}, 99.0, ("silent", 3.0))],
    ids=["at its time", "when the service is silent"],
)
def test_a_tap_ends_by_itself(wanted: Any, reports_s: float, expected: tuple[str, float]) -> None:
    broker = Tapping()
    broker.service()
    broker.begin(**wanted)
    began, next_s = broker.now.mono, reports_s
    while not any(isinstance(event, TapEnded) for event in broker.events):
        broker.pass_time(0.5)
        if (broker.now.mono - began) / 1e9 >= next_s:
            next_s += reports_s
            broker.monitor(report_of())
    assert expected == (broker.events[-1].why, round((broker.now.mono - began) / 1e9, 1))


@pytest.mark.proves("MON-007")
def test_the_broker_taps_itself_and_nothing_that_belongs_to_taps() -> None:
    broker = Tapping()
    broker.begin(service="dbp.broker", max_frame=0)
    asker = broker.req()
    asker.ask(b"zz")
    broker.service()
    broker._ask(broker.admin(), {"list": True})
    copies = [json.loads(body[0]) for body in broker.tapped() if b'"copy"' in body[0]]
    routed = [
        (each["dir"], each["peer"].partition("/")[0], each["sizes"][1]) for each in copies if each["socket"] == "router"
    ]
    assert [("in", "127.0.0.1", 3), ("out", "", 3), ("in", "127.0.0.1", 3), ("out", "", 3)] == routed
    assert [("out", "pub")] == [(each["dir"], each["socket"]) for each in copies if each["socket"] == "pub"]
    broker._ask(broker.admin(), {"stop": ID})
    end = json.loads(broker.tapped()[-1][0])
    assert (5, 5, "stopped") == (end["seen"], end["copied"], end["why"])
    before = len(broker.tapped())
    asker.ask(b"zz")
    assert before == len(broker.tapped())


@given(
    st.lists(st.tuples(st.sampled_from(("in", "out")), st.sampled_from(("router", "pub")), st.integers(0, 10**8))),
    st.integers(1, 5),
    st.integers(1, 100),
    st.sampled_from(("in", "out", "both")),
)
@pytest.mark.proves("MON-004", part="the accounts balance whatever passes")
def test_accounts_balance_whatever_passes(passed: list[tuple[str, str, int]], sample: int, rate: int, way: str) -> None:
    sampler, mono = Sampler(("router",), way, sample, rate), 10**9
    copied = 0
    for going, socket, gap in passed:
        mono += gap
        idle = sampler.idle(mono)
        if idle.messages and mono < idle.until and socket == "router":
            sampler.skip(going, socket, 1)
        elif sampler.takes(going, socket, mono):
            copied += 1
            if copied % 3 == 0:
                sampler.lose()
    wanted = [1 for going, socket, _ in passed if socket == "router" and way in ("both", going)]
    assert (len(wanted), copied - copied // 3, copied // 3) == (sampler.seen, sampler.copied, sampler.dropped)
    assert sampler.seen == sampler.copied + sampler.dropped + sampler.sampled
    windows = 1 + sum(gap for *_, gap in passed) // 10**8
    assert copied <= windows * max(1, rate // 10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"sample": 0},
        {"sample": 1_000_001},
        {"max_frame": -1},
        {"max_frame": (1 << 20) + 1},
        {"rate": 0},
        {"rate": 1_000_001},
    ],
)
def test_a_tap_of_less_than_nothing_or_of_too_much_is_refused(wrong: dict[str, int]) -> None:
    assert 256 == msgspec.convert({}, taps.Wanted).max_frame
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, taps.Wanted)
