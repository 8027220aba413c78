"""Clients are answered as real servers answer, and better where those lose the connection."""

from typing import Any, Final

import pytest
from msgspec import UNSET

from tests.store.desk import Desk, Visitor, value_of
from tests.store.rig import DELETE, change
from tests.store.vectors import rows
from weft.base.effects import Persist, Send
from weft.base.errors import PeerError
from weft.base.ranges import RangeSet
from weft.cores.store import limits
from weft.cores.store.messages import ClientCame, Garbled
from weft.wire.store.clients import Answer, Links, PathShortener, Request, decode_request, encode
from weft.wire.store.messages import Info
from weft.wire.store.pack import unpack

OTHERWISE: Final = {
    "new-session-": {
        16: "msg_monitor is not served",
        17: "msg_send is not served",
        18: "so there is nothing to stop",
        19: "what has no value is not deleted once more, and takes no tick; nothing follows `end`",
    },
    "new-session2-": {
        3: "a step with entries below it is listed, too: real servers hide them",
        7: "the ticks of this node are others, as its entries are; asked for below",
        10: "no access lists here",
        11: "no access lists here",
        14: "failed conditions are all told as ClientChainError (CLN-003)",
        20: "nothing follows `end`",
        25: "no files are written",
        26: "no files are written",
        29: "the whole tree may be deleted; not asked here",
    },
}
"""Answers that are meant to differ, by request."""
UNCOMPARED: Final = ("tock", "wseq", "etype")
"""Real servers count each message, and have no codes."""


def told(message: dict[str, Any]) -> dict[str, Any]:
    """An answer without what is no part of its meaning."""
    found = {key: value for key, value in message.items() if key not in UNCOMPARED}
    if "error" in found:
        found["error"] = found["error"].partition("(")[0]
    if "path" in found:
        found["path"] = list(found["path"])
    return found


def replay(desk: Desk, group: str, qlen: int) -> dict[int, tuple[list[Any], list[Any]]]:
    """By request: what the real server said, and what this one says."""
    client = Listener(desk, qlen)
    recorded = [row for row in rows(group) if row.means.get("seq", 0) > 0]
    for row in recorded:
        if not row.is_of_server and row.means["seq"] not in ASKED_NEVER[group]:
            try:
                desk.serving.hear(decode_request(row.raw), client.peer, desk.now)
            except PeerError:
                continue  # answered where frames are read
            desk.settle()
    seqs = {row.means["seq"] for row in recorded if not row.is_of_server} - OTHERWISE[group].keys()
    return {
        seq: (
            [told(row.means) for row in recorded if row.is_of_server and row.means["seq"] == seq],
            [told(unpack(raw)) for raw in client.raw if unpack(raw)["seq"] == seq],
        )
        for seq in sorted(seqs)
    }


ASKED_NEVER: Final = {"new-session-": (), "new-session2-": (29,)}


class Listener(Visitor):
    """A client that keeps what it hears as it came."""

    def __init__(self, desk: Desk, qlen: int) -> None:
        super().__init__(desk, b"listener", qlen=qlen, acks=False)
        self.raw: list[bytes] = []
        desk.clients[self.peer] = self
        desk.serving.came(ClientCame(self.peer, "127.0.0.1:7", is_local=True), desk.now)
        desk.settle()

    def take(self, raw: bytes) -> None:
        super().take(raw)
        if unpack(raw)["seq"]:
            self.raw.append(raw)


@pytest.mark.proves("CLN-001", "CLN-002", "CLN-004", "CLN-005")
def test_a_recorded_session_is_answered_as_it_was() -> None:
    desk = Desk("n1")
    desk.node.write(":", "hello")
    found = replay(desk, "new-session-", qlen=10)
    assert len(found) > 15
    for seq, (expected, actual) in found.items():
        assert (seq, expected) == (seq, actual)


@pytest.mark.proves("CLN-002", "CLN-003")
def test_a_recorded_session_of_rarer_actions_is_answered_as_it_was() -> None:
    desk = Desk("n1")
    for path, value in ((":", "hello"), ("a", 1), ("a.b", "x"), ("d.x", 7), ("a.c", 3), ("a.c", DELETE), ("d.y", 1)):
        desk.node.write(path, value)
    for number in range(4):
        desk.node.write("num.x", number)
    found = replay(desk, "new-session2-", qlen=0)
    # The second connection of this recording begins at 1 again.
    del found[1]
    assert len(found) > 20
    for seq, (expected, actual) in found.items():
        assert (seq, expected) == (seq, actual)


