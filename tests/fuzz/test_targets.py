"""Every target of fuzz/ runs, with its corpus, calls what it is for, and finds what is planted (FUZ-002, FUZ-004)."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import msgspec
import pytest

from fuzz.house import corpus
from fuzz.house.running import Target, mutate
from weft.base.vectors import VersionVector
from weft.cores.configuration.store import Store as Configured
from weft.cores.document.fold.folding import Fold
from weft.cores.topology.core import Topology
from weft.lake.importing import delimited
from weft.node import census
from weft.node.channels import CHANNELS, _never_received
from weft.wire import carried, clients, discovery, journal, replication, samples
from weft.wire.catalog import beacon, commands
from weft.wire.document import endpoints, frames
from weft.wire.document.messages import Helo
from weft.wire.store import pack

TARGETS = corpus.names()
STORIES = [name for name in TARGETS if name.startswith("core_")]
FRAMES = [name for name in TARGETS if name not in STORIES]
WIRE = Path(corpus.WEFT) / "wire"
READERS = ("decode", "read", "parse", "unpack", "judge", "load")
"""With what the name of a decoder begins."""
MUTATIONS = {"core": 5}
"""How many in every run, by what the name of a target begins with; of others 150. A story takes as long as a hundred frames."""


def module(name: str) -> Any:
    return importlib.import_module(f"fuzz.{name}")


def inputs(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((corpus.CORPUS / name).iterdir())]


def called(target: Target, given: list[bytes]) -> set[str]:
    """The functions of Weft that inputs go through, as `file:name`."""
    found: set[str] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(corpus.WEFT):
            found.add(f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        for data in given:
            target(data)
    finally:
        sys.setprofile(None)
    return found


def played(name: str, into: Path, runs: int = 0) -> int:
    """The exit status of a short run."""
    most = runs or len(inputs(name)) + MUTATIONS.get(name.partition("_")[0], 150)
    return mutate(module(name).one, [f"-runs={most}", "-seed=7", str(into), str(corpus.CORPUS / name)])


@pytest.mark.proves("FUZ-002", "FUZ-004", "COD-007", "CAT-005", "CAT-010", "BEA-003", "BEA-010", "PEE-006", "GSP-012")
@pytest.mark.varies("name", FRAMES, TARGETS, prove=STORIES)
def test_target_begins_with_its_corpus_and_finds_no_harm(name: str, tmp_path: Path) -> None:
    assert 0 == played(name, tmp_path)
    assert [] == list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def reached() -> dict[str, set[str]]:
    """What each target of bytes calls with its corpus. Stories read no bytes of others, and take far longer."""
    return {name: called(module(name).one, inputs(name)) for name in FRAMES}


@pytest.mark.prove("every target once more")
def test_target_that_calls_nothing_is_found(reached: dict[str, set[str]]) -> None:
    told = {name: called(module(name).one, inputs(name)[:3]) for name in STORIES}
    assert [] == [name for name, functions in {**reached, **told}.items() if len(functions) < 2]
    assert set() == called(lambda data: None, [b"anything"])


def readers(of: ModuleType) -> list[Callable[..., Any]]:
    """The functions of a module that read something."""
    own = [value for value in vars(of).values() if isinstance(value, FunctionType) and value.__module__ == of.__name__]
    return [function for function in own if function.__name__.startswith(READERS)]


def place_of(function: Any) -> str:
    code = getattr(function, "__wrapped__", function).__code__
    return f"{code.co_filename}:{code.co_qualname}"


@pytest.mark.proves("FUZ-002")
def test_every_reader_of_the_wire_and_of_every_channel_is_called_by_a_target(reached: dict[str, set[str]]) -> None:
    calls = set().union(*reached.values())
    names = [".".join(path.relative_to(WIRE.parent).with_suffix("").parts) for path in sorted(WIRE.rglob("*.py"))]
    wanted = [reader for name in names for reader in readers(importlib.import_module(f"weft.{name}"))]
    wanted += [channel.decode for channel in CHANNELS.values() if channel.decode is not _never_received]
    assert 60 < len(wanted)
    assert [] == [place for reader in wanted if (place := place_of(reader)) not in calls]


@pytest.mark.proves("FUZ-002")
def test_every_core_has_a_target_of_its_own() -> None:
    cores = {path.parent.name for path in (WIRE.parent / "cores").glob("*/core.py")} - {"template"}
    assert {f"core_{name}" for name in cores} == {name for name in TARGETS if name.startswith("core_")}


@pytest.mark.proves("FUZ-004")
def test_corpora_are_small_and_each_has_some() -> None:
    assert TARGETS == sorted(path.name for path in corpus.CORPUS.iterdir())
    sizes = {name: sum(map(len, inputs(name))) for name in TARGETS}
    assert [] == [name for name, size in sizes.items() if not size]
    assert sum(sizes.values()) <= 1 << 20


def test_an_input_is_kept_if_it_goes_a_new_way() -> None:
    def target(data: bytes) -> None:
        if data:
            replication.epoch_of(len(data))

    assert [b"a"] == corpus.minimised(target, [b"bc", b"", b"a", b"a"])


PLANTED: list[tuple[str, Any, str, Any]] = [
    ("catalog_commands", commands, "_envelope", lambda _: ()),
    ("catalog_datagrams", beacon, "_port", int),
    ("document_frames", endpoints, "parse", lambda text: text),
    ("document_operations", Fold, "rewind", lambda *_: None),
    ("store_bus", pack, "_extension", lambda code, body: body[code]),
    ("store_value", pack, "_extension", lambda code, body: body[code]),
    ("configuration_replication", replication, "read_key", lambda frame: frame.decode("latin-1")),
    ("topology_discovery", discovery, "read_endpoint", lambda frame: frame.decode("latin-1")),
    ("carrier_hop", carried, "_attributes", msgspec.msgpack.decode),
    ("chains_clients", clients, "_count", lambda *_: None),
    ("measurement_samples", samples, "_check", lambda *_: None),
    ("journal_records", journal, "_tag_of", lambda data: data[1]),
    ("lake_logs", delimited, "number", lambda _: float("inf")),
    ("node_pairs", census, "_decode_record", msgspec.json.Decoder(dict).decode),
    ("base_vectors", VersionVector, "encode", lambda _: b"WV1"),
    ("core_topology", Topology, "restore", lambda *_: None),
    ("core_configuration", Configured, "take", lambda *_: None),
]


@pytest.mark.parametrize("plant", PLANTED, ids=[name for name, *_ in PLANTED])
def test_planted_bug_is_found_and_its_bytes_are_kept(
    plant: tuple[str, Any, str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, *bug = plant
    monkeypatch.setattr(*bug)
    assert 1 == played(name, tmp_path, 20_000)
    assert 1 == len(list(tmp_path.iterdir()))


def test_message_that_does_not_come_back_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(frames._READ, b"HELO", lambda body: Helo(body.decode("utf-8", "replace").upper() + "\0:1"))
    assert 1 == played("document_frames", tmp_path, 3_000)
