"""Whoever wants to know that the node above has its message hears it once, over whole nodes (CHN-030)."""

from typing import Any

import pytest
from msgspec import structs

from weft.sim.tree import Tree
from weft.wire import clients
from weft.wire.clients import Answered, Hello, Send, SendItem, Status, StatusItem

PEER = b"\x01" * 16
HELLO = Hello(v=1, role="client", name="s", id=b"\x07" * 16)


class Sender:
    """A program beside A that remembers what it was told."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.told: list[StatusItem] = []
        tree.attach("A", PEER, self)
        tree.say("A", PEER, HELLO)

    def hear(self, message: Answered) -> None:
        if isinstance(message, Status):
            self.told += message.m

    def send(self, tag: int, **more: object) -> None:
        item = SendItem(tag=tag, type="t", to=["PARENTSOF"], want="dest", **more)  # type: ignore[arg-type]  # fields by name
        self.tree.say("A", PEER, Send([item], [b"x"]))

    def alive(self, seconds: int) -> None:
        """Let time pass, and say beats meanwhile, as a program does."""
        for _ in range(seconds):
            self.tree.advance(1_000)
            self.tree.say("A", PEER, clients.Beat())


def made() -> tuple[Tree, Sender]:
    tree = Tree({"C": "", "B": "C", "A": "B"})
    return tree, Sender(tree)


@pytest.mark.proves("CHN-030")
def test_a_durable_message_is_delivered_when_the_node_above_has_it() -> None:
    _, sender = made()
    sender.send(1)
    assert [StatusItem(tag=1, ok=True, why="delivered", count=1)] == sender.told


@pytest.mark.proves("CHN-030", "CHN-031")
def test_while_the_node_above_is_away_it_is_not_and_afterwards_it_is_once() -> None:
    tree, sender = made()
    tree.kill("B")
    sender.send(1)
    sender.send(2)
    sender.alive(20)
    assert [] == sender.told
    tree.start("B")
    sender.alive(20)
    assert [(1, "delivered"), (2, "delivered")] == [(told.tag, told.why) for told in sender.told]


@pytest.mark.proves("CHN-030", "CHN-041")
def test_what_expires_on_the_way_says_so() -> None:
    tree, sender = made()
    tree.kill("B")
    sender.send(1, exp=tree.now.wall + 5_000_000_000)
    sender.send(2)
    sender.alive(10)
    tree.start("B")
    sender.alive(20)
    assert [(1, False, "expired"), (2, True, "delivered")] == [(told.tag, told.ok, told.why) for told in sender.told]


@pytest.mark.proves("CHN-030")
def test_a_start_later_a_number_of_before_means_nobody() -> None:
    tree, sender = made()
    tree.kill("B")
    sender.send(1)
    tree.kill("A")
    tree.start("A")
    again = Sender(tree)
    again.send(9)
    tree.start("B")
    again.alive(20)
    assert [(9, "delivered")] == [(told.tag, told.why) for told in again.told]


class Holder:
    """A program beside B that keeps what it is given in hand."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.held: list[int] = []
        tree.attach("B", PEER, self)
        tree.say("B", PEER, HELLO)
        tree.say("B", PEER, clients.Reg(reg=1, dir="in", type="t", access="rw", fail="wait", window=4_096))

    def hear(self, message: Answered) -> None:
        if isinstance(message, clients.Rec):
            self.held += [item.id for item in message.m]

    def let_go(self) -> None:
        for number in self.held:
            self.tree.say("B", PEER, clients.Next(1, [clients.NextItem(id=number)], []))


@pytest.mark.proves("CHN-040")
def test_children_wait_while_programs_hold_more_than_there_is_room_for() -> None:
    tree, sender = made()
    holder = Holder(tree)
    chains: Any = tree["B"].running.cores["chains"]
    chains.context.settings = structs.replace(chains.context.settings, inbox_bytes=10)
    for tag in range(30):
        sender.send(tag)
    assert 11 <= len(sender.told) < 30
    assert tree["B"].running.standing.is_pressed
    for _ in range(30):
        holder.let_go()
        holder.held.clear()
        sender.alive(1)
        tree.say("B", PEER, clients.Beat())
    assert list(range(30)) == [told.tag for told in sender.told]
    assert not tree["B"].running.standing.is_pressed
