"""DATA of foreign nodes: the vectors, the older form, and refusals by the name of the frame."""

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.strategies import ANY_FRAMES, COUNTS, ENDPOINTS, LABELS
from tests.wire.strict import LINES, frames_of
from weft.base.errors import PeerError
from weft.wire import data
from weft.wire.data import Data, DataHugz
from weft.wire.samples import MS_MAX

CPU = Data(
    source="10.0.0.9:27500",
    type="percent",
    detail="CPU",
    config_name="cpu",
    config_number=8,
    time_ms=1_767_225_600_000,
    value=48_730.0,
    base=150_519.0,
)
HERE, AT, ONE = b"10.0.0.9:27500", (1_767_225_600_000).to_bytes(8), struct.pack(">d", 1.0)
NAMED = b'{"type":"basic","detail":"MEMORY","config-name":"mem"}'


@pytest.mark.parametrize(
    "name, expected", [("st-data", CPU), ("st-data-hugz", DataHugz("10.0.0.9:27500"))], ids=["data", "hugz"]
)
def test_vectors_are_read_and_written_byte_for_byte(name: str, expected: Data | DataHugz) -> None:
    frames = frames_of(LINES[name])
    assert expected == data.decode(frames)
    assert frames == data.encode(expected)


OLDER = {
    "detail": ["str", "MEMORY"],
    "config-name": ["str", "mem-aggr"],
    "config-seqid": ["int", 3],
    "type": ["str", "aggregate-sum"],
    "is-final": ["bool", True],
    "node-cnt": ["int", 2],
    "aggr-source": ["EndpntSpec", {"host": "localhost", "port": 55730}],
}


def test_older_nodes_wrap_values_and_write_labels_beside_the_others() -> None:
    expected = Data(
        source="localhost:55730",
        type="aggregate-sum",
        detail="MEMORY",
        config_name="mem-aggr",
        config_number=3,
        labels={"is-final": "true", "node-cnt": "2", "aggr-source": "localhost:55730"},
        time_ms=1_795_227_109_995,
        value=1.0,
    )
    frames = [b"localhost:55730", json.dumps(OLDER).encode(), expected.time_ms.to_bytes(8), ONE, b""]
    assert expected == data.decode(frames)
    assert DataHugz("localhost:1", 5) == data.decode(
        [b"localhost:1", b'{"type": ["str", "HUGZ"]}', (5).to_bytes(8), b"", b""]
    )


@pytest.mark.parametrize(
    "frames, expected",
    [
        ([], "frame-count"),
        ([HERE, NAMED, AT, ONE], "frame-count"),
        ([b"here", NAMED, AT, ONE, b""], "endpoint"),
        ([HERE, b"", AT, ONE, b""], "properties"),
        ([HERE, b"[]", AT, ONE, b""], "properties"),
        ([HERE, b'{"type":"basic","detail":"MEMORY"}', AT, ONE, b""], "properties"),
        ([HERE, NAMED[:-1] + b',"detail":"CPU"}', AT, ONE, b""], "properties"),
        ([HERE, NAMED[:-1] + b',"config-seqid":-1}', AT, ONE, b""], "properties"),
        ([HERE, NAMED[:-1] + b',"labels":[]}', AT, ONE, b""], "properties"),
        ([HERE, NAMED[:-1] + b',"labels":{"a":"' + b"x" * 257 + b'"}}', AT, ONE, b""], "too-large"),
        ([HERE, NAMED[:-1] + b"".join(b',"%d":1' % n for n in range(17)) + b"}", AT, ONE, b""], "too-large"),
        ([HERE, NAMED + b" " * 17_000, AT, ONE, b""], "too-large"),
        ([HERE, b'{"type":"","detail":"MEMORY","config-name":"mem"}', AT, ONE, b""], "properties"),
        ([HERE, NAMED, b"", ONE, b""], "time"),
        ([HERE, NAMED, (MS_MAX + 1).to_bytes(8), ONE, b""], "time"),
        ([HERE, NAMED, AT, b"", b""], "value"),
        ([HERE, NAMED, AT, ONE, ONE[1:]], "base"),
        ([HERE, b'{"type":"HUGZ"}', b"x", b"", b""], "time"),
        ([HERE, b'{"type":"HUGZ"}', b"", ONE, b""], "value"),
    ],
)
def test_what_is_no_data_is_refused_by_name(frames: list[bytes], expected: str) -> None:
    with pytest.raises(PeerError) as error:
        data.decode(frames)
    assert expected == error.value.code


NAMES = st.text("abcé-_", min_size=1, max_size=12)
SAMPLES = st.builds(
    Data,
    source=ENDPOINTS,
    type=NAMES,
    detail=NAMES,
    config_name=NAMES,
    config_number=st.none() | COUNTS,
    labels=LABELS,
    time_ms=st.integers(0, MS_MAX),
    value=st.floats(allow_nan=False),
    base=st.none() | st.floats(allow_nan=False),
)


@given(SAMPLES | st.builds(DataHugz, ENDPOINTS, st.none() | st.integers(0, MS_MAX)))
def test_data_that_is_written_is_read(message: Data | DataHugz) -> None:
    assert message == data.decode(data.encode(message))


def test_a_value_that_is_no_number_is_kept() -> None:
    frames = [HERE, NAMED, AT, struct.pack(">d", float("nan")), struct.pack(">d", float("-inf"))]
    message = data.decode(frames)
    assert isinstance(message, Data)
    assert (True, float("-inf")) == (message.value != message.value, message.base)


@pytest.mark.proves("FUZ-001")
@given(ANY_FRAMES | st.tuples(st.just(HERE), st.binary() | st.just(NAMED), *[st.binary(max_size=9) | st.just(ONE)] * 3))
def test_any_frames_are_data_or_a_refusal(frames: Any) -> None:
    try:
        message = data.decode(list(frames))
    except PeerError:
        return
    again = data.encode(message)
    assert again == data.encode(data.decode(again))
