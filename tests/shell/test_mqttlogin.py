"""A broker that others reach, too: TLS, user and password, and a code on all that is said through it."""

import asyncio
import ssl
from collections import Counter
from pathlib import Path
from typing import Any, Self

import pytest

from tests.patience import PATIENCE_S
from tests.shell import certificate
from tests.shell.ports import free_port
from tests.shell.test_mqtt import Linked, Puppet, played
from weft.base.chance import Chance
from weft.base.errors import UserError
from weft.node.settings import settings_of
from weft.node.storetable import StoreTable
from weft.shell.broker import Broker
from weft.shell.mqtt import MqttLink, Place, Ways
from weft.shell.mqttlogin import Login, Sealer, login_of

SECRET = bytes(range(32))
SEALED = bytes.fromhex("81a25f6d93c40411e1ce95c410a7ca779521519202f454cdd70aec183fc4026869")
CONNECT = b"\x10\x00\x04MQTT\x04\xc2\x00\x0f"
"""3.1.1; user, password, clean; asked after 15 s. Without its length."""


def pair(place: Path) -> Path:
    path = place / "broker.pem"
    path.write_text(certificate.PAIR, "ascii")
    return path


def password(place: Path, mode: int = 0o600) -> str:
    path = place / "broker.password"
    path.write_text("sesame open\nand nothing of this\n", "utf-8")
    path.chmod(mode)
    return path.name


class Locked(Puppet):
    """A broker that speaks TLS only."""

    def __init__(self, chain: Path, connack: bytes = b"\x20\x02\x00\x00") -> None:
        super().__init__(connack)
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.tls.load_cert_chain(chain)

    async def __aenter__(self) -> Self:
        self.server = await asyncio.start_server(self._meet, "127.0.0.1", self.port, ssl=self.tls)
        return self


def linked(port: int, ways: Ways) -> Linked:
    made = Linked(f"127.0.0.1:{port}")
    made.link = MqttLink(made.node, Place.of(f"127.0.0.1:{port}", "weft"), Chance("7"), Counter(), ways)
    return made


def table(**said: Any) -> StoreTable:
    return StoreTable(broker="127.0.0.1:8883", **said)


@pytest.mark.proves(
    "LNK-030", part="links over MQTT: TLS, whose certificate has to fit, and user and password from a file"
)
def test_user_and_password_are_said_under_tls_to_a_broker_whose_certificate_fits(tmp_path: Path) -> None:
    async def scene() -> None:
        said = table(
            broker_tls=True, broker_ca=pair(tmp_path).name, broker_user="n3", broker_password=password(tmp_path)
        )
        login = login_of(said, tmp_path)
        assert "sesame" not in repr(login)
        async with Locked(tmp_path / "broker.pem") as broker, linked(broker.port, Ways(login)) as one:
            await one.up()
            assert (CONNECT, b"\x00\x02n3\x00\x0bsesame open") == (broker.said[0][:11], broker.said[0][-17:])

    played(scene)


@pytest.mark.proves("LNK-030", part="a broker with another certificate, or without one, is told nothing")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # paho forgets a socket whose handshake fails
def test_a_broker_that_nobody_vouches_for_is_told_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        attempts = Attempts()
        monkeypatch.setattr("weft.shell.mqtt.wait_s", attempts.wait_s)
        pair(tmp_path)
        secret = password(tmp_path)
        strange = login_of(table(broker_tls=True, broker_user="n3", broker_password=secret), tmp_path)
        async with Locked(tmp_path / "broker.pem") as broker:
            await _in_vain(linked(broker.port, Ways(strange)), attempts)
            assert [] == broker.said
        known = login_of(
            table(broker_tls=True, broker_ca="broker.pem", broker_user="n3", broker_password=secret), tmp_path
        )
        async with Puppet() as plain:
            await _in_vain(linked(plain.port, Ways(known)), attempts)
            assert not any(b"sesame" in packet for packet in plain.said)

    played(scene)


