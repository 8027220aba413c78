"""What strangers may say neither ends a node nor fills it, and leaves no more behind than what is right (COD-007)."""

from typing import Any

import pytest
from msgspec import Raw

from tests.store.rig import Node, change, ticks
from tests.store.test_actor import Alone
from tests.store.test_deletion import Keeper
from tests.store.test_joining import Joiner
from weft.base.chance import Chance
from weft.base.effects import Reply, Source, Tell
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.base.ranges import RangeSet
from weft.cores.store import limits
from weft.cores.store.bus import MQTT
from weft.cores.store.core import Store
from weft.cores.store.messages import (
    HoldBack,
    LimitExceeded,
    LinkUp,
    NetworkOpen,
    RestoreLoser,
    StoreRefused,
    StoreSettings,
)
from weft.cores.store.resending import Resending
from weft.cores.store.states import State
from weft.cores.store.ticks import in_parts
from weft.wire.store import bus as codec
from weft.wire.store import mesh
from weft.wire.store.clients import Answer, Greeting, Links, encode, links_of
from weft.wire.store.messages import Info, Publication, Update
from weft.wire.store.pack import same_value
from weft.wire.store.pieces import OPEN_MAX, cut

INSTANTS = b"\xdd\x00\x01\x90\x00" + b"\xd6\xff\x00\x00\x00\x00" + b"\x00" * 0x18FFF
"""A list of 102,400 items, the first of which is an instant: it is sound, and too long to be read item by item."""


def joiner() -> Joiner:
    """A node whose download from n2 has begun."""
    begun = Joiner().start("n2")
    begun.hear(encode(Greeting(seq=0, node="n2", tick=3, tock=40)))
    return begun


def lone(**settings: Any) -> Store:
    """A core at a broker that nobody else is at."""
    store = Store(StoreSettings(name="a", **settings), Chance("a"))
    store.restore([], Now(0, 0))
    store.command(LinkUp("mqtt"), Now(0, 0))
    return store


def pass_time(store: Store, until: int) -> int:
    """Do what is due; how often something was."""
    count = 0
    while (due := store.deadline()) is not None and due <= until and count < 1_000:
        store.wake(Now(due, due))
        store.effects()
        count += 1
    return count


@pytest.mark.proves("CLN-020", "COD-007")
@pytest.mark.parametrize(
    "fields",
    [
        {"chain": Links("no name", 1, None)},
        {"chain": Links("", 1, None)},
        {"chain": Links("n" * 65, 1, None)},
        {"chain": Links("n1", 1 << 63, None)},
        {"tock": 1 << 63},
        {"tock": -2},
    ],
    ids=str,
)
def test_a_download_brings_nothing_that_could_not_be_said_on_the_bus(fields: dict[str, Any]) -> None:
    begun = joiner()
    said = {"tock": 30, "chain": links_of(change("n1:4", 30, "x").chain), **fields}
    begun.hear(encode(Answer(seq=1, path=("x",), depth=0, **said)))
    assert (0, 0, 40) == (begun.node.tree.entries, begun.node.tree.tombstones, begun.node.context.tock)
    assert ["n2"] == begun.node.book.nodes()


@pytest.mark.proves("CLN-020", "COD-007")
def test_a_download_brings_no_value_that_nobody_can_read() -> None:
    begun = joiner()
    twice = Raw(b"\x82\xa1a\x01\xa1a\x02")
    begun.hear(encode(Answer(seq=1, path=("x",), depth=0, tock=30, chain=Links("n1", 4, None), value=twice)))
    assert 0 == begun.node.tree.entries


@pytest.mark.proves("CLN-020", "COD-007")
def test_the_state_of_a_download_names_no_node_that_could_not_be_one() -> None:
    begun = joiner()
    for seq in (1, 2):
        begun.hear(encode(Answer(seq=seq, state="end", tock=40)))
    nodes: dict[str, int | None] = {"n1": 5, "a b": 7, "n4": 1 << 63}
    begun.hear(encode(Answer(seq=3, tock=40, nodes=nodes, known={"c d": [1]}, deleted={"": [2]})))
    assert ([True], {"n1": 5, "n2": 3}) == (begun.done, begun.node.book.tops())


@pytest.mark.proves("CLN-022")
def test_a_host_that_nobody_can_read_is_looked_for_by_its_name() -> None:
    begun = Joiner()
    begun.node.hear(_with_value(change("n1:2", 4, ":n.hostmap.n2", 5), INSTANTS))
    begun.start("n2")
    assert ["n2:27586"] == [dial.endpoint for dial in begun.dialled]


