"""Whatever dials with keys and is refused: single knocks come from it, and it is back when it may be (SEC-052)."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

import pytest
import zmq

from tests.patience import PATIENCE_S
from tests.shell.ports import free_port
from tests.shell.test_pinned import bound, keys
from weft.base.effects import Connect, Source
from weft.base.endpoints import ANNOUNCEMENTS
from weft.base.keys import KeyTable
from weft.node.securityevents import DoorOpened, DoorShut
from weft.shell import shutdoors
from weft.shell.docdoors import SessionLinks
from weft.shell.doorstep import Doorstep
from weft.shell.keys import Keys
from weft.shell.links import Links
from weft.shell.sockets import Credentials
from weft.shell.zap import Gatekeeper

ME, PEER = b"m" * 16, b"p" * 16
LOCAL: Final = "127.0.0.1"
MINE, OTHERS = keys(), keys()
BOTH = KeyTable.of([bound(ME, MINE), bound(PEER, OTHERS)])
PEER_ALONE = KeyTable.of([bound(PEER, OTHERS)])


class Node:
    """The sockets of a node: its channels, and one session of documents."""

    def __init__(self, pair: Keys, other: bytes, closing: ExitStack) -> None:
        self.heard: list[bytes] = []
        self.told: list[Any] = []
        self.links = Links(lambda: None)
        self.links.secure(Credentials(pair, BOTH, lambda _: (other,)))
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._keeper = Gatekeeper(self._context, BOTH)
        self._keeper.open()
        self.session = SessionLinks(self._context, "S", self._hear, self.links.credentials, self._keeper)
        self.session.uuid = pair.public[:16].encode()
        self.doorstep = Doorstep(self.links, self.told.append, lambda: [self.session])
        for close in (self._context.term, self._keeper.close, self.session.close, self.links.close):
            closing.callback(close)

    def _hear(self, _: Source, said: list[bytes]) -> None:
        self.heard.append(said[-1])

    def drain(self) -> None:
        """Hear what has come on its channels."""
        self.heard += [each.frames[-1] for each in self.links.drain()[0]]

    def admit(self, table: KeyTable, *gone: bytes) -> None:
        """The keys that it knows from now on."""
        self.links.admit(table, frozenset(gone))
        self._keeper.table = table
        if gone:
            self.session.forget(gone)

    @property
    def refused(self) -> int:
        """Handshakes with a key that it does not know."""
        keeper = self.links.gatekeeper
        assert keeper is not None, "it has keys"
        return keeper.decided["unknown-key"] + self._keeper.decided["unknown-key"]


Say = Callable[[Node, int], None]


def announce(node: Node, port: int) -> None:
    """Say something to all who were connected to."""
    if "announce" not in node.links.ends:
        node.links.connect(Connect("announce", f"{LOCAL}:{port - ANNOUNCEMENTS}"))
    node.links.send("announce", b"", [b"call"])


def edit(node: Node, port: int) -> None:
    """Say something to a peer of the session."""
    node.session.send(f"{LOCAL}:{port}".encode(), [b"CHAT", b"call"])


async def until(step: Callable[[], None], is_so: Callable[[], bool], what: str) -> None:
    """Repeat a step until something is so."""
    for _ in range(int(PATIENCE_S / 0.02)):
        step()
        if is_so():
            return
        await asyncio.sleep(0.02)  # tidy: libzmq tells nobody whether a handshake succeeds; bounded
    raise TimeoutError(what)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that look after a silence of tenths of a second."""
    for name, seconds in (("SILENT_S", 0.3), ("QUIET_S", 0.2), ("FIRST_S", 0.4)):
        monkeypatch.setattr(shutdoors, name, seconds)


async def play(say: Say) -> None:
    with ExitStack() as closing:
        me, peer = Node(MINE, PEER, closing), Node(OTHERS, ME, closing)
        port = free_port()
        peer.links.serve(LOCAL, port - ANNOUNCEMENTS, ["announced"]) if say is announce else peer.session.listen(
            f"{LOCAL}:{port}"
        )

        def turn() -> None:
            say(me, port)
            peer.drain()
            me.doorstep.look()

        def tries() -> int:
            return sum(each["tries"] for each in me.links.credentials.shut.facts(0.0))

        await until(turn, lambda: bool(peer.heard), "it is heard")
        peer.admit(PEER_ALONE, ME)
        await until(turn, lambda: any(isinstance(each, DoorShut) for each in me.told), "it knows that it is refused")
        refused, tried = peer.refused, tries()
        await until(turn, lambda: tries() >= tried + 2, "it has knocked again")
        assert peer.refused - refused <= tries() - tried + 1
        peer.admit(BOTH)
        await until(turn, lambda: isinstance(me.told[-1], DoorOpened), "it is let in")
        peer.heard.clear()
        await until(turn, lambda: bool(peer.heard), "it is heard again")
        await me.doorstep.close()


@pytest.mark.proves("SEC-052", part="sockets that hear nothing, and those of documents, knock as seldom as all others")
@pytest.mark.parametrize("say", [announce, edit], ids=["announcements", "documents"])
def test_what_is_refused_dials_no_more_and_is_back_when_it_may(say: Say) -> None:
    asyncio.run(play(say))


def test_who_is_heard_is_not_knocked_at() -> None:
    async def main() -> None:
        with ExitStack() as closing:
            me, peer = Node(MINE, PEER, closing), Node(OTHERS, ME, closing)
            assert me.session.listen(LOCAL)
            assert peer.session.listen(LOCAL)
            await until(lambda: edit(me, peer.session.port), lambda: bool(peer.heard), "it is heard")
            assert [f"{LOCAL}:{peer.session.port}"] == list(me.session.awaited.unheard)
            await until(lambda: edit(peer, me.session.port), lambda: bool(me.heard), "it hears")
            assert {} == me.session.awaited.unheard

    asyncio.run(main())


@pytest.mark.proves("SEC-052", part="nothing waits for a peer of a document whose key is not known yet")
def test_a_peer_whose_key_was_not_known_yet_counted_as_one_that_does_not_read_every_second() -> None:
    async def main() -> None:
        with ExitStack() as closing:
            me, peer = Node(MINE, PEER, closing), Node(OTHERS, ME, closing)
            assert peer.session.listen(LOCAL)
            place = f"{LOCAL}:{peer.session.port}".encode()
            me.admit(KeyTable.of([bound(ME, MINE)]))
            assert me.session.send(place, [b"CHAT", b"lost"])
            me.admit(BOTH)
            await until(lambda: edit(me, peer.session.port), lambda: bool(peer.heard), "it is heard")
            assert b"lost" not in peer.heard
            assert not me.session.send(b"nowhere", [b"CHAT", b"lost"])

    asyncio.run(main())