class Attempts:
    """Counts attempts that failed, and lets the next one follow at once."""

    def __init__(self) -> None:
        self.third = asyncio.Event()

    def wait_s(self, failures: int, _: Chance) -> float:
        if failures >= 3:
            self.third.set()
        return 0.01


async def _in_vain(link: Linked, attempts: Attempts) -> None:
    async with asyncio.timeout(PATIENCE_S), link:
        await attempts.third.wait()
        attempts.third.clear()
    assert [] == link.node.orders


def test_a_sealed_message_is_these_bytes_and_opens_below_its_topic_only() -> None:
    sealer = Sealer(SECRET)
    assert SEALED == sealer.seal("weft/update", b"hi")
    assert [b"hi", None] == [sealer.open(topic, SEALED) for topic in ("weft/update", "weft/info")]
    wrong = [b"hi", b"", b"\x81", SEALED[:-1], SEALED[:-1] + b"!", SEALED + b"x", b"\x91" * 10_000]
    assert [None] * 7 == [sealer.open("weft/update", data) for data in wrong]
    assert Sealer(bytes(32)).open("weft/update", SEALED) is None


@pytest.mark.proves("LNK-030", part="what bears no code of the fabric is dropped as bad-mac, and its own are heard")
def test_what_bears_no_code_is_dropped_and_counted() -> None:
    async def scene() -> None:
        port = free_port()
        broker = Broker(port)
        await broker.start()
        ours, stranger = Ways(sealer=Sealer(SECRET)), Ways()
        lenient = Ways(sealer=Sealer(SECRET), is_required=False)
        async with linked(port, ours) as first, linked(port, stranger) as other, linked(port, lenient) as third:
            one, two, three = await first.up(), await other.up(), await third.up()
            two.say("update", b"evil")
            await two.until_heard(1)
            one.say("update", b"good")
            await one.until_heard(1)
            await three.until_heard(2)
            assert [(b"update", b"good")] == one.heard
            assert {"store-mqtt:bad-mac": 1} == first.link.dropped
            assert [(b"update", b"evil"), (b"update", b"good")] == three.heard
            await two.until_heard(2)
            assert two.heard[1][1].startswith(b"\x81\xa2_m")
        await broker.close()

    played(scene)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"broker_tls": True, "broker_ca": "nowhere.pem"}, "bad-broker"),
        ({"broker_tls": True, "broker_ca": "broker.password"}, "bad-broker"),
        ({"broker_user": "n3", "broker_password": "nowhere"}, "bad-broker"),
        ({"broker_user": "n3", "broker_password": "open"}, "open-keys"),
    ],
)
def test_files_that_cannot_be_used_end_the_start_with_a_mend(tmp_path: Path, said: dict[str, Any], code: str) -> None:
    password(tmp_path)
    (tmp_path / "open").write_text("sesame")
    (tmp_path / "open").chmod(0o644)
    with pytest.raises(UserError) as refused:
        login_of(table(**said), tmp_path)
    assert code == refused.value.code
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize(
    "said",
    [
        {"broker": "10.0.0.7:1883", "broker_user": "n3", "broker_password": "p"},
        {"broker": "10.0.0.7:1883", "broker_user": "n3", "broker_tls": True},
        {"broker": "10.0.0.7:1883", "broker_ca": "ca.pem"},
        {"broker": "embedded", "broker_tls": True},
        {"broker_tls": True},
    ],
)
def test_settings_that_would_say_a_password_in_the_clear_or_mean_nothing_are_refused(said: dict[str, Any]) -> None:
    with pytest.raises(UserError) as refused:
        settings_of({"node": {"name": "n3", "level": "root"}, "store": said})
    assert "E05 store.broker_" in str(refused.value)


def test_where_nothing_is_said_nothing_is_needed(tmp_path: Path) -> None:
    assert Login() == login_of(table(), tmp_path)
