"""Which writes of a former root the new one does not have (REC-015)."""

from collections.abc import Iterator

from weft.base.paths import is_under
from weft.cores.configuration.memory import Last
from weft.cores.configuration.messages import WriteLost
from weft.cores.configuration.store import Store
from weft.wire.replication import KvSync, chain_of, counter_of, epoch_of


def lost_writes(
    store: Store, pairs: dict[str, KvSync], lasts: dict[str, Last], topics: tuple[str, ...]
) -> Iterator[WriteLost]:
    """Writes of ours that stand in the store and not in the snapshot of the new root; deletions have an empty value.

    A new root goes on with the counter that it held (REC-012), so its lowest number says which of ours it had. What it
    overwrote knowing ours is not lost.
    """
    wrote_from = store.wrote_from
    if not wrote_from:
        return
    epoch = epoch_of(store.number)
    theirs = [pair.number for pair in pairs.values()] + [last.number for last in lasts.values()]
    held = min(
        (counter_of(number) - 1 for number in theirs if epoch_of(number) > epoch), default=counter_of(store.number)
    )
    for own in store.view(""):
        key, other = own.key, pairs.get(own.key)
        if own.number >= wrote_from and (other is None or other.value != own.value):
            is_lacked = counter_of(own.number) > held or other is None or other.number < own.number
            if is_lacked and any(is_under(key, "" if topic == "/" else topic) for topic in topics):
                yield WriteLost(key, own.value, own.number)
    for key, pair in pairs.items():
        if key not in store.pairs and pair.number <= store.number and chain_of(key) in store.chains:
            yield WriteLost(key, b"", store.chains[chain_of(key)].number)