def ready(**settings: Any) -> tuple[Desk, Visitor]:
    desk = Desk("n1", **settings)
    desk.node.write(":", "root")
    return desk, desk.client()


@pytest.mark.proves("CLN-001")
def test_the_greeting_says_who_and_how_late() -> None:
    desk, client = ready()
    greeting = client.greeting
    assert greeting is not None
    assert ("n1", 1, desk.node.context.tock, 10, [0, 71, 40]) == (
        *(greeting.node, greeting.tick, greeting.tock, greeting.qlen, greeting.version),
    )
    assert {"v": 1, "caps": ["watch.since", "watch.latest", "batch", "ttl", "until", "conv", "ack"]} == greeting.weft
    assert UNSET is greeting.auth


@pytest.mark.proves("CLN-003", "STO-030")
def test_a_failed_condition_takes_no_tick() -> None:
    desk, client = ready()
    client.ask("set_value", path="a", value=1)
    before = desk.node.context.tick
    for fields, code, text in (
        ({"chain": None}, "exists", "ClientChainError('Entry already exists at a')"),
        ({"chain": Links("n9", 1)}, "chain-mismatch", "ClientChainError('Chain is n1:2 not n9:1 for a')"),
        ({"prev": 7}, "value-mismatch", "ClientChainError('Data is 1 not 7 at a')"),
    ):
        answer = client.ask("set_value", path="a", value=2, **fields)
        assert (code, text) == (answer.etype, answer.error)
    answer = client.ask("set_value", path="new", value=2, chain=Links("n9", 1))
    assert ("chain-mismatch", "ClientChainError('Entry is new at new')") == (answer.etype, answer.error)
    assert (before, 1) == (desk.node.context.tick, desk.node.value("a"))


def test_a_tick_taken_before_the_conditions_hold_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.cores.store import actions

    write = actions._write

    def early(asked: Any, conditions: Any, value: bytes | None) -> Answer:
        asked.desk.context.tick += 1
        return write(asked, conditions, value)

    monkeypatch.setattr(actions, "_write", early)
    with pytest.raises(AssertionError):
        test_a_failed_condition_takes_no_tick()


@pytest.mark.proves("CLN-003")
def test_conditions_that_hold_let_a_write_through() -> None:
    desk, client = ready()
    assert client.ask("set_value", path="a", value=1, chain=None).changed is True
    answer = client.ask("set_value", path="a", value=2, chain=Links("n1", 2), prev=1)
    assert (True, Links("n1", 3, None), 0) == (answer.changed, answer.chain, len(bytes(answer.prev)))
    assert client.ask("set_value", path="a", value=2, idem=True).changed is False
    assert client.ask("delete_value", path="a", chain=Links("n1", 3)).changed is True
    assert client.ask("set_value", path="a", value=3, chain=None).changed is True, "a tombstone is no value"
    assert desk.node.context.tick == 5


def test_equal_values_are_equal_however_they_are_packed() -> None:
    _, client = ready()
    client.ask("set_value", path="a", value={"x": 1, "y": 2})
    assert client.ask("set_value", path="a", value={"y": 2, "x": 1}, idem=True).changed is False
    assert client.ask("set_value", path="a", value=5, prev={"y": 2, "x": 1}).changed is True


def test_null_is_a_value() -> None:
    desk, client = ready()
    client.ask("set_value", path="a", value=None)
    assert value_of(client.ask("get_value", path="a")) is None
    assert client.ask("set_value", path="a", value=1, chain=None).etype == "exists"
    assert desk.node.value("a") is None


