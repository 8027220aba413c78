"""Whatever arrives, however: the document is the one that sorting and folding everything from genesis gives."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.document.fold import oracle
from tests.document.fold.feeding import Feed, result_of
from tests.document.fold.mixes import Mix
from tests.examples import examples
from weft.cores.document.fold.engine import Engine, fold, fold_until
from weft.cores.document.fold.schema import Schema
from weft.cores.document.fold.slots import reference_of
from weft.wire.document.operations import parse

SEEDS = st.integers(0, 1 << 32)
DERBY = Schema.load("derby")


def bodies_of(seed: int, most: int = 40) -> list[bytes]:
    """A mix, with copies of what a lost source said, and perhaps the original."""
    mix = Mix(seed)
    bodies = mix.bodies(mix.draw.randint(most // 2, most)) + mix.adopted()
    return bodies + mix.bodies(mix.draw.randint(0, 5))


def resolved(bodies: list[bytes], draw: Random) -> list[bytes]:
    """The same, and one or two people close one of the conflicts, or try to."""
    conflicts = oracle.result_of(map(oracle.read, bodies)).conflicts
    if not conflicts:
        return bodies
    chosen = draw.choice(conflicts)
    where = " ".join(f'{name}="{value}"' for name, value in reference_of(DERBY, chosen["slot"]).items())
    attribute = chosen["attr"] if chosen["kind"] == "set-set" and chosen["attr"] != "#text" else "q"
    ways = (("set", "9"), ("set", f"<attribute>{attribute}</attribute>9"), ("add", ""), ("remove", ""))
    for number in range(1, draw.choice((2, 2, 3))):
        verb, inner = draw.choice(ways)
        stamp = f'source="f{number:07d}-0000-4000-8000-000000000009" timestamp="176380999{number}.0" sequence="1"'
        said = f'<{verb} {where} resolves="{chosen["id"]}" {stamp}>{inner.replace("9", str(number))}</{verb}>'
        bodies = [*bodies, said.encode()]
    return bodies


def small() -> Engine:
    """One that soon has checkpoints, forgets how to take back, and works in slices."""
    return Engine(DERBY, undo=4, at_once=10)


def arrive_and_compare(seed: int) -> None:
    """Operations arrive in any order and batches, some twice; engines of two kinds show what the oracle says."""
    draw = Random(seed)
    bodies = resolved(bodies_of(seed), draw)
    expected = oracle.result_of(map(oracle.read, bodies))
    arriving = [parse(body) for body in bodies]
    arriving += draw.sample(arriving, 5)
    draw.shuffle(arriving)
    engines, feed = (Engine(DERBY), small()), Feed()
    while arriving:
        size = draw.choice((1, 1, 2, 5, 20))
        fresh = feed.take(arriving[:size])
        del arriving[:size]
        for engine in engines:
            engine.insert(fresh)
            engine.work(draw.randint(1, 12))
    for engine in engines:
        engine.finish()
        assert expected == result_of(engine)


@pytest.mark.proves("DOC-010", "DOC-012", "DOC-052")
@given(seed=SEEDS)
@examples(100)
def test_any_arrival_in_any_batches_gives_what_sorting_and_folding_gives(seed: int) -> None:
    arrive_and_compare(seed)


@pytest.mark.proves("DOC-051")
@given(seed=SEEDS)
@settings(max_examples=20)
def test_after_every_step_the_document_is_that_of_a_full_fold(seed: int) -> None:
    operations = [parse(body) for body in bodies_of(seed, 24)]
    Random(seed).shuffle(operations)
    engine, feed = small(), Feed()
    for number, operation in enumerate(operations, 1):
        engine.insert(feed.take([operation]))
        engine.finish()
        assert result_of(fold(DERBY, operations[:number])) == result_of(engine)


@pytest.mark.proves("GSP-032")
@given(seed=SEEDS)
@settings(max_examples=20)
def test_a_replay_until_each_operation_is_the_fold_of_that_prefix(seed: int) -> None:
    operations = [parse(body) for body in bodies_of(seed, 24)]
    engine = Engine(DERBY)
    entries = oracle.ordered([oracle.read(body) for body in bodies_of(seed, 24)])
    by_pair = {(each.source, each.sequence): each for each in operations}
    for _, source, sequence, _ in entries:
        engine.insert([by_pair[source, sequence]])
        until = (source, sequence)
        assert result_of(engine) == result_of(fold_until(DERBY, operations, until=until))
