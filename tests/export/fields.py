"""A reader of Protocol Buffers that knows nothing of Weft's writer: messages by a table, as their `.proto` has them.

Of Prometheus: prompb/remote.proto and types.proto; of OpenTelemetry: metrics/v1/metrics.proto.
"""

import struct
from typing import Any, Final

import pyarrow as pa

Schema = dict[int, tuple[str, Any]]
"""Number of a field: its name, and `str`, `int`, `float`, `fixed`, or the schema of a repeated message."""

LABEL: Final[Schema] = {1: ("name", str), 2: ("value", str)}
SAMPLE: Final[Schema] = {1: ("value", float), 2: ("timestamp", int)}
SERIES: Final[Schema] = {1: ("labels", LABEL), 2: ("samples", SAMPLE)}
WRITE_REQUEST: Final[Schema] = {1: ("timeseries", SERIES)}

KEY_VALUE: Final[Schema] = {1: ("key", str), 2: ("value", {1: ("string_value", str)})}
DATA_POINT: Final[Schema] = {7: ("attributes", KEY_VALUE), 3: ("time_unix_nano", "fixed"), 4: ("as_double", float)}
METRIC: Final[Schema] = {
    1: ("name", str),
    2: ("description", str),
    3: ("unit", str),
    5: ("gauge", {1: ("data_points", DATA_POINT)}),
}
SCOPE: Final[Schema] = {1: ("scope", {1: ("name", str)}), 2: ("metrics", METRIC)}
RESOURCE: Final[Schema] = {1: ("resource", {1: ("attributes", KEY_VALUE)}), 2: ("scope_metrics", SCOPE)}
OTLP_REQUEST: Final[Schema] = {1: ("resource_metrics", RESOURCE)}


def message(data: bytes, schema: Schema) -> dict[str, Any]:
    """The fields by name; those of messages as lists. KeyError for a field that the schema does not have."""
    found: dict[str, Any] = {}
    while data:
        key, data = varint(data)
        name, kind = schema[key >> 3]
        if key & 7 == 0:
            assert kind is int
            number, data = varint(data)
            found[name] = number - (1 << 64) if number >> 63 else number
        elif key & 7 == 1:
            assert kind in (float, "fixed")
            found[name] = struct.unpack("<d" if kind is float else "<Q", data[:8])[0]
            data = data[8:]
        else:
            assert 2 == key & 7
            size, data = varint(data)
            assert size <= len(data)
            value, data = data[:size], data[size:]
            if kind is str:
                found[name] = value.decode()
            else:
                found.setdefault(name, []).append(message(value, kind))
    return found


def varint(data: bytes) -> tuple[int, bytes]:
    end = next(at for at, byte in enumerate(data) if byte < 0x80) + 1
    return sum((byte & 0x7F) << 7 * at for at, byte in enumerate(data[:end])), data[end:]


def unpacked(block: bytes) -> bytes:
    """A Snappy block, read by the library that pyarrow brings."""
    size, _ = varint(block)
    return bytes(pa.decompress(block, size, "snappy", asbytes=True))


def written(body: bytes) -> dict[tuple[str, ...], list[tuple[int, float]]]:
    """The samples of a body of remote-write, by their labels as `name=value`."""
    said = message(unpacked(body), WRITE_REQUEST)
    found: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    for series in said.get("timeseries", []):
        labels = [label["name"] for label in series["labels"]]
        assert sorted(labels) == labels
        key = tuple(f"{label['name']}={label['value']}" for label in series["labels"])
        assert key not in found
        found[key] = [(each["timestamp"], each["value"]) for each in series["samples"]]
    return found
