"""The bytes that monitoring systems outside get, read by a reader of their own formats (MET-006)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.export.fields import OTLP_REQUEST, message, unpacked, written
from weft.base.errors import PeerError
from weft.wire import protobuf
from weft.wire.exported import ExportedSeries, Point, SeriesNames, otlp_refused, otlp_request, snappy, write_request

pytestmark = pytest.mark.proves("MET-006", part="bytes of remote-write and of OTLP, read by an independent reader")

CPU = ExportedSeries(
    SeriesNames("weft_cpu_ratio", "weft.cpu", "1", "busy time", "a", (("metric", "cpu"), ("cpu", "0")))
)
DISK = ExportedSeries(SeriesNames("weft_disk_bytes", "weft.disk", "By", "used", "b", (("metric", "disk"),)))
POINTS = [Point(CPU, 1_000, 0.5), Point(DISK, 1_500, 7.0), Point(CPU, 2_000, -1.0)]


def test_a_request_of_remote_write_byte_by_byte() -> None:
    one = ExportedSeries(SeriesNames("m", "m", "", "", "a", ()))
    label_1, label_2 = "0a0d 0a08 5f5f6e616d655f5f 1201 6d", "0a09 0a04 6e6f6465 1201 61"
    sample = "120b 09 000000000000e03f 10 01"
    series = bytes.fromhex(f"{label_1} {label_2} {sample}")
    request = bytes([0x0A, len(series)]) + series
    block = bytes([len(request), 0xFC, len(request) - 1, 0, 0, 0]) + request
    assert block == write_request([Point(one, 1, 0.5)])


def test_series_of_remote_write_have_sorted_labels_once_and_their_samples_in_order() -> None:
    assert {
        ("__name__=weft_cpu_ratio", "cpu=0", "metric=cpu", "node=a"): [(1_000, 0.5), (2_000, -1.0)],
        ("__name__=weft_disk_bytes", "metric=disk", "node=b"): [(1_500, 7.0)],
    } == written(write_request(POINTS))


def test_a_request_of_otlp_has_a_resource_for_each_node_and_a_metric_for_each_name() -> None:
    first, second = message(otlp_request(POINTS), OTLP_REQUEST)["resource_metrics"]

    def attributes(said: list[dict[str, object]]) -> dict[object, object]:
        return {each["key"]: each["value"][0]["string_value"] for each in said}  # type: ignore[index]  # JSON-like

    assert {"service.name": "weft", "host.name": "a"} == attributes(first["resource"][0]["attributes"])
    (metric,) = first["scope_metrics"][0]["metrics"]
    assert ("weft.cpu", "1", "busy time") == (metric["name"], metric["unit"], metric["description"])
    points = metric["gauge"][0]["data_points"]
    assert [(10**9, 0.5), (2 * 10**9, -1.0)] == [(each["time_unix_nano"], each["as_double"]) for each in points]
    assert {"metric": "cpu", "cpu": "0"} == attributes(points[0]["attributes"])
    assert "By" == second["scope_metrics"][0]["metrics"][0]["unit"]


@given(st.binary(max_size=1 << 17))
def test_a_block_of_snappy_is_read_by_a_library(data: bytes) -> None:
    assert data == unpacked(snappy(data))


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.floats(allow_nan=False), st.text())
def test_fields_are_read_as_they_were_written(number: int, value: float, words: str) -> None:
    said = protobuf.integer(2, number) + protobuf.double(1, value) + protobuf.text(3, words)
    schema = {1: ("double", float), 2: ("int", int), 3: ("text", str)}
    assert {"int": number, "double": value, "text": words.encode("utf-8", "replace").decode()} == message(said, schema)
    assert [2, 1, 3] == [field for field, _ in protobuf.read(said)]


def test_points_that_a_receiver_of_otlp_has_refused_are_read() -> None:
    partial = protobuf.message(1, protobuf.integer(1, 3), protobuf.text(2, "too old"))
    assert (3, "too old") == otlp_refused(partial)
    assert (0, "") == otlp_refused(b"")


@given(st.binary(max_size=40))
def test_any_answer_is_read_or_refused(answer: bytes) -> None:
    count, why = otlp_refused(answer)
    assert isinstance(count, int)
    assert isinstance(why, str)
    try:
        list(protobuf.read(answer))
    except PeerError as error:
        assert "malformed" == error.code