@pytest.mark.proves("STO-016", "COD-007")
def test_values_that_nobody_can_read_are_the_same_byte_for_byte_only() -> None:
    assert (True, False) == (same_value(INSTANTS, INSTANTS), same_value(INSTANTS, b"\x01"))
    node = Node("a")
    first = change("b:1", 3, "x", 5)
    assert ["first", "conflict-taken"] == node.hear(first, _with_value(first, INSTANTS))


@pytest.mark.proves("COD-007")
def test_a_refused_change_does_not_move_the_clock() -> None:
    store = lone()
    store.replica.book.caps["b"] = 3
    raw = codec.encode(Update(change("b:4", 77, "x", 5)))
    store.receive(Publication("update", raw), Source(MQTT, b"update"), Now(0, 0))
    assert ({("malformed", "dropped"): 1}, 0) == (
        {key: count for key, count in store.context.counters.items() if key[0] == "malformed"},
        store.context.tock,
    )


@pytest.mark.proves("STO-007")
def test_nobody_takes_a_newcomer_to_the_end_of_the_clock() -> None:
    store = lone()
    for tock, expected in ((limits.TOCK_MAX + 1, 0), (limits.TOCK_MAX, limits.TOCK_MAX)):
        raw = codec.encode(Update(change("b:1", tock, "x", 5)))
        store.receive(Publication("update", raw), Source(MQTT, b"update"), Now(0, 0))
        assert expected == store.context.tock
    assert codec.decode("info", codec.encode(store.context.info()))


@pytest.mark.proves("STO-001")
@pytest.mark.parametrize("name", ["a b", "\u00e4" * 33, "a\n"])
def test_who_greets_has_a_name_that_it_may_have(name: str) -> None:
    with pytest.raises(PeerError) as caught:
        mesh.decode(mesh.encode(mesh.Hello(fabric="weft", node=name, boot=1)))
    assert "bad-field" == caught.value.code


@pytest.mark.proves("STO-020")
def test_a_node_has_no_more_ranges_than_the_limit_whoever_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RANGES_MAX", 10)
    node = Node("a")
    node.replica.settle(ticks(b=list(range(1, 20, 2))), "known")
    assert 10 == len(node.book.seen("b"))
    for how in ("known", "deleted", "known"):
        node.replica.settle(ticks(b=[21, 23]), how)
    node.turn()
    assert (10, [LimitExceeded("ranges", 10)]) == (len(node.book.seen("b")), node.told)
    node.replica.settle(ticks(b=[(1, 19)]), "known")  # what closes gaps is welcome
    assert [(1, 19)] == list(node.book.seen("b"))


@pytest.mark.proves("DEL-002")
def test_of_what_a_node_has_only_nodes_that_exist_are_remembered() -> None:
    keeper = Keeper("a")
    keeper.hear(change("b:1", 3, "x", 5))
    for number in range(10):
        have = {f"junk{number}": RangeSet([(1, 9)]), "b": RangeSet([(1, 1)])}
        keeper.deletion.hear_info(Info(node="b", tick=1, tock=4, have=have), "b", Now(0, 0))
    assert {"b": {"b": RangeSet([(1, 1)])}} == keeper.deletion._haves


@pytest.mark.proves("PNG-031")
def test_names_that_anybody_may_say_at_a_broker_are_remembered_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "NODES_MAX", 5)
    alone = Alone(found=True)
    for number in range(20):
        alone.hear("ping", {"t": "vers", "node": f"f{number}"})
        alone.hear("ping", {"t": "vers", "node": f"w{number}", "weft": "1"})
    actor = alone.core.actors["ping"]
    assert 5 == len(alone.core.context.foreign) + len(actor._weft)


def test_who_is_told_to_found_waits_while_it_cannot_be_written_or_others_have_data() -> None:
    store = lone(found=b"\x05")
    store.command(HoldBack(is_full=True), Now(0, 0))
    pass_time(store, 20 * SECOND)
    assert (State.LISTEN, 0) == (store.membership.state, store.context.tick)
    store.command(HoldBack(is_full=False), Now(20 * SECOND, 0))
    pass_time(store, 40 * SECOND)
    assert (State.MEMBER, 1) == (store.membership.state, store.context.tick)

    other = lone(found=b"\x05")
    other.receive(
        Publication("update", codec.encode(Update(change("b:1", 3, "x", 5)))), Source(MQTT, b"update"), Now(0, 0)
    )
    pass_time(other, 40 * SECOND)
    assert (State.LISTEN, 0) == (other.membership.state, other.context.tick)


