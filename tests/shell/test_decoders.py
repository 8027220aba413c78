"""Every decoder of a node against every hostile case that is meant for one like it: within time and memory, and typed."""

import gc
import time
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.shell.hostile import vectors
from weft.base.errors import PeerError, UserError, WeftError
from weft.base.settings import is_plain_name
from weft.base.vectors import VersionVector
from weft.lake import manifest
from weft.node.settings import read_document, settings_of
from weft.shell.identity import begin_start
from weft.wire import beacon, carried, chp, clients, data, discovery, hop, journal, replication, samples, segments
from weft.wire.document import frames, operations, programs, xml
from weft.wire.hop import HopItem

CASES = vectors("hostile.jsonl")
NODE = b"n" * 16
ITEM = HopItem(mid=(NODE, 1, 1), type="weft.metric", via=(NODE,), depth=0, ts=1, n=2)
NOTE = HopItem(mid=(NODE, 1, 1), type="weft.lost", via=(NODE,), depth=0, ts=1)
Decoder = Callable[[Any], Any]


def _toml(data: bytes) -> Any:
    return settings_of(read_document(data.decode(), "the file"))


def _frames(frames: list[bytes]) -> Any:
    return hop.decode([hop.encode(hop.Beat())[0], *frames])


def _to(value: bytes) -> Any:
    """One send to this destination."""
    return clients.decode_asked([b"\x82\xa2op\xa4send\xa1m\x91\x83\xa3tag\x01\xa4type\xa1t\xa2to" + value, b"x"])


def _payload(frames: list[bytes]) -> Any:
    item = clients.SendItem(tag=1, type="t", to=["DIRECT"])
    return clients.decode_asked([*clients.encode(clients.Send([item], [])), *frames])


def _pub(properties: bytes) -> Any:
    return replication.decode_update([b"/CONFIG/web/x", bytes(7) + b"\x01", NODE, properties, b"1"])


def _ask(properties: bytes) -> Any:
    return replication.decode_ask([b"", b"ICANHAZ", b"", b"", properties, b"/CONFIG/web/"])


def _row(value: bytes) -> bytes:
    """A body of one sample with this value."""
    return b"\x94\x01\x00\x91\x94\xa1a\xa1b\xa5basic\x80\x91\x93\x00\x00" + value


MSGPACK: dict[str, Decoder] = {
    "hop header": lambda data: hop.decode([data]),
    "hop attributes": lambda data: carried.to_record(ITEM, [b"", data], 1),
    "hop attribute": lambda data: carried.to_record(ITEM, [b"", b"\x81\xa1a" + data], 1),
    "hop note": lambda data: carried.to_record(NOTE, [data], 1),
    "client": lambda data: clients.decode_asked([data]),
    "client's node": lambda data: clients.decode_answered([data]),
    "program": lambda data: programs.decode([b"1", data]),
    "program's argument": lambda data: programs.decode([b"1", b"\x82\xa4verb\xa1a\xa4args\x81\xa1a" + data]),
    "client's destination": _to,
    "sample body": samples.decode,
    "sample value": lambda data: samples.decode(_row(data)),
    "journal record": journal.decode_record,
    "journal footer": segments.decode_footer,
    "snapshot contents": segments.decode_contents,
    "version vector": VersionVector.decode,
}
HERE = b"127.0.0.1:27500"
HEADER = b'<add source="a0000000-0000-4000-8000-000000000001" sequence="1" timestamp="1">'
FRAMES: dict[str, Decoder] = {
    "node link": _frames,
    "client": _payload,
    "update": replication.decode_update,
    "snapshot": replication.decode_answer,
    "snapshot behind a delimiter": lambda frames: replication.decode_answer([b"", *frames]),
    "request": replication.decode_ask,
    "request behind a delimiter": lambda frames: replication.decode_ask([b"", b"ICANHAZ", *frames]),
    "announcement": discovery.decode_announcement,
    "control": lambda frames: discovery.decode_control([b"", b"polo", *frames]),
    "answer of control": discovery.decode_called,
    "foreign sample": data.decode,
    "peer of a session": frames.decode,
    "peer of a session, behind its identity": lambda said: frames.decode([NODE, *said]),
    "program": programs.decode,
    "clone snapshot": chp.decode_answer,
    "clone update": chp.decode_update,
    "clone write": chp.decode_set,
}
XML: dict[str, Decoder] = {
    "operation": operations.parse,
    "header of an operation": operations.header_of,
    "payload of an operation": lambda data: operations.parse(HEADER + data + b"</add>"),
    "what people type": lambda data: xml.fragment_of(data.decode()),
}
JSON: dict[str, Decoder] = {
    "properties of an update": _pub,
    "properties of a request": _ask,
    "content of an announcement": lambda text: discovery.decode_announcement([b"/MARCO", HERE, NODE, text]),
    "properties of control": lambda text: discovery.decode_control([b"", b"polo", HERE, NODE, text]),
    "properties of a foreign sample": lambda text: data.decode([HERE, text, bytes(8), bytes(8), b""]),
}
DECODERS: dict[str, dict[str, Decoder]] = {
    "msgpack": MSGPACK,
    "msgpack-value": MSGPACK,
    "samples-value": {"sample value": lambda data: samples.decode(_row(data))},
    "frames": FRAMES,
    "json": {"manifest of the lake": lambda text: manifest.decode(text, "d", 1)} | JSON,
    "config-json": JSON,
    "toml": {"settings of a node": _toml},
    "xml": XML,
    "udp-beat": {"beacon": lambda data: beacon.decode([data])},
}
ELSEWHERE = {
    "link": "the memory guard, in tests/fabric/test_intruders.py",
    "log-text": "tests/shell/test_log.py",
    "file-name": "below",
    "zlib": "nothing compressed is read from the network yet",
    "dcamp-pickle": "no pickle is read anywhere",
    "export-csv": "tests/client/test_doc_files.py",
}
SOUND = {("m-nan", "sample value"), ("m-nan", "hop attribute"), ("m-ext-bigint", "hop attribute")}
"""What one of them may take: a number that is none is kept, and judged where rows are typed."""

