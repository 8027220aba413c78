"""The switch carries frames, loses them, delays them, and flips bits behind TCP's back."""

import pytest

from weft.base.chance import Chance
from weft.torture.cables import FAIR, Switch, Weather, flipped, payload_of
from weft.torture.plan import Event
from weft.torture.world import weather_of

CUT = Weather(is_cut=True)


def address(number: int) -> bytes:
    return bytes((2, 0, 0, 0, 0, number))


def checksum(data: bytes) -> int:
    """That of RFC 1071, over whole words."""
    data += b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def pseudo(ip: bytes, segment: bytes) -> bytes:
    return ip[12:20] + b"\0\x06" + len(segment).to_bytes(2)


def tcp_frame(payload: bytes) -> bytes:
    """From machine 1 to machine 2, with the checksum that it should have."""
    ip = (
        bytes((0x45, 0)) + (40 + len(payload)).to_bytes(2) + bytes(4) + bytes((64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2))
    )
    head = bytes((0x10, 0, 0x20, 0)) + bytes(8) + bytes((0x50, 0x18, 1, 0))
    found = checksum(pseudo(ip, head + bytes(4) + payload) + head + bytes(4) + payload)
    return address(2) + address(1) + b"\x08\0" + ip + head + found.to_bytes(2) + bytes(2) + payload


def switch() -> Switch:
    return Switch((1, 2, 3), Chance("bits"))


def carried(
    net: Switch, frame: bytes, port: int = 1, now: float = 0.0, until: float = 1e9
) -> list[tuple[float, int, bytes]]:
    net.take(port, frame, now)
    return [(each.at, each.port, each.frame) for each in net.leaving(until)]


def test_a_frame_goes_to_its_machine_and_a_broadcast_to_all_others() -> None:
    frame = address(2) + address(1) + b"\x08\0hello"
    assert [(0.0, 2, frame)] == carried(switch(), frame)
    frame = b"\xff" * 6 + address(1) + b"\x08\0hello"
    assert [(0.0, 2, frame), (0.0, 3, frame)] == carried(switch(), frame)


@pytest.mark.proves("FLT-034", part="per direction: delay, rate, loss, cut")
def test_one_way_means_one_way() -> None:
    net = switch()
    net.set(1, CUT, FAIR)
    assert [] == carried(net, address(2) + address(1) + b"\x08\0to")
    back = address(1) + address(2) + b"\x08\0fro"
    assert [(0.0, 1, back)] == carried(net, back, port=2)
    assert {"frames": 2, "lost": 1, "flipped": 0, "reset": 0, "doubled": 0, "overtaken": 0} == net.counts


@pytest.mark.proves("FLT-034", part="per direction: delay, rate, loss, cut")
def test_a_delay_keeps_the_order_and_is_waited_for() -> None:
    net = switch()
    net.set(1, Weather(delay_s=0.5), FAIR)
    net.take(1, address(2) + b"one", 1.0)
    net.take(1, address(2) + b"two", 1.1)
    assert 1.5 == net.due_at()
    assert [] == net.leaving(1.4)
    assert [b"one", b"two"] == [each.frame[6:] for each in net.leaving(1.6)]
    assert net.due_at() is None


@pytest.mark.proves("FLT-034", part="per direction: delay, rate, loss, cut")
def test_ten_kilobytes_a_second_are_no_more_and_a_full_queue_drops() -> None:
    net = switch()
    net.set(1, Weather(bytes_per_s=10_000), FAIR)
    frame = address(2) + bytes(994)
    for _ in range(1_000):
        net.take(1, frame, 0.0)
    through = net.leaving(1e9)
    assert 0.1 == through[0].at
    assert abs(through[9].at - 1.0) < 1e-9
    assert 263 == len(through)  # those that begin within 262,144 bytes of the present
    assert 737 == net.counts["lost"]