def test_who_is_told_to_found_and_joins_instead_has_nothing_to_do_all_the_time() -> None:
    store = lone(found=b"\x05")
    store.wake(Now(0, 0))
    store.membership.state = State.CATCHUP
    assert pass_time(store, 60 * SECOND) < 100


def test_a_member_that_has_no_room_to_enter_itself_is_one_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENTRIES_MAX", 0)
    store = lone()
    store.wake(Now(0, 0))
    store.membership.become_member()
    assert 0 == store.context.tick


@pytest.mark.proves("STO-013")
def test_a_lost_deletion_of_what_is_gone_can_be_restored_to_no_effect() -> None:
    store = lone()
    store.replica.receive(change("b:1", 5, "x", 5), "b")
    store.replica.receive(change("c:1", 4, "x"), "c")
    store.replica.receive(change("b:2", 6, "x", below="c:1"), "b")
    store.replica.settle(ticks(b=[1, 2], c=[1]), "deleted")
    store.command(RestoreLoser(7, 1), Now(0, 0))
    refused = StoreRefused("not-found", "nothing is left that it would delete")
    assert [Reply(7, refused)] == [effect for effect in store.effects() if isinstance(effect, Reply)]


@pytest.mark.proves("DEL-004")
def test_however_much_is_forgotten_at_once_each_message_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = ticks(b=list(range(1, 2 * limits.RANGES_PER_INFO + 10, 2)), c=[1, 3])
    parts = in_parts(gone)
    assert [10_000, 7] == [sum(map(len, part.values())) for part in parts]
    assert gone["b"] == parts[0]["b"] | parts[1]["b"]


@pytest.mark.proves("PNG-038")
def test_foreign_servers_hear_a_thousand_resends_a_second_however_many_ask() -> None:
    node = Node("a")
    node.context.foreign["f"] = None
    node.hear(*(change(f"b:{tick}", tick, f"x{tick}", 1) for tick in range(1, 3_001)))
    node.turn()
    resending = Resending(node.context, node.bus, node.replica)
    for _ in range(4):
        resending.ask(ticks(b=[(1, 3_000)]), "", 0)
    while (due := resending.deadline()) is not None and due < SECOND:
        node.context.now = Now(due, due)
        resending.wake()
    assert 900 <= node.context.counters["resent", ""] <= 1_000 + 4 * 1_000 // 20


@pytest.mark.proves("LNK-004", "COD-007")
def test_payloads_that_never_become_whole_are_counted() -> None:
    store = lone()
    for sequence in range(OPEN_MAX + 3):
        piece = cut(b"x" * 900, "n1", sequence, 450)[0]
        store.receive(Publication("update", piece), Source(MQTT, b"update"), Now(0, 0))
    assert 3 == store.facts()["malformed"]["incomplete"]


def test_names_that_strangers_made_up_are_counted_one_by_one_only_up_to_a_limit() -> None:
    node = Node("a")
    for number in range(10_000):
        node.context.refuse(f"stranger-{number}", "bad-path")
    assert 10_000 == node.context.counters["malformed", "bad-path"]
    assert len(node.context.counters) <= 4_097


def test_what_is_counted_is_shown_but_for_names_that_strangers_made_up() -> None:
    store = lone()
    for label in ("busy", "not-ready"):
        store.context.count("clients_refused", label)
    store.context.refuse("somebody", "malformed")
    assert {"clients_refused": 2} == store.facts()["counts"]


@pytest.mark.parametrize(("dialects", "what"), [(("seed",), "clients"), (("seed", "moat"), "clients, moat")])
def test_who_asks_nobody_who_they_are_says_so_at_each_start(dialects: tuple[str, ...], what: str) -> None:
    told: list[list[Any]] = []
    for is_open in (False, True):
        store = lone(dialects=dialects, is_open=is_open)
        store.wake(Now(0, 0))
        events = [effect.event for effect in store.effects() if isinstance(effect, Tell)]
        told.append([event for event in events if isinstance(event, NetworkOpen)])
    assert [[], [NetworkOpen(what)]] == told


def _with_value(event: Any, value: bytes) -> Any:
    """The same change with these bytes for a value."""
    return type(event)(event.chain, event.tock, event.path, value, event.at, event.by)