@pytest.mark.proves("CLN-002", "CLN-003")
def test_what_cannot_be_done_is_an_answer_with_a_code() -> None:
    _, client = ready()
    for action, fields, code in (
        ("no_such_action", {}, "bad-request"),
        ("batch", {}, "bad-request"),
        ("download", {}, "unsupported"),
        ("history", {"path": "a"}, "unsupported"),
        ("update", {"path": "a"}, "unsupported"),
        ("diffie_hellman", {}, "unsupported"),
        ("get_value", {}, "bad-path"),
        ("get_value", {"path": ("a", None)}, "bad-path"),
        ("get_value", {"path": ("a", 1.5)}, "bad-path"),
        ("set_value", {"path": "a"}, "bad-request"),
        ("delete_value", {"path": "a", "value": 1}, "bad-request"),
        ("set_value", {"path": "a", "value": "x" * 70_000}, "too-large"),
        ("set_value", {"path": "a", "value": 1, "ack": "most"}, "bad-request"),
        ("set_value", {"path": "a", "value": 1, "ttl": -5.0}, "bad-request"),
        ("enum", {"path": "nope"}, "not-found"),
        ("enum_node", {"node": "nx"}, "not-found"),
        ("test_acl", {"path": "a", "mode": "r", "acl": "x"}, "unsupported"),
        ("check_deleted", {}, "bad-request"),
        ("kill_node", {"node": "x"}, "unsupported"),
        ("watch", {"path": "a", "mode": "some"}, "bad-request"),
        ("watch", {"path": "a", "since": 7}, "bad-request"),
    ):
        answer = client.ask(action, **fields)
        assert (action, code) == (action, answer.etype)
        assert answer.error


def test_a_full_journal_and_a_read_only_node_say_so() -> None:
    desk, client = ready()
    desk.node.context.is_full = True
    assert "storage-full" == client.ask("set_value", path="a", value=1).etype
    desk.node.context.is_full = False
    desk.node.context.read_only = "dropped"
    assert "read-only" == client.ask("set_value", path="a", value=1).etype
    assert "root" == value_of(client.ask("get_value", path=":"))


@pytest.mark.proves("PNG-001")
def test_who_has_not_what_the_others_have_answers_nobody() -> None:
    desk, client = ready()
    desk.serving.lacks = lambda: "nothing is here"
    assert "not-ready" == client.ask("get_value", path="a").etype
    late = desk.client()
    assert (None, ["not-ready"]) == (late.greeting, [answer.etype for answer in late.answers])
    assert [late.peer] == desk.hung_up


def test_strangers_are_served_only_where_it_is_asked_for() -> None:
    desk = Desk("n1")
    peer = Visitor(desk, b"far")
    desk.clients[b"far"] = peer
    desk.serving.came(ClientCame(b"far", "10.0.0.1:5", is_local=False), desk.now)
    desk.settle()
    assert (["not-authorised"], [b"far"]) == ([answer.etype for answer in peer.answers], desk.hung_up)
    desk.serving.is_open = True
    desk.serving.came(ClientCame(b"far", "10.0.0.1:5", is_local=False), desk.now)
    desk.settle()
    assert peer.greeting is not None


def test_garbage_ends_its_connection_and_a_bad_request_does_not() -> None:
    desk, client = ready()
    desk.serving.garbled(Garbled("store-clients", client.peer, "bad-path"), desk.now)
    desk.settle()
    assert [] == desk.hung_up
    desk.serving.garbled(Garbled("store-clients", client.peer, "malformed"), desk.now)
    desk.settle()
    assert [client.peer] == desk.hung_up


@pytest.mark.proves("STO-030")
def test_an_answer_stands_below_the_records_that_it_tells_of() -> None:
    desk, client = ready()
    desk.turns.clear()
    client.ask("set_value", path="a", value=1)
    effects = [effect for turn in desk.turns for effect in turn if isinstance(effect, Persist | Send)]
    assert [Persist, Send] == [type(effect) for effect in effects]


def test_an_acknowledgement_above_its_records_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.cores.store.context import Context

    take = Context.take
    monkeypatch.setattr(Context, "take", lambda self: sorted(take(self), key=lambda e: isinstance(e, Persist)))
    with pytest.raises(AssertionError):
        test_an_answer_stands_below_the_records_that_it_tells_of()


def test_requests_of_one_turn_share_one_write() -> None:
    desk, client = ready()
    desk.turn()
    desk.turns.clear()
    seqs = [client.start("set_value", path=f"a.{number}", value=number) for number in range(50)]
    desk.settle()
    assert 1 == sum(isinstance(effect, Persist) for turn in desk.turns for effect in turn)
    assert seqs == [answer.seq for answer in client.answers]


