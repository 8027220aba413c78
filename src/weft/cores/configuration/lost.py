"""What the root of a snapshot never had: writes of a former root (REC-015), and newer values of this replica."""

from collections.abc import Iterator

from weft.base.paths import is_under
from weft.cores.configuration.messages import WriteLost
from weft.cores.configuration.stage import Stage
from weft.cores.configuration.store import Store
from weft.wire.replication import chain_of, counter_of, epoch_of


def lost_writes(store: Store, stage: Stage, topics: tuple[str, ...]) -> Iterator[WriteLost]:
    """Own writes that are in the store but not in the new root's snapshot; deletions have an empty value.

    A write that the new root knew and overwrote is not lost.
    """
    wrote_from, pairs = store.wrote_from, stage.pairs
    if not wrote_from:
        return
    known = _known(store, stage)
    for own in store.view(""):
        key, other = own.key, pairs.get(own.key)
        if own.number >= wrote_from and (other is None or other.value != own.value):
            is_lacked = counter_of(own.number) > known or other is None or other.number < own.number
            if is_lacked and _is_followed(key, topics):
                yield WriteLost(key, own.value, own.number)
    for key, pair in pairs.items():
        if key not in store.pairs and pair.number <= store.number and chain_of(key) in store.chains:
            yield WriteLost(key, b"", store.chains[chain_of(key)].number)


def values_gone_back(store: Store, stage: Stage, topics: tuple[str, ...]) -> int:
    """How many values in the store are newer than in the snapshot, or missing there and unknown to its root."""
    if not store.pairs:
        return 0
    known = _known(store, stage)
    count = 0
    for own in store.pairs.values():
        other = stage.pairs.get(own.key)
        if other is None:
            count += counter_of(own.number) > known and _is_followed(own.key, topics)
        else:
            count += other.number < own.number
    return count


def _known(store: Store, stage: Stage) -> int:
    """The counter up to which the snapshot's root knew the writes in the store.

    A new root continues with the counter that it had (REC-012), so its lowest number shows it. A root of the same epoch
    knows all writes up to its last number.
    """
    epoch = epoch_of(store.number)
    theirs = [pair.number for pair in stage.pairs.values()] + [last.number for last in stage.lasts.values()]
    last = min(counter_of(store.number), counter_of(stage.number))
    return min((counter_of(number) - 1 for number in theirs if epoch_of(number) > epoch), default=last)


def _is_followed(key: str, topics: tuple[str, ...]) -> bool:
    return any(is_under(key, "" if topic == "/" else topic) for topic in topics)
