"""The vectors of the fold, each operation a batch of its own, in the order of its frames; and what the oracle says of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.document.fold import oracle
from tests.document.fold.feeding import Feed, result_of
from weft.cores.document.fold.engine import Engine
from weft.cores.document.fold.schema import Schema
from weft.wire.document.operations import parse

LINES = (Path(__file__).parents[2] / "vectors/document-fold.jsonl").read_text("utf-8").splitlines()
VECTORS = [json.loads(line) for line in LINES]


def bodies_of(vector: dict[str, Any]) -> list[bytes]:
    """Those that are not dropped."""
    dropped = vector["means"].get("dropped_frames", ())
    return [bytes.fromhex(frame) for at, frame in enumerate(vector["frames"]) if at not in dropped]


def expected_of(means: dict[str, Any]) -> oracle.Result:
    return oracle.Result(means["digest"], means["outcomes"], means["parked"], means["conflicts"], means["order"])


@pytest.mark.proves("DOC-050")
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_operations_one_by_one_as_they_arrive(vector: dict[str, Any]) -> None:
    engine, feed = Engine(Schema.load(vector["means"]["schema"])), Feed()
    for body in bodies_of(vector):
        engine.insert(feed.take([parse(body)]))
    assert expected_of(vector["means"]) == result_of(engine)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_the_oracle_knows_them_too(vector: dict[str, Any]) -> None:
    result = oracle.result_of(map(oracle.read, bodies_of(vector)), vector["means"]["schema"])
    assert expected_of(vector["means"]) == result