def test_internal_paths_begin_at_the_meta_tree() -> None:
    desk, client = ready()
    client.ask("set_internal", path="hostmap.n7", value=["127.0.0.1", 5])
    assert ["127.0.0.1", 5] == value_of(client.ask("get_value", path=(None, "hostmap", "n7")))
    assert ["127.0.0.1", 5] == value_of(client.ask("get_internal", path="hostmap.n7"))
    assert ["hostmap"] == client.ask("enum_internal", path=()).result
    assert client.ask("delete_internal", path="hostmap.n7").changed is True
    assert 3 == desk.node.context.tick


def test_a_value_that_was_too_large_to_keep_is_told_as_such() -> None:
    desk, client = ready()
    desk.node.hear(change("b:1", 5, "a.big", "x" * (1 << 20)))
    assert "too-large" == client.ask("get_value", path="a.big").etype
    items = [answer for answer in client.heard(client.open("get_tree", path="a")) if answer.path is not UNSET]
    assert ["too-large"] == [item.etype for item in items]


def test_enum_lists_what_leads_to_values_and_with_empty_all() -> None:
    desk, client = ready()
    for path, value in (("a.b.c", 1), ("a.d", 2), ("a.gone.x", 3)):
        desk.node.write(path, value)
    desk.node.write("a.gone.x")
    assert ["b", "d"] == client.ask("enum", path="a").result
    assert ["b", "d", "gone"] == client.ask("enum", path="a", empty=True).result
    assert {"d": 2} == client.ask("enum", path="a", with_data=True).result
    assert {"b": None, "d": 2, "gone": None} == client.ask("enum", path="a", with_data=True, empty=True).result
    assert [] == Desk("empty").client().ask("enum", path=()).result


def test_clients_may_say_one_and_zero_for_true_and_false() -> None:
    desk, client = ready()
    desk.node.write("a.b", 1)
    desk.node.write("a.c", 1)
    desk.node.write("a.c")
    assert ["b", "c"] == client.ask("enum", path="a", empty=1, with_data=0).result
    assert ["start", ("b", 1), "uptodate"] == client.told(client.open("watch", path="a", fetch=1, nchain=True))
    assert ["start", ("b", 1), ("c",), "end"] == client.told(client.open("get_tree", path="a", empty=1, nchain=False))
    assert client.ask("set_value", path="a.b", value=1, idem=1).changed is False
    assert {"n1": 4} == client.ask("get_state", nodes=1, known=0).nodes


def test_ticks_of_a_node_are_listed() -> None:
    desk, client = ready()
    for number in range(5):
        desk.node.write("a" if number < 2 else "b", number)
    assert [1, 2, 3, 4, 5, 6] == client.ask("enum_node", node="n1").result
    assert [1, 3, 6] == client.ask("enum_node", node="n1", current=True).result
    assert [1, 2] == client.ask("enum_node", node="n1", max=2).result


@pytest.mark.proves("CLN-021", "HEA-004")
def test_the_state_names_no_head_as_known() -> None:
    desk, client = ready()
    desk.node.hear(change("b:2", 9, "x", 1), change("b:5", 12, "y"))
    desk.node.replica.settle({"b": RangeSet([(1, 1)])}, "known")
    desk.node.write("x", 3)
    state = client.ask("get_state", nodes=True, known=True, deleted=True, missing=True, present=True)
    assert {"n1": 2, "b": 5} == state.nodes
    assert {"b": [[1, 3]]} == state.known
    assert ({"b": [[3, 5]]}, {}) == (state.missing, state.deleted)
    assert {"n1": [[1, 3]], "b": [5]} == state.present


def test_check_deleted_names_what_is_gone_and_nothing_else() -> None:
    desk, client = ready()
    said: list[Info] = []
    desk.serving.say = said.append
    desk.node.write("x", 1)
    desk.node.write("x", 2)
    desk.node.hear(change("b:2", 9, "z", 1, "c:1"), change("b:1", 5, "y"))
    desk.node.replica.purge({"b": RangeSet([(1, 1)])})
    answer = client.ask("check_deleted", nodes={"n1": [[1, 4]], "b": [[1, 9]], "c": [1], "unheard": [1]})
    assert "" == answer.etype
    # n1:2 was replaced and is on no chain any more; b:1 is purged; c:1 is a link.
    assert [{"n1": RangeSet([(2, 2)]), "b": RangeSet([(1, 1)])}] == [info.deleted for info in said]
    assert 0 == desk.serving.streams


