"""The original nodes of 2014: what they were heard to say, pickles in both directions, and what is refused."""

import json
import pickle
import types
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.strict import frames_of, lines
from weft.base.errors import PeerError
from weft.wire import data, discovery, pickles
from weft.wire.dcamp2014 import Ask, Beat, End, Pair, decode, encode, shown
from weft.wire.pickles import Made

LINES = list(lines("config-dcamp2014.jsonl").values())
ABOVE_AND_BELOW = ("parent", "children")
"""What the original nodes say of a node's place, and nobody uses."""


def of_socket(*numbers: str) -> list[dict[str, Any]]:
    return [line for line in LINES if any(f"(+{number})" in line["direction"] for number in numbers)]


def without_places(value: Any) -> Any:
    if isinstance(value, list):
        return [without_places(one) for one in value]
    if isinstance(value, dict):
        return {key: without_places(one) for key, one in value.items() if key not in ABOVE_AND_BELOW}
    return value


def meaning(message: Any) -> dict[str, Any]:
    match message:
        case Ask(subtree):
            return {"key": "ICANHAZ", "seq": 0, "value": subtree}
        case End(subtree, number):
            return {"key": "KTHXBAI", "seq": number, "value": subtree}
        case Beat(key):
            return {"key": key, "seq": 0, "value": None}
        case _:
            return {"key": message.key, "seq": message.number, "value": without_places(shown(message.value))}


@pytest.mark.proves("CFG-100", "CFG-101")
@pytest.mark.parametrize("line", of_socket("2", "3"), ids=lambda line: line["id"])
def test_what_original_nodes_said_of_the_configuration_is_read(line: dict[str, Any]) -> None:
    means = {key: without_places(line["means"][key]) for key in ("key", "seq", "value")}
    assert means == meaning(decode(frames_of(line)))


@pytest.mark.proves("CFG-102", part="what was read is written so that it means the same")
@pytest.mark.parametrize("line", of_socket("2", "3"), ids=lambda line: line["id"])
def test_what_was_read_and_written_means_the_same(line: dict[str, Any]) -> None:
    message = decode(frames_of(line))
    if isinstance(message, Pair):
        message = Pair(message.key, message.number, placeless(message.value))
    assert meaning(message) == meaning(decode(encode(message)))


def placeless(value: Any) -> Any:
    if isinstance(value, Made) and value.kind == "TopoNode":
        return Made(value.kind, value.fields | {"parent": None, "children": []})
    return value


@pytest.mark.parametrize("line", of_socket("0", "1", "4"), ids=lambda line: line["id"])
def test_what_they_said_elsewhere_is_read_where_ours_is(line: dict[str, Any]) -> None:
    means, frames = line["means"], frames_of(line)
    if "source" in means:
        assert means["source"] == data.decode(frames).source
    elif "command" in means:
        assert means["endpoint"] == discovery.decode_control(frames).message.endpoint
    elif means["key"].startswith("/GROUP/"):
        assert "key" == refused(discovery.decode_announcement, frames)  # `stop` without a fleet's name: anybody's
    else:
        assert (means["key"], means["endpoint"]) == (
            (said := discovery.decode_announcement(frames)).key,
            said.endpoint,
        )


def refused(read: Callable[[Any], Any], said: Any) -> str:
    with pytest.raises(PeerError) as raised:
        read(said)
    return raised.value.code


# Beside Python's own machine


class EndpntSpec(NamedTuple):
    host: str
    port: int


class MetricSpec(NamedTuple):
    config_name: str
    rate: int
    threshold: Any
    detail: str
    param: Any
    aggr: Any


class TopoNode:
    def __init__(self, **said: Any) -> None:
        self.__dict__.update(said)


@pytest.fixture(autouse=True, scope="module")
def _original_modules() -> Iterator[None]:
    """Modules of the names that the original nodes have, for Python's own machine."""
    kinds = {"dcamp.types.specs": (EndpntSpec, MetricSpec), "dcamp.types.topo": (TopoNode,)}
    with pytest.MonkeyPatch.context() as patch:
        for package in ("dcamp", "dcamp.types"):
            patch.setitem(__import__("sys").modules, package, types.ModuleType(package))
        for name, classes in kinds.items():
            module = types.ModuleType(name)
            for one in classes:
                one.__module__, one.__qualname__ = name, one.__name__
                setattr(module, one.__name__, one)
            patch.setitem(__import__("sys").modules, name, module)
        yield


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 127), 1 << 127)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
    ),
    max_leaves=12,
)


@pytest.mark.proves("CFG-100")
@given(PLAIN, st.integers(3, 5))
def test_plain_values_of_python_are_read_as_they_are(value: Any, protocol: int) -> None:
    assert repr(value) == repr(pickles.read(pickle.dumps(value, protocol)))


@pytest.mark.proves("CFG-102")
@given(PLAIN)
def test_python_reads_what_is_written_and_so_do_we(value: Any) -> None:
    written = pickles.write(value)
    assert (b"\x80\x03", repr(value), repr(value)) == (
        written[:2],
        repr(pickle.loads(written)),
        repr(pickles.read(written)),
    )