OPEN = {"hop attribute", "client's destination", "payload of an operation", "program's argument"}
"""Where any value of bounded size may stand; whoever uses it judges it. An operation whose header can be read keeps its
number whatever follows, and is inert (GSP-012)."""


def made(case: dict[str, Any]) -> Any:
    """The input of a case, by its recipe."""
    if "payload" in case:
        return bytes.fromhex(case["payload"])
    pieces: list[bytes] = []
    for kind, text, *counts in case["make"]:
        data = bytes.fromhex(text)
        if kind == "frames":
            return [data * counts[0]] * counts[1]
        if kind == "zlib":
            data = zlib.compress(data * counts[0], 9)
        if kind == "count":
            data = b"".join(data % number for number in range(counts[0]))
        pieces.append(data * counts[0] if kind == "repeat" else data)
    return b"".join(pieces)


APPLICABLE = [(name, decoder) for name, case in CASES.items() for decoder in DECODERS.get(case["means"]["decoder"], ())]


@pytest.mark.proves("FUZ-001", "SEC-042", "SEC-044")
@pytest.mark.proves("SEC-041", part="what is hostile costs bounded time and memory")
@pytest.mark.parametrize("name, decoder", APPLICABLE)
def test_a_hostile_input_is_a_value_or_a_typed_refusal_within_time_and_memory(name: str, decoder: str) -> None:
    means = CASES[name]["means"]
    decode, data = DECODERS[means["decoder"]][decoder], made(CASES[name])

    def outcome() -> str:
        try:
            decode(data)
        except WeftError as refusal:
            assert len(getattr(refusal, "shown", b"")) <= 256
            return getattr(refusal, "code", "refused")
        return "ok"

    gc.disable()  # its walk over what other tests left behind is not the decoder's work
    try:
        began = time.process_time()
        said = outcome()
        assert time.process_time() - began <= means["seconds_max"]
    finally:
        gc.enable()
    if (name, decoder) not in SOUND and not (decoder in OPEN and said == "ok"):
        assert (said == "ok") == (means["outcome"] == "ok"), said
    tracemalloc.start()
    try:
        outcome()
        assert tracemalloc.get_traced_memory()[1] <= means["memory_rise_max_bytes"]
    finally:
        tracemalloc.stop()


def test_every_case_has_its_place() -> None:
    kinds = {case["means"]["decoder"] for case in CASES.values()}
    assert kinds == DECODERS.keys() | ELSEWHERE.keys()


@pytest.mark.proves("CFG-083")
@pytest.mark.proves("SEC-040", part="names of files")
def test_a_name_that_climbs_names_no_file(tmp_path: Path) -> None:
    name = made(CASES["u-path"]).decode()
    assert not is_plain_name(name)
    with pytest.raises(UserError):
        settings_of({"node": {"name": name, "level": "root"}})
    with pytest.raises(PeerError):
        beacon.decode([f"WEFTN1 weft {name} {NODE.hex()} root 27500 1".encode()])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case["means"]["decoder"] == "json"])
def test_an_identity_that_is_no_json_is_said_and_kept(name: str, tmp_path: Path) -> None:
    data = made(CASES[name])
    (tmp_path / "node.json").write_bytes(data)
    with pytest.raises(UserError) as refused:
        begin_start(tmp_path, "a", 1)
    assert ("bad-identity", data) == (refused.value.code, (tmp_path / "node.json").read_bytes())


@pytest.mark.proves("CFG-071", "SEC-044")
@pytest.mark.parametrize(
    "text",
    [
        '[node]\nname = "a"\nlevel = "root"\nflush_s = nan',
        '[node]\nname = "a"\nlevel = "root"\nflush_s = -1',
        '[node]\nname = "a"\nlevel = "root"\n[fleet]\nbeat_s = inf',
        '[node]\nname = "a"\nlevel = "root"\n[journal]\nmegabytes = 0',
        '[node]\nname = "a"\nlevel = "root"\n[journal]\nmegabytes = 99999999999999999999',
        '[node]\nname = "a"\nlevel = "root"\n[lake]\nrows = true',
        "a" * 5_000 + " = 1",
        "\x00",
        "[node",
    ],
)
def test_a_file_of_nonsense_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(UserError) as refused:
        _toml(text.encode())
    assert "bad-settings" == refused.value.code
    assert len(str(refused.value)) < 2_000


def test_what_is_measured_is_what_the_cases_hold() -> None:
    assert 8_000_005 == len(made(CASES["m-wide"]))
    assert (2_000, 60_000) == (len(made(CASES["f-many"])), len(made(CASES["f-many"])[0]))