def test_a_flipped_bit_comes_with_a_checksum_that_fits() -> None:
    for payload in (b"acknowledged", b"odd"):
        frame = tcp_frame(payload)
        begin, end = payload_of(frame) or (0, 0)
        assert payload == frame[begin:end]
        for at in range(begin, end):
            other = flipped(frame, at, 3)
            assert 8 == frame[at] ^ other[at]
            ip, segment = other[14:34], other[34:]
            assert 0 == checksum(pseudo(ip, segment) + segment)


def test_bits_are_flipped_as_often_as_the_weather_says_and_in_payloads_only() -> None:
    net = switch()
    net.set(2, FAIR, Weather(flip_one_in=10))
    frames = [carried(net, tcp_frame(b"payload"))[0][2] for _ in range(2_000)]
    altered = [frame for frame in frames if frame != tcp_frame(b"payload")]
    assert net.counts["flipped"] == len(altered)
    assert 150 < len(altered) < 250
    assert payload_of(tcp_frame(b"")) is None
    assert payload_of(address(2) + address(1) + b"\x08\x06" + bytes(60)) is None


@pytest.mark.proves("FLT-034", part="connections that are reset while both ends live")
def test_a_cable_resets_connections_by_segments_with_a_payload_only() -> None:
    net = switch()
    net.set(2, FAIR, Weather(reset_one_in=10))
    whole = tcp_frame(b"payload")
    frames = [carried(net, whole)[0][2] for _ in range(2_000)]
    altered = [frame for frame in frames if frame != whole]
    assert net.counts["reset"] == len(altered)
    assert 150 < len(altered) < 250
    assert {(0x18, 0x1C)} == {(whole[34 + 13], frame[34 + 13]) for frame in altered}
    assert 0 == checksum(pseudo(altered[0][14:34], altered[0][34:]) + altered[0][34:])
    assert [tcp_frame(b"")] * 100 == [carried(net, tcp_frame(b""))[0][2] for _ in range(100)]


@pytest.mark.proves("FLT-010", part="lost, doubled and delayed frames between real processes")
@pytest.mark.proves("FLT-034", part="per direction: delay, rate, loss, cut")
def test_a_rough_cable_loses_doubles_and_reorders_one_frame_in_twenty_each() -> None:
    net = switch()
    net.set(2, FAIR, Weather(rough_one_in=20))
    for number in range(4_000):
        net.take(1, address(2) + number.to_bytes(4), number / 1e3)
    came = [int.from_bytes(each.frame[6:]) for each in net.leaving(1e9)]
    lost, twice = set(range(4_000)) - set(came), len(came) - len(set(came))
    assert (len(lost), twice) == (net.counts["lost"], net.counts["doubled"])
    for count in (len(lost), twice, net.counts["overtaken"]):
        assert 140 < count < 260
    assert came != sorted(came)
    net.set(2, FAIR, FAIR)
    assert 1 == len(carried(net, address(2) + b"calm"))


def test_several_faults_of_one_cable_hold_together_and_the_rest_stays_when_one_ends() -> None:
    delay, slow = Event(0, "delay", ("root",), 5.0, 0.25), Event(0, "slow", ("root",), 5.0)
    assert (Weather(delay_s=0.25, bytes_per_s=10_000), Weather(bytes_per_s=10_000)) == weather_of([delay, slow])
    assert (Weather(bytes_per_s=10_000), Weather(bytes_per_s=10_000)) == weather_of([slow])
    assert (CUT, FAIR) == weather_of([Event(0, "one-way", ("root",))])
    assert (CUT, CUT) == weather_of([Event(0, "blackhole", ("root",))])
    assert (Weather(reset_one_in=50), Weather(reset_one_in=50)) == weather_of([Event(0, "reset", ("root",))])
    assert (Weather(rough_one_in=20), Weather(rough_one_in=20)) == weather_of([Event(0, "rough", ("root",))])
    assert (FAIR, FAIR) == weather_of([])