@pytest.mark.proves("CFG-101", "CFG-102")
@pytest.mark.parametrize("protocol", range(6))
def test_objects_of_the_original_classes_go_both_ways(protocol: int) -> None:
    metric = MetricSpec("cpu", 2, None, "CPU", None, "avg")
    node = TopoNode(endpoint=EndpntSpec("h", 1), uuid=UUID(int=1 << 120), level="leaf", group=None, children=[])
    node.parent = TopoNode(level="root", children=[node])  # type: ignore[attr-defined]  # a circle
    if protocol >= 2:  # below, classes come by the machine's own functions, and are refused
        read = pickles.read(pickle.dumps([metric, node], protocol))
        assert shown([made(metric), Made("TopoNode", {})])[0] == shown(read)[0]
        assert read[1].fields["parent"].fields["children"][0] is read[1]
        back = pickle.loads(pickles.write([made(metric), placeless(read[1])]))
        assert (metric, "leaf", None, []) == (back[0], back[1].level, back[1].parent, back[1].children)
    else:
        assert "pickle" == refused(pickles.read, pickle.dumps([metric, node], protocol))


def made(spec: Any) -> Made:
    return Made(type(spec).__name__, spec._asdict())


def test_an_instant_goes_both_ways() -> None:
    at = datetime(2026, 11, 21, 1, 57, 33, 183931)  # noqa: DTZ001  # as the original nodes say it
    read = pickles.read(pickle.dumps(at, 3))
    assert at.isoformat() == shown(read)["iso"]
    assert at == pickle.loads(pickles.write(read))


class Calls:
    def __reduce__(self) -> Any:
        return print, ("called",)


def bomb(levels: int) -> bytes:
    """Lists that hold the list before ten times: few bytes, and without end for who copies them."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value] * 10
    return pickle.dumps(value, 3)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "calls a function": (pickle.dumps(Calls(), 3), "pickle"),
    "another class": (b"\x80\x03cos\nsystem\n)\x81.", "pickle"),
    "an attribute of an allowed one": (b"\x80\x04\x8c\x04uuid\x8c\x09UUID.hex\x93.", "pickle"),
    "a class itself": (b"\x80\x03cuuid\nUUID\n.", "pickle"),
    "a class as a value": (b"\x80\x03]cuuid\nUUID\na.", "pickle"),
    "an object of too few fields": (b"\x80\x03cdcamp.types.specs\nEndpntSpec\n)\x81.", "pickle"),
    "an object of too many fields": (b"\x80\x03cdcamp.types.specs\nThreshSpec\n(K\x01K\x02K\x03t\x81.", "pickle"),
    "fields of one that is made empty": (b"\x80\x03cuuid\nUUID\nK\x01\x85\x81.", "pickle"),
    "a field that there is not": (b"\x80\x03cuuid\nUUID\n)\x81}X\x03\x00\x00\x00hexK\x01sb.", "pickle"),
    "a tuple as a key": (b"\x80\x03}(K\x01\x85K\x02u.", "pickle"),
    "nothing": (b"", "pickle"),
    "no end": (b"\x80\x03K\x01", "pickle"),
    "two values": (b"\x80\x03K\x01K\x02.", "pickle"),
    "something behind": (b"\x80\x03K\x01..", "pickle"),
    "a mark": (b"\x80\x03(.", "pickle"),
    "an unknown number": (b"\x80\x03h\x07.", "pickle"),
    "a length beyond its end": (b"\x80\x03X\xff\xff\xff\xffa.", "pickle"),
    "protocol 6": (b"\x80\x06N.", "pickle"),
    "a persistent id": (b"Pid\n.", "pickle"),
    "an extension": (b"\x80\x03\x82\x01.", "pickle"),
    "a huge number in text": (b"I" + b"9" * 5_000 + b"\n.", "pickle"),
    "65 levels": (pickle.dumps(json.loads("[" * 66 + "]" * 66), 3), "pickle"),
    "10,001 objects": (pickle.dumps([0] * 10_001, 3), "pickle"),
    "many from few": (bomb(60), "pickle"),
    "a list in itself": (b"\x80\x03]q\x00h\x00a.", "pickle"),
    "a long one": (pickle.dumps(b"x" * (257 << 10), 3), "too-large"),
}


@pytest.mark.proves("CFG-100")
@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_such_pickle_is_refused_and_calls_nothing(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    said, code = HOSTILE[name]
    assert code == refused(pickles.read, said)
    assert "" == capsys.readouterr().out


@pytest.mark.proves("CFG-100")
@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_refused(said: bytes) -> None:
    for begin in (b"", b"\x80\x03"):
        try:
            pickles.read(begin + said + b".")
        except PeerError as error:
            assert error.code in ("pickle", "too-large")


@pytest.mark.parametrize("state", [b"}", b"}X\x03\x00\x00\x00intNs", b"}X\x03\x00\x00\x00intJ\xff\xff\xff\xffs"])
def test_a_uuid_without_its_number_is_none(state: bytes) -> None:
    uuid = pickles.read(b"\x80\x03cuuid\nUUID\n)\x81" + state + b"b.")
    assert "value" == refused(shown, uuid)


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ([b"ICANHAZ"], "frame-count"),
        ([b"ICANHAZ", bytes(8), b"", b"{}", pickles.write(3)], "subtree"),
        ([b"KTHXBAI", bytes(7), b"", b"{}", pickles.write("/")], "sequence"),
        ([b"no key", bytes(8), b"", b"{}", pickles.write(None)], "key"),
        ([b"/TOPO/root", bytes(8), b"", b"[]", pickles.write(None)], "properties"),
        ([b"/TOPO/root", bytes(8), b"", b"{}", b""], "pickle"),
    ],
)
def test_frames_that_say_nothing_are_refused(frames: list[bytes], code: str) -> None:
    assert code == refused(decode, frames)
