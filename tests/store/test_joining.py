"""Joining as a client of a real server (CLN-020): its recorded words are fed, and everything in them is merged."""

from typing import Any

import pytest
from msgspec import UNSET

from tests.store.desk import Desk
from tests.store.rig import DELETE, Node, change
from tests.store.vectors import Row, rows
from weft.base.effects import Perform, Send
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.base.ranges import RangeSet
from weft.cores.store import limits
from weft.cores.store.joining import Joining
from weft.cores.store.messages import Dial, HangUp
from weft.wire.store.clients import (
    Answer,
    ClientHello,
    Greeting,
    Request,
    decode_answer,
    encode,
    links_of,
)
from weft.wire.store.pack import PathValue, pack, unpack


class Joiner:
    """A node that joins, and what it does about it."""

    def __init__(self, **settings: Any) -> None:
        self.node = Node("n3", **settings)
        self.joining = Joining(self.node.context, self.node.replica)
        self.done: list[bool] = []
        self.joining.on_done = self.done.append
        self.now = Now(0, 0)
        self.dialled: list[Dial] = []
        self.hung_up: list[bytes] = []
        self.said: list[ClientHello | Request] = []

    def start(self, *names: str) -> "Joiner":
        self.joining.start(list(names), self.now)
        return self.turn()

    def turn(self) -> "Joiner":
        for effect in self.node.turn():
            if isinstance(effect, Perform) and isinstance(effect.work, Dial):
                self.dialled.append(effect.work)
            elif isinstance(effect, Perform) and isinstance(effect.work, HangUp):
                self.hung_up.append(effect.work.peer)
            elif isinstance(effect, Send) and effect.channel == "store-join":
                self.said.append(effect.message)
        return self

    def hear(self, raw: bytes) -> None:
        self.joining.hear(decode_answer(raw), self.dialled[-1].tag, self.now)
        self.turn()

    def pass_time(self, seconds: int) -> None:
        self.now = Now(self.now.mono + seconds * SECOND, 0)
        self.node.context.now = self.now
        due = self.joining.deadline()
        if due is not None and due <= self.now.mono:
            self.joining.wake(self.now)
        self.turn()


def recorded(group: str) -> list[Row]:
    """What the server said until the state, which is where a download ends."""
    said = [row for row in rows(group) if row.is_of_server]
    last = next(number for number, row in enumerate(said) if "nodes" in row.means)
    return said[: last + 1]


@pytest.mark.proves("CLN-020")
@pytest.mark.parametrize("group", ["new-download-", "mid-download-"])
def test_a_recorded_download_is_merged(group: str) -> None:
    joiner = Joiner(hostmap={"n2": "10.0.0.2:99"}, keys="moat").start("n2")
    assert ["10.0.0.2:99"] == [dial.endpoint for dial in joiner.dialled]
    for row in recorded(group):
        assert [] == joiner.done
        joiner.hear(row.raw)
    assert ([True], ["join1"]) == (joiner.done, [tag.decode() for tag in joiner.hung_up])
    node = joiner.node
    assert ("hello", ["A", 0], 3, b"\x00\xff", 2.5) == tuple(
        node.value(path) for path in (":", "s:0", "s.m", "b.k", "f")
    )
    assert {"i": 2} == node.value("t.x:2")
    assert ["127.0.0.1", 28603] == node.value(":n.hostmap.n3")
    assert (("n1", 6), ("n2", 4)) == node.tree.get(("s", "m")).chain.links  # type: ignore[union-attr]  # it is there
    assert {"n1": 9, "n2": 5} == node.book.tops()
    assert {"n1": RangeSet([(3, 3)]), "n2": RangeSet([(5, 5)])} == {n: node.book.deleted(n) for n in ("n1", "n2")}
    assert node.book.is_whole


@pytest.mark.proves("CLN-020")
def test_the_requests_are_those_that_real_servers_know() -> None:
    joiner = Joiner().start("n2")
    for row in recorded("new-download-"):
        joiner.hear(row.raw)
    asked = [unpack(encode(message)) for message in joiner.said]
    assert {"seq": 0, "qlen": 10} == asked[0]
    requests = [message for message in asked if "action" in message]
    tree = {"path": PathValue(()), "nchain": -1, "empty": True, "from_server": "n3"}
    assert [
        {"seq": 1, "action": "get_tree", **tree},
        {"seq": 2, "action": "get_tree_internal", **tree},
        {"seq": 3, "action": "get_state", "nodes": True, "known": True, "deleted": True, "from_server": "n3"},
    ] == requests
    acks = [(message["seq"], message["ack"]) for message in asked if message.get("state") == "ack"]
    assert [(1, 4), (1, 8), (1, 12)] == acks


@pytest.mark.proves("CLN-020", "DEL-005")
def test_tombstones_come_with_a_download() -> None:
    joiner = Joiner().start("n2")
    event = change("n1:4", 30, "gone", DELETE, "n2:1")
    joiner.hear(encode(Greeting(seq=0, node="n2", tick=3, tock=40, version=[0, 71, 40], qlen=10)))
    joiner.hear(encode(Answer(seq=1, state="start", tock=40)))
    joiner.hear(encode(Answer(seq=1, path=("gone",), depth=0, tock=30, chain=links_of(event.chain))))
    assert DELETE == joiner.node.value("gone")
    assert ["stale"] == joiner.node.hear(change("n2:1", 5, "gone", "old"))
    assert 40 == joiner.node.context.tock


