"""DATA: one sample in five frames, as foreign nodes send it (MEA-020). Nothing promises that it arrives.

    data   = source properties time value base          PUB connect -> SUB bind +4
    source = endpoint of who measured
    properties = JSON object {type, detail, config-name, config-seqid, labels}
    time   = u64, milliseconds since 1970        value, base = IEEE double in network order, base may be empty
    beat   = source '{"type":"HUGZ"}' [time] empty empty

Older nodes wrap each property into a pair with the name of its type, and write labels beside the others: both are read.
What is no DATA raises PeerError: `frame-count`, `endpoint`, `properties`, `time`, `value`, `base`, `too-large`.
"""

import struct
from typing import Any, Final

import msgspec

from weft.base.errors import PeerError
from weft.wire import jsontext
from weft.wire.parts import is_count, read_endpoint
from weft.wire.samples import (
    KIND_BYTES_MAX,
    LABEL_BYTES_MAX,
    LABEL_VALUE_BYTES_MAX,
    LABELS_MAX,
    MS_MAX,
    NAME_BYTES_MAX,
)

FRAMES: Final = 5
PROPERTIES_BYTES_MAX: Final = 16 << 10  # sixteen labels take 5 KiB
BEAT: Final = "HUGZ"
_DOUBLE: Final = struct.Struct(">d")
_OWN: Final = ("type", "detail", "config-name", "config-seqid", "labels")


class Data(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One sample. Repeats are those of the same (source, config_name, time_ms)."""

    source: str
    """The endpoint of who measured."""
    type: str
    detail: str
    config_name: str
    config_number: int | None = None
    """The number of the configuration under which it was measured; None: not given."""
    labels: dict[str, str] = {}
    time_ms: int
    value: float
    base: float | None = None


class DataHugz(msgspec.Struct, frozen=True, gc=False):
    """The source is alive, and has no sample."""

    source: str
    time_ms: int | None = None


def encode(message: Data | DataHugz) -> list[bytes]:
    """The five frames of a sample or beat."""
    if type(message) is DataHugz:
        at = b"" if message.time_ms is None else message.time_ms.to_bytes(8)
        return [message.source.encode(), jsontext.encode({"type": BEAT}), at, b"", b""]
    assert type(message) is Data
    properties: dict[str, Any] = {"type": message.type, "detail": message.detail, "config-name": message.config_name}
    if message.config_number is not None:
        properties["config-seqid"] = message.config_number
    if message.labels:
        properties["labels"] = message.labels
    return [
        message.source.encode(),
        jsontext.encode(properties),
        message.time_ms.to_bytes(8),
        _DOUBLE.pack(message.value),
        b"" if message.base is None else _DOUBLE.pack(message.base),
    ]


def decode(frames: list[bytes]) -> Data | DataHugz:
    """The sample or beat of five frames. A value that is no number is kept, and judged where samples are typed."""
    if len(frames) != FRAMES:
        raise PeerError("frame-count", f"{len(frames)} frames", frames[0] if frames else b"")
    source, properties, at, value, base = frames
    found = jsontext.decode_object(properties, PROPERTIES_BYTES_MAX, "properties")
    plain = {name: jsontext.unpaired(inner) for name, inner in found.items()}
    if plain.get("type") == BEAT:
        if value or base:
            raise PeerError("value", "a beat has none", value or base)
        return DataHugz(read_endpoint(source), _time(at) if at else None)
    number = plain.get("config-seqid")
    if number is not None and not is_count(number):
        raise PeerError("properties", "config-seqid is no number", properties)
    return Data(
        source=read_endpoint(source),
        type=_name(plain, "type", KIND_BYTES_MAX, properties),
        detail=_name(plain, "detail", KIND_BYTES_MAX, properties),
        config_name=_name(plain, "config-name", NAME_BYTES_MAX, properties),
        config_number=number,
        labels=_labels(plain, properties),
        time_ms=_time(at),
        value=_double(value, "value"),
        base=_double(base, "base") if base else None,
    )


def _time(frame: bytes) -> int:
    time_ms = int.from_bytes(frame)
    if len(frame) != 8 or time_ms > MS_MAX:
        raise PeerError("time", f"{len(frame)} bytes, or beyond the end of time", frame)
    return time_ms


def _double(frame: bytes, what: str) -> float:
    if len(frame) != _DOUBLE.size:
        raise PeerError(what, f"{len(frame)} bytes", frame)
    number: float = _DOUBLE.unpack(frame)[0]
    return number


def _name(plain: dict[str, Any], name: str, bytes_max: int, frame: bytes) -> str:
    text = plain.get(name)
    if type(text) is not str or not 0 < len(text.encode()) <= bytes_max:
        raise PeerError("properties", f"{name} is missing, or of another type", frame)
    return text


def _labels(plain: dict[str, Any], frame: bytes) -> dict[str, str]:
    """Those under `labels`, and every other property that is a scalar."""
    inner = plain.get("labels", {})
    if type(inner) is not dict:
        raise PeerError("properties", "labels are no object", frame)
    labels = {name: _label(value) for name, value in plain.items() if name not in _OWN} | {
        name: _label(value) for name, value in inner.items()
    }
    too_long = any(
        len(name.encode()) > LABEL_BYTES_MAX or len(text.encode()) > LABEL_VALUE_BYTES_MAX
        for name, text in labels.items()
    )
    if too_long or len(labels) > LABELS_MAX:
        raise PeerError("too-large", f"{len(labels)} labels, or a long one", frame)
    return labels


def _label(value: Any) -> str:
    return value if type(value) is str else jsontext.encode(value).decode()