@pytest.mark.proves("CLN-021")
def test_a_joiner_gets_tombstones_and_the_rest_of_the_tree_once() -> None:
    """Vectors `joins-us`: the answers to a real server that joins, whatever its version."""
    for group in ("new-joins-us-", "mid-joins-us-"):
        desk = Desk("n3")
        node = desk.node
        node.write(":", "root")
        node.write("a.b", "hello")
        node.write("a.x", 3.25)
        node.hear(change("n9:1", 21, "a.y", {"k": [1, 2]}), change("n9:2", 22, "gone", 1), change("n9:3", 23, "z", 1))
        node.write("z", 2)
        node.write("gone")
        node.replica.write((None, "actor", "del"), b"\x81\xa5nodes\x91\xa2n3")
        node.write("z")
        node.hear(change("n9:9", 99, "z", 5, "n3:7"))
        client = Listener(desk, qlen=10)
        client.acks = True
        for row in rows(group):
            if not row.is_of_server and row.means["seq"]:
                desk.serving.hear(decode_request(row.raw), client.peer, desk.now)
                desk.settle()
        heard = [told(unpack(raw)) for raw in client.raw]
        tree = [message for message in heard if message["seq"] == 2]
        assert ["start", "end"] == [message["state"] for message in heard if message["seq"] == 2 and "state" in message]
        assert ["start", "uptodate"] == [message["state"] for message in heard if message["seq"] == 1]
        expected = [
            told(row.means) for row in rows(group) if row.is_of_server and row.means["seq"] == 2 and "path" in row.means
        ]
        assert expected == [message for message in tree if "path" in message and message["path"] != ["z"]]
        internal = [message for message in heard if message["seq"] == 3]
        assert [told(row.means) for row in rows(group) if row.is_of_server and row.means["seq"] == 3] == internal
        [state] = [message for message in heard if message["seq"] == 4]
        # The link of the tombstone may be known, too; nothing that heads an entry is.
        assert {"n3": [4, 7], "n9": [[2, 4]]} == state["known"]


@pytest.mark.proves("CLN-021")
def test_a_tombstone_that_a_join_leaves_out_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.cores.store.streams import TreeStream

    monkeypatch.setattr(TreeStream, "_shows", lambda _, event: event.value is not None)
    with pytest.raises(AssertionError):
        test_a_joiner_gets_tombstones_and_the_rest_of_the_tree_once()


def test_a_tree_is_deleted_piece_by_piece_with_what_it_had() -> None:
    desk, client = ready()
    for number in range(1_000):
        desk.node.write(f"t.{number}", number)
    desk.node.write("t.5")
    desk.settle()
    seq = client.open("delete_tree", path="t", nchain=1)
    answers = client.heard(seq)
    assert ("start", "end") == (answers[0].state, answers[-1].state)
    items = answers[1:-1]
    assert [number for number in range(1_000) if number != 5] == [value_of(item, "old_value") for item in items]
    assert {"n1"} == {item.node for item in items}
    assert list(range(1_003, 2_002)) == [item.tick for item in items]
    assert desk.node.tree.live(("t",)) == 0
    assert 0 == client.ask("delete_tree", path="t").changed
    desk.node.write("t.1", 1)
    assert 1 == client.ask("delete_tree", path="t").changed


def test_deleting_the_whole_tree_spares_what_the_store_knows_of_itself() -> None:
    desk, client = ready()
    desk.node.replica.write((None, "node", "n1"), b"\x01")
    desk.node.write("a", 1)
    assert 2 == client.ask("delete_tree", path=()).changed
    assert 1 == desk.node.tree.entries


def test_a_tree_that_cannot_be_deleted_says_why() -> None:
    desk, client = ready()
    desk.node.write("t.a", 1)
    desk.node.context.read_only = "dropped"
    assert "read-only" == client.ask("delete_tree", path="t").etype
    answers = client.heard(client.open("delete_tree", path="t", nchain=1))
    assert ["start", "read-only", "end"] == [answer.state or answer.etype for answer in answers]


