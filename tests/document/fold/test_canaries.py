"""Bugs planted into the fold: the comparison with the oracle must turn red by each of them."""

import hashlib
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.document.fold.test_properties import arrive_and_compare
from weft.cores.document.fold import folding, state
from weft.cores.document.fold.order import Order
from weft.wire.document import operations
from weft.wire.document.operations import Operation

SEEDS: Final = range(30)
Patch = pytest.MonkeyPatch


def is_red() -> bool:
    """Whether one of the seeds tells; the error may be the comparison's, or that of something that broke by the bug."""
    for seed in SEEDS:
        try:
            arrive_and_compare(seed)
        except Exception:  # noqa: BLE001  # whatever it is, somebody saw it
            return True
    return False


def fold_in_arrival_order(patch: Patch) -> None:
    def merge(order: Order, fresh: list[Any]) -> int:
        order.entries.extend(fresh)
        return len(order.entries) - len(fresh)

    patch.setattr(Order, "_merge", merge)
    patch.setattr(Order, "_place", lambda order, key: [entry[:3] for entry in order.entries].index(key))


def key_without_effective_time(patch: Patch) -> None:
    take = Order.take

    def by_timestamp(order: Order, batch: list[Operation]) -> int:
        take(order, batch)
        order.entries.sort(key=lambda entry: (entry[3].timestamp, *entry[1:3]))
        return 0

    patch.setattr(Order, "take", by_timestamp)
    patch.setattr(Order, "_place", lambda order, key: 0)


def source_as_it_is_spelled(patch: Patch) -> None:
    patch.setattr(operations, "uuid_of", lambda text: hashlib.sha256(text.encode()).digest()[:16])


def released_in_order_of_arrival(patch: Patch) -> None:
    arrived: dict[tuple[bytes, int], int] = {}
    take = Order.take

    def noted(order: Order, batch: list[Operation]) -> int:
        for each in batch:
            arrived.setdefault((each.source, each.sequence), len(arrived))
        return take(order, batch)

    patch.setattr(Order, "take", noted)
    for module in (folding, state):
        patch.setattr(module, "sorted", lambda keys: sorted(keys, key=lambda key: arrived[key[1:3]]), raising=False)


def undo_forgets_an_alias(patch: Patch) -> None:
    patch.setattr(state, "_unalias", lambda *_: None)


def conflicts_are_not_taken_back(patch: Patch) -> None:
    patch.setattr(state, "_unreport", lambda *_: None)


def timestamps_as_python_reads_them(patch: Patch) -> None:
    def loose(text: str) -> float:
        try:
            return max(float(text), 0.0)
        except ValueError:
            return 0.0

    patch.setattr(operations, "timestamp_of", loose)


def derived_eids_of_the_adopter(patch: Patch) -> None:
    take_steps = operations._take_steps

    def with_own_pair(operation: Operation, root: Any) -> None:
        origin, operation.origin = operation.origin, None
        take_steps(operation, root)
        operation.origin = origin

    patch.setattr(operations, "_take_steps", with_own_pair)


def copies_are_not_withdrawn(patch: Patch) -> None:
    patch.setattr(Order, "_judge", lambda order, original: len(order.entries))


BUGS: Final[tuple[Callable[[Patch], None], ...]] = (
    fold_in_arrival_order,
    key_without_effective_time,
    source_as_it_is_spelled,
    released_in_order_of_arrival,
    undo_forgets_an_alias,
    conflicts_are_not_taken_back,
    timestamps_as_python_reads_them,
    derived_eids_of_the_adopter,
    copies_are_not_withdrawn,
)


def test_without_a_bug_all_seeds_are_green() -> None:
    assert not is_red()


@pytest.mark.parametrize("plant", BUGS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_turns_the_comparison_red(plant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    plant(monkeypatch)
    seen = is_red()
    monkeypatch.undo()
    assert seen
