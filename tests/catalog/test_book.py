"""Who is registered, and how many (the counts that holding and limits rely on)."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.entered import Entered
from weft.cores.catalog.book import Book
from weft.cores.catalog.states import State


def counts_by_hand(book: Book) -> dict[str, object]:
    """Counted anew: what a book must know without counting."""
    at: dict[str, list[State]] = {}
    for instance in book.all():
        at.setdefault(instance.observed_ip, []).append(instance.state)
    live = [states for states in at.values() if {State.ACTIVE, State.SUSPECT} & set(states)]
    return {
        "states": Counter(instance.state for instance in book.all()),
        "owners": Counter(instance.owner for instance in book.all()),
        "addresses": {address: len(states) for address, states in at.items()},
        "live": len(live),
        "silent": sum(State.ACTIVE not in states for states in live),
        "names": sorted({instance.name for instance in book.all()}),
    }


def counts_kept(book: Book, owners: list[str]) -> dict[str, object]:
    return {
        "states": +book.counts,
        "owners": +Counter({owner: book.by_owner(owner) for owner in owners}),
        "addresses": {address: len(found) for address, found in book.addresses().items()},
        "live": book.live_addresses,
        "silent": book.silent_addresses,
        "names": book.names(),
    }


HOSTS = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
STEPS = st.tuples(
    st.sampled_from(["enter", "active", "suspect", "inactive", "drop", "own"]),
    st.sampled_from("abc"),
    st.sampled_from("12"),
    st.sampled_from(HOSTS),
)


@settings(max_examples=50)
@given(st.lists(STEPS, max_size=30))
def test_what_is_counted_along_the_way_is_what_counting_would_give(steps: list[tuple[str, str, str, str]]) -> None:
    broker = Entered()
    for step, name, instance_id, host in steps:
        found = broker.book.get(name, instance_id)
        if step == "enter" or found is None:
            broker.enter(name, id=instance_id, seen_at=host)
        elif step == "drop":
            broker.book.drop(found)
        elif step == "own":
            found.owner = found.observed_ip = host
            broker.book.changed(found)
        else:
            broker.turn(found, State[step.upper()])
    assert counts_by_hand(broker.book) == counts_kept(broker.book, HOSTS)
    assert len(list(broker.book.all())) == len(broker.book)


def test_instances_of_a_name_stand_in_the_order_of_their_last_change() -> None:
    broker = Entered()
    first, second = broker.enter("a", id="1"), broker.enter("a", id="2")
    assert [first, second] == broker.book.of_name("a")
    broker.turn(first, State.SUSPECT)
    assert [second, first] == broker.book.of_name("a")
    assert [] == broker.book.of_name("b")


def test_who_registers_again_replaces_what_it_was() -> None:
    broker = Entered()
    old = broker.enter("a", id="1", seen_at="10.0.0.1")
    new = broker.enter("a", id="1", seen_at="10.0.0.2")
    assert [new] == list(broker.book.all())
    broker.book.drop(old)
    assert new is broker.book.get("a", "1")
    assert (0, 1) == (broker.book.by_owner("10.0.0.1"), broker.book.by_owner("10.0.0.2"))


@pytest.mark.parametrize(
    "states, expected",
    [
        ([[State.ACTIVE], [State.SUSPECT]], (2, 1)),
        ([[State.ACTIVE, State.SUSPECT], [State.SUSPECT, State.SUSPECT]], (2, 1)),
        ([[State.INACTIVE], [State.SUSPECT, State.INACTIVE]], (1, 1)),
        ([[State.INACTIVE]], (0, 0)),
    ],
)
def test_an_address_is_silent_when_all_that_lives_there_is_suspect(
    states: list[list[State]], expected: tuple[int, int]
) -> None:
    broker = Entered()
    for host, here in zip(HOSTS, states, strict=False):
        for number, state in enumerate(here):
            broker.enter("a", id=f"{host}-{number}", seen_at=host, state=state)
    assert expected == (broker.book.live_addresses, broker.book.silent_addresses)
