"""How many steps work takes, counted in lines of Python: it grows no faster than what it is about (CFG-095)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.steps import steps
from weft.base.chance import Chance
from weft.base.effects import Confirm, Confirmed, Effect, Reply, Source
from weft.base.now import SECOND, Now
from weft.cores.configuration import limits
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.messages import (
    ConfigurationSettings,
    ListKeys,
    NoteApplied,
    NoteVoters,
    TakeRoot,
    Write,
    WriteKeys,
)
from weft.cores.configuration.store import Room, Store
from weft.wire.envelope import Asked
from weft.wire.replication import ICanHaz

NOW = Now(SECOND, SECOND)


def root(keys: int) -> Configuration:
    core = Configuration(ConfigurationSettings(), b"p" * 16, Chance("growth"))
    core.command(TakeRoot(0), NOW)
    core.command(WriteKeys(1, tuple(Write(f"/x/g{n // 4}/m{n % 4}", b"1") for n in range(keys)), ack="local"), NOW)
    core.effects()
    return core


def turn(core: Configuration) -> list[Effect]:
    effects = core.effects()
    core.deadline()
    return effects


def ask_all_at_once(children: int) -> None:
    """As after a restart of the root: all ask before the first of them has its answer."""
    core, waiting = root(8), list[Effect]()
    for number in range(children):
        core.receive(Asked((b"",), ICanHaz("/x/g1/")), Source("serve", b"%d" % number), NOW)
        waiting += turn(core)
    while confirms := [effect for effect in waiting if isinstance(effect, Confirm)]:
        for each in confirms:
            core.command(Confirmed(each.channel, each.peer, each.count, each.token, 0), NOW)
        core.wake(NOW)
        waiting = turn(core)
    assert children == core.counters.served


def report_all(children: int) -> None:
    """Reports of members and of three voters, while an order waits for a majority."""
    core = root(8)
    core.command(NoteVoters(4, 4), NOW)
    core.command(WriteKeys(2, (Write("/x/g0/m0", b"2"),), ack="quorum"), NOW)
    assert not [effect for effect in core.effects() if isinstance(effect, Reply)]
    for number in range(children):
        core.command(NoteApplied(b"%d" % number, 8, number < 3, 4), NOW)
        turn(core)


@pytest.mark.proves("CFG-095", part="lines for each child that asks for a snapshot, and for each report")
@pytest.mark.parametrize("work", [ask_all_at_once, report_all])
def test_four_times_the_children_take_four_times_the_steps(work: Callable[[int], None]) -> None:
    least, most = steps(lambda: work(100)), steps(lambda: work(400))
    assert 3 * least < most < 4.4 * least


@pytest.mark.proves("CFG-095", part="keys that a page of a list looks at")
def test_a_page_looks_at_no_key_of_the_pages_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    class Looked(tuple[Any, ...]):
        __slots__ = ()

        def __getitem__(self, at: Any) -> Any:
            nonlocal looked
            found = super().__getitem__(at)
            looked += len(found) if isinstance(at, slice) else 1
            return found

        def __iter__(self) -> Any:
            nonlocal looked
            for each in range(len(self)):
                looked += 1
                yield super().__getitem__(each)

    core, page, found, after, is_more = root(2_000), 100, list[str](), "", True
    view = Looked(core.store.view("/x/"))
    monkeypatch.setattr(Store, "view", lambda *_: view)
    while is_more:
        core.command(ListKeys(1, "/x/", page, after), NOW)
        (reply,) = [effect for effect in core.effects() if isinstance(effect, Reply)]
        found += [key for key, _, _ in reply.answer.pairs]
        after, is_more = found[-1], reply.answer.is_more
    assert sorted(core.store.pairs) == found
    assert looked <= 20 * (page + 1 + 16)


class Compared(str):
    """A key whose comparisons are counted."""

    __slots__ = ()
    seen = 0

    def __lt__(self, other: str) -> bool:
        Compared.seen += 1
        return super().__lt__(other)


@pytest.mark.proves("CFG-095", part="keys that are compared when one came or went")
def test_a_key_that_came_or_went_is_compared_with_few_others() -> None:
    store = Store(Room(10_000, 1 << 20))
    for number in range(4_096):
        store.apply(Compared(f"/x/g/m{number:05}"), number + 1, b"1", number)
    store.keys()
    Compared.seen = 0
    for number in range(100):
        for value in (b"1", b""):
            store.apply(Compared(f"/x/g/n{number:05}"), store.number + 1, value, store.number)
            store.keys()
    assert Compared.seen <= 200 * 16


@pytest.mark.parametrize("changes", [1, limits.KEYS_PLACED_MAX, limits.KEYS_PLACED_MAX + 1, 500])
def test_keys_are_sorted_however_many_came_and_went(changes: int) -> None:
    store, chance = Store(Room(10_000, 1 << 20)), Chance(f"keys {changes}")
    for _ in range(20):
        for _ in range(changes):
            key, value = f"/x/g/m{chance.randrange(300)}", chance.choice((b"1", b""))
            store.apply(key, store.number + 1, value, store.number)
        assert sorted(store.pairs) == store.keys()


def test_keys_that_nobody_lists_leave_nothing_behind_when_they_are_gone() -> None:
    store = Store(Room(10_000, 1 << 20))
    for number in range(1_000):
        for value in (b"1", b""):
            store.apply(f"/x/g/m{number}", store.number + 1, value, store.number)
    assert len(store._altered) <= limits.KEYS_PLACED_MAX
    assert [] == store.keys()
