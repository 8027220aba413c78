"""An incoming snapshot: collected beside the store, and not visible until it is complete (CFG-031).

Differences to the store are journaled as they come, in parts that count only once the closing record is there.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import permutations
from typing import Final

import msgspec

from weft.base.errors import UNREADABLE, PeerError
from weft.base.paths import is_under
from weft.cores.configuration import limits
from weft.cores.configuration.context import Context
from weft.cores.configuration.memory import Adopted, Begun, Last, Part
from weft.cores.configuration.store import Packer, Sums, is_coarse, value_of
from weft.cores.configuration.tally import Tally, hash_of, sum_of
from weft.wire.replication import CHAINS, Bundle, KThxBai, KvPack, KvSync, chain_of


class LastWrite(msgspec.Struct, frozen=True, gc=False):
    """The value that a parent sends for the last write of a chain (CFG-040)."""

    deleted: bool = False
    prev: int | None = None


_NO_KEY: Final = "\n"
"""The beginning of no key."""
_decode_last = msgspec.json.Decoder(LastWrite).decode


class Stage:
    """One attempt to get a snapshot of `topics`."""

    def __init__(self, context: Context, topics: tuple[str, ...], *, asks_chains: bool) -> None:
        self._context, self._topics, self._derives = context, topics, asks_chains
        chains = [CHAINS + (topic or "/") for topic in topics] if asks_chains else []
        self.open: dict[str, None] = dict.fromkeys([*chains, *topics])
        """Questions to be asked or not answered completely, oldest first."""
        self._unasked = deque(self.open)
        self.ends: dict[str, int] = {}
        self.pairs: dict[str, KvSync] = {}
        self.lasts: dict[str, Last] = {}
        self.bytes = 0
        self.tally = Tally()
        """Count and digest of the pairs."""
        self._heard, self._announced = Tally(), Tally()
        """Of everything received (also chains, and pairs once per topic that contains them); and of what the ends say
        was sent.
        """
        self.is_proved = True
        """Whether every end so far had a count and digest."""
        self._packer = Packer()
        self._is_begun = False
        self._packed_upto: dict[str, str] = {}
        """By topic: the last key of its packed pairs."""
        self._is_mixed = any(is_under(one, other) for one, other in permutations(topics, 2))
        """Whether a pair may come that is here already: topics overlap, or some pairs came alone."""

    @property
    def number(self) -> int:
        """The highest number in the end of a topic."""
        return max((self.ends[topic] for topic in self._topics), default=0)

    def questions(self) -> list[str]:
        """The questions to ask now: all at once, up to the number of requests that a parent accepts from one child."""
        room = limits.REQUESTS_PER_CHILD_MAX - (len(self.open) - len(self._unasked))
        return [self._unasked.popleft() for _ in range(min(room, len(self._unasked)))]

    def is_full(self) -> bool:
        """Whether it is larger than a store may be."""
        room = self._context.store.room
        return len(self.pairs) > room.keys or self.bytes > room.bytes

    def add_all(self, bundle: Bundle) -> None:
        """A complete answer in one message; PeerError if a part of it is not allowed, and then none of it is taken."""
        for pair in bundle.pairs:
            self._look_at(pair)
        self._asked_by(bundle.end)
        for pair in bundle.pairs:
            self.add(pair)
        self.end(bundle.end)

    def add_pack(self, pack: KvPack) -> None:
        """Many pairs of an answer; PeerError `not-asked` if one is in no open topic, and then none of them is taken."""
        pairs = pack.pairs
        first, last = pairs[0].key, pairs[-1].key
        topic = self._topic_of(first, last)
        is_mixed = self._is_mixed or first <= self._packed_upto.get(topic, "")
        self._packed_upto[topic] = last
        new = {pair.key: pair for pair in pairs}
        if is_mixed and not self.pairs.keys().isdisjoint(new):
            for pair in pairs:
                self.add(pair)
            return
        summands = sum_of(pairs)
        self._heard.add(len(pairs), summands)
        self.tally.add(len(pairs), summands)
        self.pairs.update(new)
        self.bytes += sum(map(len, new)) + sum(map(len, map(value_of, pairs)))
        self._keep_changes(pack, self._context.store.pairs)

    def _topic_of(self, first: str, last: str) -> str:
        """The open topic that has all keys from `first` to `last`; PeerError `not-asked` if none has."""
        for topic in self._topics:
            subtree = "" if topic == "/" else topic
            if topic in self.open and is_under(first, subtree) and is_under(last, subtree):
                return topic
        raise PeerError("not-asked", f"{first} to {last}")

    def _keep_changes(self, pack: KvPack, known: dict[str, KvSync]) -> None:
        """Journal packed pairs as they came, or, if some of them are here already, the others."""
        changed = [pair for pair in pack.pairs if known.get(pair.key) != pair] if known else pack.pairs
        if len(changed) == len(pack.pairs):
            self._begin()
            self._context.remember_pack(pack)
            return
        for pair in changed:
            self._keep(self._packer.add_pair(pair))

    def _look_at(self, pair: KvSync) -> LastWrite | None:
        """The chain's last write in a pair, if the pair is about a chain; PeerError if it is not allowed."""
        if not pair.key.startswith(CHAINS + "/"):
            opened = [topic for topic in self._topics if topic in self.open]
            if not any(is_under(pair.key, "" if topic == "/" else topic) for topic in opened):
                raise PeerError("not-asked", pair.key)
            return None
        try:
            return _decode_last(pair.value)
        except UNREADABLE:
            raise PeerError("value", "no last write of a chain") from None

    def add(self, pair: KvSync) -> None:
        """One pair of an answer; PeerError `not-asked` for a key in no open topic."""
        last = self._look_at(pair)
        if last is not None:
            self._add_last(pair, last)
            self._heard.put(pair)
            return
        self._is_mixed = True
        before = self.pairs.get(pair.key)
        self.pairs[pair.key] = pair
        summand = hash_of(pair)
        self._heard.add(1, summand)
        self.tally.add(1, summand)
        if before is not None:
            self.tally.remove(before)
        self.bytes += len(pair.key) + len(pair.value) - (len(before.key) + len(before.value) if before else 0)
        if (before or self._context.store.pairs.get(pair.key)) != pair and (part := self._packer.add_pair(pair)):
            self._keep(part)

    def _add_last(self, pair: KvSync, write: LastWrite) -> None:
        key = pair.key[len(CHAINS) :]
        if len(self.lasts) >= self._context.store.room.keys:
            raise PeerError("too-many", "chains")
        self.lasts[chain_of(key)] = Last(key, pair.number, write.prev, write.deleted)

    def end(self, end: KThxBai) -> None:
        """The end of an answer; PeerError `not-asked` if it ends no open question."""
        subtree = self._asked_by(end)
        del self.open[subtree]
        self.ends[subtree] = end.number
        self.is_proved = self.is_proved and bool(end.digest)
        self._announced.join(end.count, end.digest)

    def _asked_by(self, end: KThxBai) -> str:
        """The open question that it answers."""
        subtree = next(iter(self.open)) if end.subtree is None and self.open else end.subtree
        if subtree is None or subtree not in self.open or subtree in self._unasked:
            raise PeerError("not-asked", str(end.subtree))
        return subtree

    def short_by(self) -> int | None:
        """How many of the pairs named by the ends are missing; 0 if the number matches but the pairs differ.

        None: everything matches, or the ends name no count.
        """
        if not self.is_proved or self._heard == self._announced:
            return None
        return self._announced.count - self._heard.count

    def close(self) -> None:
        """Journal the rest and the closing record; then replace the store."""
        store = self._context.store
        self._derive()
        for key in store.pairs:
            if key not in self.pairs:
                self._keep(self._packer.add_gone(key))
        for chain, last in self.lasts.items():
            if store.chains.get(chain) != last:
                self._keep(self._packer.add_last(chain, last))
        for chain in store.chains:
            if chain not in self.lasts:
                self._keep(self._packer.add_last_gone(chain))
        self._keep(self._packer.rest())
        self._begin()
        adopted = Adopted(self.number, [(topic, self.ends[topic]) for topic in self._topics])
        self._context.remember(adopted)
        store.replace(self.pairs, self.lasts, adopted, Sums(self.tally, self.bytes))

    def _derive(self) -> None:
        """Derive the chains' last writes that were not sent.

        A pair is also a write, and so is the end of a topic with one chain.
        """
        for chain, pair in _newest(self.pairs.values()) if self._derives else ():
            last = self.lasts.get(chain)
            if last is None or last.number < pair.number:
                self.lasts[chain] = Last(pair.key, pair.number)
        for topic in self._topics:
            if not is_coarse(topic) and self.ends[topic]:
                chain = chain_of(topic + "." if topic.endswith("/") else topic)
                last = self.lasts.get(chain)
                if last is None or last.number < self.ends[topic]:
                    self.lasts[chain] = Last("", self.ends[topic])

    def _keep(self, part: Part | None) -> None:
        if part is not None:
            self._begin()
            self._context.remember(part)

    def _begin(self) -> None:
        """Before the first part, journal that parts follow."""
        if not self._is_begun:
            self._is_begun = True
            self._context.remember(Begun())


def _newest(pairs: Iterable[KvSync]) -> Iterator[tuple[str, KvSync]]:
    """Chains, each with its pair of the highest number; once for each run of pairs of the same chain."""
    beginning, newest = _NO_KEY, None
    for pair in pairs:
        if newest is not None and pair.key.startswith(beginning):
            if pair.number > newest.number:
                newest = pair
            continue
        if newest is not None:
            yield chain_of(newest.key), newest
        chain = chain_of(pair.key)
        beginning, newest = chain if chain.endswith("/") else _NO_KEY, pair
    if newest is not None:
        yield chain_of(newest.key), newest