def test_a_root_shortens_all_paths_of_its_client() -> None:
    desk, client = ready()
    desk.node.write("a.b", 1)
    client.ask("root", path="a")
    assert 1 == value_of(client.ask("get_value", path="b"))
    client.ask("set_value", path="c", value=2)
    assert 2 == desk.node.value("a.c")
    assert ["start", ("b", 1), ("c", 2), "end"] == client.told(client.open("get_tree", path=()))


def test_numbers_of_open_requests_are_not_used_twice() -> None:
    desk, client = ready()
    seq = client.open("watch", path="a")
    client.say(Request(seq=seq, action="get_value", path=("a",)))
    desk.settle()
    assert ["start", "bad-request"] == [answer.state or answer.etype for answer in client.heard(seq)]
    client.say(Request(seq=-5, action="get_value", path=("a",)))
    desk.settle()
    assert ["bad-request"] == [answer.etype for answer in client.heard(-5)]


def test_too_many_clients_and_streams_are_told_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLIENTS_MAX", 2)
    monkeypatch.setattr(limits, "STREAMS_MAX", 3)
    desk, client = ready()
    assert ["start"] * 3 == [client.heard(client.open("watch", path="a"))[0].state for _ in range(3)]
    assert "busy" == client.ask("watch", path="a").etype
    assert desk.client().greeting is not None
    late = desk.client()
    assert (["busy"], [late.peer]) == ([answer.etype for answer in late.answers], desk.hung_up)
    client.leave()
    assert (1, 0) == (desk.serving.clients, desk.serving.streams)


def test_who_is_gone_is_spoken_to_no_more() -> None:
    desk, client = ready()
    client.open("watch", path=())
    client.start("get_tree", path=())
    desk.turn()
    client.leave()
    client.answers.clear()
    desk.node.write("a", 1)
    desk.settle()
    assert [] == client.answers
    client.say(Request(seq=9, action="get_tock"))
    desk.settle()
    assert [] == client.answers


def test_kill_node_is_handed_on() -> None:
    desk, client = ready()
    dropped: list[str] = []
    desk.serving.drop = dropped.append
    assert "" == client.ask("kill_node", node="n7").etype
    assert "bad-request" == client.ask("kill_node").etype
    assert ["n7"] == dropped


def test_a_shortener_that_deletions_do_not_advance_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canary: path shortening not advanced by deletions."""
    from weft.cores.store.streams import EntryStream

    item = EntryStream.item

    def stale(self: EntryStream, event: Any, **more: Any) -> None:
        before = self._shortener._last
        item(self, event, **more)
        if event.value is None:
            self._shortener._last = before

    monkeypatch.setattr(EntryStream, "item", stale)
    with pytest.raises((AssertionError, PeerError)):
        test_deletions_count_for_the_paths_behind_them()


@pytest.mark.proves("CLN-005")
def test_deletions_count_for_the_paths_behind_them() -> None:
    desk, client = ready()
    desk.node.write("a.b.c", 1)
    desk.node.write("a.x.y", 1)
    desk.settle()
    seq = client.open("watch", path="a")
    client.ask("set_value", path="a.b.c", value=2)
    client.ask("delete_value", path="a.x.y")
    client.ask("set_value", path="a.b.d", value=3)
    client.ask("set_value", path="a.b.c", value=4)
    assert ["start", ("b.c", 2), ("x.y",), ("b.d", 3), ("b.c", 4)] == client.told(seq)


def test_an_unwritable_value_is_refused() -> None:
    _, client = ready()
    deep: Any = 1
    for _ in range(40):
        deep = [deep]
    assert "too-large" == client.ask("set_value", path="a", value=deep).etype


def test_every_answer_can_be_read_by_the_other_side() -> None:
    answer = Answer(seq=3, tock=4, path=("a",), depth=0, result=[1], position=["n", 1, 2])
    assert {"seq": 3, "tock": 4, "depth": 0, "result": [1], "position": ["n", 1, 2]} == {
        key: value for key, value in unpack(encode(answer)).items() if key != "path"
    }
    assert (0, ("a",)) == PathShortener().cut(("a",))
