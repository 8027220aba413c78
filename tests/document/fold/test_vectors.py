"""The vectors of the fold, in the order of keys, as the fold alone does them (DOC-050)."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from weft.base.errors import PeerError
from weft.cores.document.fold.folding import Fold
from weft.cores.document.fold.schema import Schema
from weft.wire.document.operations import Operation, parse, uuid_text
from weft.wire.document.xml import canonical

LINES = (Path(__file__).parents[2] / "vectors/document-fold.jsonl").read_text("utf-8").splitlines()
VECTORS = [json.loads(line) for line in LINES]
each_vector = pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])


class Entry(NamedTuple):
    eff: float
    source: bytes
    sequence: int
    operation: Operation

    @property
    def name(self) -> str:
        return f"{uuid_text(self.source)}/{self.sequence}"


def entries_of(vector: dict[str, Any]) -> list[Entry]:
    """What counts of the frames, sorted by key (DOC-010); copies that do not count are left out (DOC-013)."""
    order: dict[str, Operation] = {}
    for frame in vector["frames"]:
        try:
            operation = parse(bytes.fromhex(frame))
        except PeerError:
            continue
        order.setdefault(f"{uuid_text(operation.source)}/{operation.sequence}", operation)
    superseded = {name for name, said in vector["means"]["outcomes"].items() if said == ["inert:superseded"]}
    eff: dict[bytes, float] = {}
    entries = []
    for name in sorted(order, key=lambda name: (order[name].source, order[name].sequence)):
        operation = order[name]
        if name not in vector["means"]["outcomes"]:
            continue
        eff[operation.source] = max(eff.get(operation.source, 0.0), operation.timestamp)
        if name not in superseded:
            entries.append(Entry(eff[operation.source], operation.source, operation.sequence, operation))
    return sorted(entries, key=lambda entry: entry[:3])


def shown(fold: Fold) -> dict[str, Any]:
    """Everything that a fold derives."""
    return {
        "document": canonical(fold.root).decode(),
        "outcomes": {f"{uuid_text(pair[0])}/{pair[1]}": said for pair, said in fold.outcomes.items()},
        "parked": sorted(f"{uuid_text(pair[0])}/{pair[1]}" for pair in fold.parked()),
        "conflicts": [conflict.as_data() for conflict in fold.conflicts()],
        "late": {pair: dict(said) for pair, said in fold.late.items()},
        "live": {eid: (element.tag, fold.slot_of(element)) for eid, element in sorted(fold.live.items())},
        "gone": dict(sorted(fold.gone.items())),
        "waiting": {key: parked.trigger for key, parked in sorted(fold.waiting.items())},
        "triggers": {trigger: sorted(waiting) for trigger, waiting in sorted(fold.triggers.items())},
        "count": fold.count,
    }


@each_vector
@pytest.mark.proves(
    "DOC-010",
    "DOC-011",
    "DOC-020",
    "DOC-021",
    "DOC-030",
    "DOC-031",
    "DOC-032",
    "DOC-033",
    "DOC-034",
    "DOC-035",
    "DOC-040",
)
@pytest.mark.proves("DOC-050")
def test_operations_in_the_order_of_keys_give_the_document_of_the_vector(vector: dict[str, Any]) -> None:
    means = vector["means"]
    fold = Fold(Schema.load(means["schema"]))
    said = {entry.name: fold.apply(entry.operation, entry.eff) for entry in entries_of(vector)}
    actual = shown(fold)
    assert means["document"] == actual["document"]
    assert means["digest"] == hashlib.sha256(canonical(fold.root)).hexdigest()
    assert {name: words for name, words in means["outcomes"].items() if words != ["inert:superseded"]} == said
    assert means["parked"] == actual["parked"]
    assert means["conflicts"] == actual["conflicts"]


@each_vector
@pytest.mark.proves("DOC-051")
def test_each_operation_taken_back_leaves_what_was_before(vector: dict[str, Any]) -> None:
    fold = Fold(Schema.load(vector["means"]["schema"]))
    states, marks = [], []
    for entry in entries_of(vector):
        states.append(shown(fold))
        marks.append(fold.mark())
        fold.apply(entry.operation, entry.eff)
    for state, mark in zip(reversed(states), reversed(marks), strict=True):
        fold.rewind(mark)
        assert state == shown(fold)


@each_vector
def test_frames_that_have_no_header_are_dropped_and_no_others(vector: dict[str, Any]) -> None:
    dropped = []
    for place, frame in enumerate(vector["frames"]):
        try:
            parse(bytes.fromhex(frame))
        except PeerError as error:
            assert error.code == "no-header"
            dropped.append(place)
    assert vector["means"].get("dropped_frames", []) == dropped
