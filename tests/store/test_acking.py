"""A write is answered when so many members have it on their disks, and told if they do not (STO-035)."""

from typing import Any

import pytest
from msgspec import Raw

from tests.store.desk import Desk
from tests.store.net import Net, Node
from weft.base.effects import Send
from weft.cores.store import limits
from weft.cores.store.acking import Acking, PendingAck
from weft.cores.store.messages import ClientCame
from weft.wire.store.clients import Answer, Op, Request
from weft.wire.store.pack import pack

PEER = b"c1"


def trio(link: str = "mesh", **how: Any) -> Net:
    net = Net(["a", "b", "c"], link=link, **how)
    net.run(1)
    net.found("a", "r")
    net.settle()
    return net


class Asker:
    """A client of one node, whose answers are looked at as they leave."""

    def __init__(self, net: Net, name: str) -> None:
        self.net, self.node = net, net[name]
        self.seq = 0
        self.answers: list[Answer] = []
        self.node.store.serving.came(ClientCame(PEER, "127.0.0.1:7", is_local=True), self.node.now)
        self._hear()

    def _hear(self) -> None:
        serving = self.node.store.serving
        perform = self.node.store.context.send

        def send(channel: str, peer: bytes, message: Any) -> None:
            if channel == "store-clients":
                self.answers += [
                    said for said in (message if isinstance(message, tuple) else (message,)) if isinstance(said, Answer)
                ]
            else:
                perform(channel, peer, message)

        self.node.store.context.send = send  # type: ignore[method-assign]  # what leaves is read here
        assert serving.clients == 1

    def ask(self, action: str, **fields: Any) -> None:
        self.seq += 1
        self.node.store.context.now = self.node.now
        self.node.store.serving.hear(Request(seq=self.seq, action=action, **fields), PEER, self.node.now)
        self.net.do_turn(self.node)

    def set(self, path: str, ack: Any, **more: Any) -> None:
        self.ask("set_value", path=(path,), value=Raw(pack(1)), ack=ack, **more)

    def last(self) -> Answer | None:
        return self.answers[-1] if self.answers and self.answers[-1].seq == self.seq else None


def has(node: Node, path: str) -> bool:
    return node.get(path) is not None


@pytest.mark.proves("STO-035")
@pytest.mark.parametrize("link", ["mesh", "mqtt"])
@pytest.mark.parametrize(("ack", "others"), [("one", 1), ("majority", 1), (2, 1), (3, 2)])
def test_the_answer_comes_when_so_many_have_it_on_disk(link: str, ack: Any, others: int) -> None:
    net = trio(link)
    asker = Asker(net, "a")
    asker.set("x", ack)
    assert asker.last() is None, "nobody else has it"
    net.run_until(lambda: asker.last() is not None, 4, step_s=0.001)
    answer = asker.last()
    assert answer is not None
    assert (True, "") == (answer.changed, answer.etype)
    assert others <= sum(has(net[name], "x") for name in ("b", "c"))
    for name in ("b", "c"):
        if has(net[name], "x"):
            net.kill(name)
            assert has(net.start(name), "x"), "it was durable before it was said"


@pytest.mark.proves("STO-035")
def test_what_too_few_have_is_written_and_told_as_unconfirmed() -> None:
    net = trio()
    asker = Asker(net, "a")
    net.cut({"a"}, {"b", "c"})
    asker.set("x", "majority")
    net.run(4.9)
    assert asker.last() is None
    net.run(0.2)
    answer = asker.last()
    assert answer is not None
    assert ("unconfirmed", True, 1, 3) == (answer.etype, answer.changed, answer.durable, answer.of)
    assert has(net["a"], "x")
    net.heal()
    net.settle()
    assert [True] * 3 == [has(node, "x") for node in net.up()]
    assert 1 == net["a"].store.context.counters["acks", "majority:unconfirmed"]


@pytest.mark.proves("STO-035")
def test_a_word_that_was_lost_is_made_good_by_the_next_one() -> None:
    net = trio("mqtt")
    asker = Asker(net, "a")
    net.is_deaf = lambda sender, hearer: hearer == "a"
    asker.set("x", 3)
    net.run(1)
    net.is_deaf = lambda sender, hearer: False
    assert asker.last() is None
    first = asker.seq
    asker.set("y", 3)
    net.run(1)
    assert {first, first + 1} == {answer.seq for answer in asker.answers}
    assert {""} == {answer.etype for answer in asker.answers}


@pytest.mark.proves("STO-035")
def test_a_batch_waits_for_all_of_its_changes_and_what_changes_nothing_for_nobody() -> None:
    net = trio()
    asker = Asker(net, "a")
    asker.ask("batch", ops=[Op(path=(name,), value=Raw(pack(1))) for name in "xyz"], ack="majority")
    assert asker.last() is None
    net.run(1)
    assert asker.last() is not None
    asker.set("x", "majority", idem=True)
    assert asker.last() is not None
    asker.ask("delete_value", path=("x",), ack=3)
    assert asker.last() is None
    net.run(1)
    assert asker.last() is not None


@pytest.mark.proves("STO-035")
def test_a_dropped_node_counts_no_more_and_what_cannot_be_is_refused_before_it_is_written() -> None:
    net = trio()
    asker = Asker(net, "a")
    before = net["a"].store.context.tick
    for ack in (0, -1, 4, 1.5, True, "most"):
        asker.set("x", ack)
        answer = asker.last()
        assert answer is not None
        assert (ack, "bad-request") == (ack, answer.etype)
    assert before == net["a"].store.context.tick
    net.kill("c")
    net["a"].store.context.now = net["a"].now
    net["a"].store.deletion.drop_node("c")
    net.run(1)
    asker.set("x", 3)
    answer = asker.last()
    assert answer is not None
    assert "bad-request" == answer.etype
    asker.set("x", "majority")
    net.run(1)
    answer = asker.last()
    assert answer is not None
    assert "" == answer.etype


def test_alone_everything_is_local() -> None:
    desk = Desk("n1")
    desk.node.write(":", "root")
    client = desk.client()
    assert client.ask("set_value", path="a", value=1, ack="majority").changed is True
    assert "bad-request" == client.ask("set_value", path="a", value=2, ack="one").etype
    sent = [effect.message for turn in desk.turns for effect in turn if isinstance(effect, Send)]
    assert sent
    assert limits.ACK_NS == 5_000_000_000


@pytest.mark.proves("STO-035")
def test_a_write_does_not_make_the_node_look_again_at_all_that_wait_already(monkeypatch: pytest.MonkeyPatch) -> None:
    net, looks = trio(), [0]
    asker, durable = Asker(net, "a"), Acking._durable

    def counted(self: Acking, held: PendingAck) -> int:
        looks[0] += 1
        return durable(self, held)

    monkeypatch.setattr(Acking, "_durable", counted)
    for number in range(50):
        asker.set(f"x{number}", "majority")
    assert 50 == looks[0], "nobody has reported meanwhile"
    net.run_until(lambda: len(asker.answers) == 50, 4, step_s=0.001)
    assert [""] * 50 == [answer.etype for answer in asker.answers]
