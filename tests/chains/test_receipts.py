"""Whoever wants to know that a node several links away has its message hears it from that node (RTE-006)."""

from typing import Any

import msgspec
import pytest

from tests.chains.rig import Rig
from tests.chains.test_arrival import HELLO, PEER, Sender
from weft.base.mail import INBOX, RCPT, Mail, to_record
from weft.cores.chains import limits
from weft.cores.chains.messages import MailPosted, PostFailed
from weft.cores.chains.receipts import Receipt
from weft.sim.tree import Tree
from weft.wire import clients
from weft.wire.clients import Answered, Send, SendItem, StatusItem


class Hearer:
    """A program beside a node that hears all messages of type `t`."""

    def __init__(self, tree: Tree, node: str) -> None:
        self.heard: list[bytes] = []
        tree.attach(node, PEER, self)
        tree.say(node, PEER, HELLO)
        tree.say(node, PEER, clients.Reg(reg=1, dir="in", type="t"))

    def hear(self, message: Answered) -> None:
        if isinstance(message, clients.Rec):
            self.heard += message.frames


def made() -> tuple[Tree, Sender]:
    """A and D stand below B, which stands below C: from A to D there are two links."""
    tree = Tree({"C": "", "B": "C", "A": "B", "D": "C"})
    return tree, Sender(tree)


def send(tree: Tree, to: Any, tag: int = 1, want: str = "dest") -> None:
    item = SendItem(tag=tag, type="t", to=["DIRECT", to], want=want)
    tree.say("A", PEER, Send([item], [b"x"]))


@pytest.mark.proves("RTE-006")
@pytest.mark.parametrize("node", ["C", "D"])
def test_it_is_delivered_when_the_node_that_it_is_for_has_it(node: str) -> None:
    tree, sender = made()
    hearer = Hearer(tree, node)
    send(tree, tree[node].node_id)
    assert ([StatusItem(tag=1, ok=True, why="delivered", count=1)], [b"x"]) == (sender.told, hearer.heard)


@pytest.mark.proves("RTE-006", part="not when the first node on the way has it")
def test_while_only_a_node_between_has_it_its_sender_waits() -> None:
    tree, sender = made()
    tree.kill("D")
    send(tree, tree["D"].node_id)
    assert [] == sender.told
    tree.start("D")
    sender.alive(40)
    assert [(1, "delivered")] == [(told.tag, told.why) for told in sender.told]


@pytest.mark.proves("RTE-006", part="what never came")
def test_without_a_receipt_it_is_unconfirmed_once() -> None:
    tree, sender = made()
    tree.kill("D")
    send(tree, tree["D"].node_id)
    send(tree, tree["D"].node_id, tag=2, want="none")
    sender.alive(29)
    assert [] == sender.told
    sender.alive(40)
    assert [(1, False, "unconfirmed")] == [(told.tag, told.ok, told.why) for told in sender.told]


def site() -> Rig:
    return Rig({"a": "b", "b": "c", "c": None})


def statuses(rig: Rig) -> list[Any]:
    return [event[3:] for event in rig.events if event[0] == "status"]


@pytest.mark.proves("RTE-006", part="who has not been asked says nothing")
def test_a_receipt_of_another_node_or_of_nothing_is_counted_and_changes_nothing() -> None:
    rig = site()
    rig._far = lambda mail: "b"  # type: ignore[method-assign]  # it stays there
    rig.send("a", "s", 1, "x", ["DIRECT", rig.sites["c"].id], want="dest")
    (posted,) = [event for event in rig.sites["a"].told if isinstance(event, MailPosted)]
    assert (True, []) == (posted.mail.rcpt, [row for row in statuses(rig) if row[1]])
    core = rig.sites["a"].core
    body = msgspec.msgpack.encode(Receipt(posted.mail.era, posted.mail.sequence))
    for origin, payload in ((rig.sites["b"].id, body), (rig.sites["c"].id, b"\xc1"), (rig.sites["c"].id, b"\x80")):
        mail = Mail(
            origin=origin, era=1, sequence=5, type="weft.receipt", frames=(payload,), to=("DIRECT",), via=(origin,)
        )
        core.screen(to_record(mail, INBOX, 1), rig.now)
    assert 4 == core.context.counters.refused["receipt"], "the node that has it instead has answered, too"
    assert core.sending.posted == core.engine.held("out")


@pytest.mark.proves("RTE-006", "CHN-030", part="counts")
def test_what_did_not_leave_or_was_overdue_is_held_no_longer() -> None:
    rig = site()
    rig._hear = lambda site, event: site.told.append(event)  # type: ignore[method-assign]  # nothing leaves
    for tag in (1, 2):
        rig.send("a", "s", tag, "x", ["DIRECT", rig.sites["c"].id], want="dest")
    core = rig.sites["a"].core
    assert (2, 2) == (core.sending.posted, len(core.sending.receipts))
    core.command(PostFailed(1, "no-route"), rig.now)
    assert (1, 1) == (core.sending.posted, len(core.sending.receipts))
    rig.advance(limits.RECEIPT_NS // 1_000_000)
    assert (0, 0, None) == (core.sending.posted, len(core.sending.receipts), core.sending.receipts.deadline())
    assert [(1, False, "no-route"), (2, False, "unconfirmed")] == statuses(rig)


@pytest.mark.proves("RTE-006", part="the flag travels in the journal, too")
def test_who_wants_a_receipt_stands_in_the_record() -> None:
    mail = Mail(origin=bytes(16), era=1, sequence=1, type="t", frames=(b"x",), to=("DIRECT", b"n" * 16), rcpt=True)
    assert {"to": ["DIRECT", b"n" * 16], RCPT: True} == to_record(mail, INBOX, 1).attributes