@pytest.mark.proves("CLN-020", "DEL-004")
def test_tombstones_that_real_servers_name_as_deleted_stay_and_what_is_gone_goes() -> None:
    joiner = Joiner()
    joiner.node.hear(change("n1:2", 3, "stale", "long gone"))
    joiner.start("n2")
    joiner.hear(encode(Greeting(seq=0, node="n2", tick=3, tock=40)))
    event = change("n1:4", 30, "gone", DELETE, "n2:1")
    joiner.hear(encode(Answer(seq=1, path=("gone",), depth=0, tock=30, chain=links_of(event.chain))))
    joiner.hear(encode(Answer(seq=1, state="end", tock=40)))
    joiner.hear(encode(Answer(seq=2, state="end", tock=40)))
    joiner.hear(encode(Answer(seq=3, tock=40, nodes={"n1": 5, "n3": None}, deleted={"n1": [2, 4, 5]}, known={})))
    assert [True] == joiner.done
    assert DELETE == joiner.node.value("gone")
    assert [(2, 2), (5, 5)] == list(joiner.node.book.deleted("n1"))
    assert joiner.node.tree.get(("stale",)) is None


def test_a_tombstone_that_is_ignored_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary: tombstone ignored in a join."""
    from weft.cores.store.joining import Download

    merge = Download._merge
    monkeypatch.setattr(Download, "_merge", lambda self, item: merge(self, item) if bytes(item.value) else None)
    with pytest.raises((AssertionError, KeyError)):
        test_tombstones_come_with_a_download()


@pytest.mark.proves("CLN-020")
def test_what_is_newer_here_stays() -> None:
    joiner = Joiner()
    joiner.node.hear(change("n9:4", 500, "s.m", "newer", "n1:6"))
    joiner.start("n2")
    for row in recorded("new-download-"):
        joiner.hear(row.raw)
    assert "newer" == joiner.node.value("s.m")


@pytest.mark.proves("CLN-020")
def test_an_interrupted_download_goes_on_with_the_next_server() -> None:
    joiner = Joiner().start("n2", "n4", "n2")
    said = recorded("new-download-")
    for row in said[:8]:
        joiner.hear(row.raw)
    joiner.joining.failed(joiner.dialled[-1].tag, "reset", joiner.now)
    joiner.turn()
    assert ["n2:27586", "n4:27586"] == [dial.endpoint for dial in joiner.dialled]
    assert {"i": 0} == joiner.node.value("t.x:0"), "what came is merged"
    for row in said:
        joiner.hear(row.raw)
    assert ([True], True) == (joiner.done, joiner.node.book.is_whole)
    again = joiner.node.again()
    assert joiner.node.entries() == again.entries()
    assert joiner.node.seen() == again.seen()


def test_when_nobody_gives_a_download_that_is_said() -> None:
    joiner = Joiner().start("n2", "n3")
    joiner.joining.failed(b"join0", "another one", joiner.now)
    assert [] == joiner.done
    joiner.joining.failed(b"join1", "refused", joiner.now)
    assert [False] == joiner.done
    assert (False, None) == (joiner.joining.is_active, joiner.joining.deadline())
    joiner.start()
    assert [False, False] == joiner.done


def test_a_server_that_says_nothing_is_given_up() -> None:
    joiner = Joiner().start("n2", "n4")
    joiner.pass_time(9)
    assert 1 == len(joiner.dialled)
    joiner.pass_time(1)
    assert (["n2:27586", "n4:27586"], [b"join1"]) == ([dial.endpoint for dial in joiner.dialled], joiner.hung_up)


def test_a_server_that_refuses_is_given_up() -> None:
    joiner = Joiner().start("n2", "n4")
    joiner.hear(encode(Greeting(seq=0, node="n2", tick=3, tock=40)))
    with pytest.raises(PeerError):
        joiner.hear(encode(Answer(seq=1, error="no", tock=3)))
    joiner.turn()
    assert 2 == len(joiner.dialled)


def test_one_bad_entry_does_not_end_a_download() -> None:
    joiner = Joiner().start("n2")
    joiner.hear(encode(Greeting(seq=0, node="n2", tick=3, tock=40)))
    links = links_of(change("n1:4", 30, "x", 1).chain)
    joiner.hear(encode(Answer(seq=1, path=("a", 1.5), depth=0, tock=30, chain=links)))
    joiner.hear(encode(Answer(seq=1, path=("b",), depth=1, tock=31, chain=links, value=Answer().value)))
    assert 1 == joiner.node.context.counters["malformed", "bad-path"]
    assert DELETE == joiner.node.value("a.b")


@pytest.mark.proves("CLN-022")
def test_hosts_are_found_in_the_tree_then_in_the_file_then_by_name() -> None:
    joiner = Joiner(hostmap={"n2": "10.0.0.2:99", "n4": "10.0.0.4:98"})
    joiner.node.replica.write((None, "hostmap", "n2"), pack(["10.1.1.1", 77]))
    joiner.node.replica.write((None, "hostmap", "n6"), pack(["::1", 5]))
    joiner.node.replica.write((None, "hostmap", "n7"), pack("nonsense"))
    for name in ("n2", "n4", "n5", "n6", "n7"):
        joiner.start(name)
        joiner.joining.failed(joiner.dialled[-1].tag, "no", joiner.now)
    assert ["10.1.1.1:77", "10.0.0.4:98", "n5:27586", "[::1]:5", "n7:27586"] == [
        dial.endpoint for dial in joiner.dialled
    ]


def test_a_download_under_way_is_not_begun_again() -> None:
    joiner = Joiner().start("n2")
    joiner.start("n4")
    assert ["n2:27586"] == [dial.endpoint for dial in joiner.dialled]


def test_a_member_is_asked_what_is_forgotten() -> None:
    joiner = Joiner()
    answered: list[bool] = []
    joiner.joining.on_answered = lambda: answered.append(joiner.joining.is_asking)
    joiner.joining.check_deleted(["n2", "n4"], {"n1": RangeSet([(1, 3)])}, joiner.now)
    joiner.turn()
    joiner.joining.failed(b"join1", "refused", joiner.now)
    joiner.turn()
    assert ["n2:27586", "n4:27586"] == [dial.endpoint for dial in joiner.dialled]
    joiner.hear(encode(Greeting(seq=0, node="n4", tick=3, tock=40)))
    [request] = joiner.said
    assert isinstance(request, Request)
    assert ("get_state", True, True) == (request.action, request.nodes, request.missing)
    joiner.hear(encode(Answer(seq=1, tock=3, nodes={"n1": 9, "n4": 3}, missing={"n1": [2, 7]})))
    request = joiner.said[-1]
    assert isinstance(request, Request)
    assert ("check_deleted", {"n1": [1, 3]}) == (request.action, request.nodes)
    joiner.hear(encode(Answer(seq=2, tock=3)))
    assert ([b"join2"], [False]) == (joiner.hung_up, answered)
    joiner.joining.check_deleted(["n2"], {"n1": RangeSet([(1, 3)])}, joiner.now)
    joiner.turn()
    joiner.pass_time(limits.JOIN_SILENCE_NS // SECOND)
    assert ([b"join2", b"join3"], None) == (joiner.hung_up, joiner.joining.deadline())
    assert [False, False] == answered


@pytest.mark.proves("CLN-020", "CLN-021")
def test_a_node_that_joins_by_another_ones_client_port_is_equal() -> None:
    server = Desk("n1")
    node = server.node
    for number in range(600):
        node.write(f"a.{number % 50}.{number % 7}", number)
    node.hear(change("b:3", 9_000, "x", 1, "c:2"), change("b:1", 9_001, "y", {"k": 1}), change("c:4", 9_002, "z"))
    node.write("a.3.3")
    node.replica.write((None, "node", "n1"), pack(1))
    node.replica.purge({"c": RangeSet([(4, 4)])})
    server.settle()
    joiner = Joiner().start("n1")
    visitor = server.client(acks=False)
    assert visitor.greeting is not None
    joiner.hear(encode(visitor.greeting))
    while joiner.said:
        message = joiner.said.pop(0)
        if isinstance(message, ClientHello):
            message = Request(seq=0, qlen=message.qlen)
        visitor.say(message)
        server.settle()
        answers, visitor.answers = visitor.answers, []
        for answer in answers:
            joiner.hear(encode(answer))
    assert [True] == joiner.done
    assert node.entries() == joiner.node.entries()
    assert node.seen() == joiner.node.seen()
    assert node.book.missing() == joiner.node.book.missing()
    assert UNSET is not joiner.dialled


def test_a_server_is_not_asked_whether_what_it_never_heard_of_is_deleted() -> None:
    joiner = Joiner()
    joiner.joining.check_deleted(["n2"], {"n1": RangeSet([(4, 5)]), "n7": RangeSet([(1, 1)])}, joiner.now)
    joiner.turn()
    joiner.hear(encode(Greeting(seq=0, node="n2", tick=3, tock=40)))
    joiner.hear(encode(Answer(seq=1, tock=3, nodes={"n1": 3, "n8": None})))
    assert ["get_state"] == [said.action for said in joiner.said if isinstance(said, Request)]
    assert ([b"join1"], False) == (joiner.hung_up, joiner.joining.is_asking)


def test_who_does_not_say_what_it_has_heard_of_is_not_believed_and_the_next_one_is_asked() -> None:
    joiner = Joiner()
    joiner.joining.check_deleted(["n2", "n4"], {"n1": RangeSet([(4, 5)])}, joiner.now)
    joiner.turn()
    joiner.hear(encode(Greeting(seq=0, node="n2", tick=3, tock=40)))
    joiner.hear(encode(Answer(seq=1, error="no")))
    assert ["n2:27586", "n4:27586"] == [dial.endpoint for dial in joiner.dialled]
