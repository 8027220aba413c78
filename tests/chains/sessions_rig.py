"""A node with clients and no chains: an engine that notes what it is asked, and sockets that may take nothing."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from weft.base.effects import Effect, Send, SendFailed, Source, Tell
from weft.base.errors import PeerError
from weft.base.mail import Mail
from weft.base.now import MILLISECOND, SECOND, Now
from weft.cores.chains.clientlink import HolderLink
from weft.cores.chains.context import Context
from weft.cores.chains.core import Chains
from weft.cores.chains.messages import ChainsSettings
from weft.cores.chains.order import after_all
from weft.cores.chains.parcel import Parcel
from weft.cores.chains.post import CLIENTS
from weft.cores.chains.session import Session
from weft.cores.chains.sessions import Sessions
from weft.wire import clients
from weft.wire.clients import (
    Done,
    GiveUp,
    Hello,
    NextItem,
    Rec,
    RecItem,
    Reg,
    SendItem,
    Status,
)

NODE = b"b" * 16


class Notes:
    """An engine that only notes what it is asked, and answers sends at once, unless it is told to keep them."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.keeps = False
        self.known: set[int] = set()
        """Tags that were sent before."""

    def stand(self, session: Session, reg: Reg, now: Now) -> None:
        session.links[reg.reg] = HolderLink(session, reg, after_all(1))
        session.say(Done("reg", reg.reg, 1, 1))

    def leave(self, session: Session, reg: int, now: Now, *, forget: bool = False) -> None:
        del session.links[reg]
        session.say(Done("unreg", reg))

    def knows(self, session: Session, tag: int) -> bool:
        return tag in self.known

    def accept(self, session: Session, item: SendItem, frames: tuple[bytes, ...], now: Now) -> None:
        self.calls.append(("accept", session.name, item.tag, frames))
        if not self.keeps:
            session.answer(item.tag, ok=True, why="spooled")

    def hand_back(self, session: Session, reg: int, item: NextItem, frames: tuple[bytes, ...], now: Now) -> None:
        self.calls.append(("next", session.name, reg, item, frames))

    def delete(self, session: Session, reg: int, item: GiveUp, now: Now) -> None:
        self.calls.append(("drop", session.name, reg, item))

    def fail(self, session: Session, reg: int, item: GiveUp, now: Now) -> None:
        self.calls.append(("fail", session.name, reg, item))

    def confirm(self, session: Session, reg: int, number: int, now: Now) -> None:
        self.calls.append(("conf", session.name, reg, number))

    def lose(self, session: Session, now: Now) -> None:
        assert session.is_gone
        self.calls.append(("lose", session.name, sorted(session.links)))
        session.links.clear()


class Node:
    """Sessions, and a shell whose sockets may take nothing: what follows an unsent message of a turn is unsent, too."""

    def __init__(self, **settings: Any) -> None:
        mine = ChainsSettings(name="B", addr="127.0.0.1", boot=7, **settings)
        self.context = Context(mine, NODE, 5)
        self.chains = Notes()
        self.sessions = Sessions(self.context, self.chains)
        self.now = Now(0, 1_795_000_000 * SECOND)
        self.heard: dict[bytes, list[Any]] = {}
        self.told: list[Any] = []
        self.later: list[Effect] = []
        """Said while a turn ended: it leaves with the next one."""
        self.takes: Callable[[bytes], bool] = lambda peer: True

    # The verbs of a core

    def receive(self, message: Any, source: Source) -> None:
        self.sessions.receive(message, source, self.now)

    def wake(self) -> None:
        self.sessions.wake(self.now)

    def deadline(self) -> int | None:
        return self.sessions.deadline()

    def not_sent(self, peer: bytes) -> None:
        self.sessions.not_sent(peer, self.now)

    def effects(self) -> list[Effect]:
        self.sessions.flush(self.now)
        return self.context.take()

    # The world around it

    def wait(self, ms: float) -> None:
        """Let time pass, with every wake-up that is asked for on the way."""
        end = self.now.mono + round(ms * MILLISECOND)
        while (due := self.deadline()) is not None and due <= end:
            self.skip(max(due - self.now.mono, 0))
            self.wake()
            self.turn()
        self.skip(end - self.now.mono)

    def skip(self, ns: int) -> None:
        self.now = Now(self.now.mono + ns, self.now.wall + ns)

    def hear(self, peer: bytes, *messages: Any) -> list[Any]:
        """These messages in one turn, through the codec; what this peer then gets."""
        for message in messages:
            self.read(peer, message if isinstance(message, list) else clients.encode(message))
        return self.turn(peer)

    def read(self, peer: bytes, frames: list[bytes]) -> None:
        try:
            message = clients.decode_asked(frames)
        except PeerError as error:
            self.sessions.garbled(peer, error.code, self.now)
        else:
            self.receive(message, Source(CLIENTS, peer))

    def turn(self, peer: bytes = b"") -> list[Any]:
        """The end of a turn, as the runner has it."""
        before = {each: len(heard) for each, heard in self.heard.items()}
        unsent: Counter[bytes] = Counter()
        effects, self.later = self.later + self.effects(), []
        for effect in effects:
            if isinstance(effect, Send):
                if effect.peer in unsent or not self.takes(effect.peer):
                    unsent[effect.peer] += 1
                else:
                    frames = clients.encode(effect.message)
                    assert len(frames[0]) <= 64 << 10
                    self.heard.setdefault(effect.peer, []).append(clients.decode_answered(frames))
            elif isinstance(effect, Tell):
                self.told.append(effect.event)
        for each in unsent.elements():
            self.not_sent(each)
            self.later += self.effects()
            assert each not in [effect.peer for effect in self.later if isinstance(effect, Send)]
        return self.heard.get(peer, [])[before.get(peer, 0) :]

    def welcome(self, peer: bytes, name: str = "", number: int = 0) -> Session:
        """Attach a client; its id is made of `number`, or of its peer."""
        self.hear(peer, hello(name or peer.decode(), number or peer[0]))
        self.heard[peer].clear()
        return self.sessions._by_peer[peer]


class Whole(Node):
    """One whose engine is that of the core."""

    def __init__(self) -> None:
        super().__init__()
        self.core = Chains(settings=self.context.settings, node=NODE, era=5)
        self.context, self.sessions = self.core.context, self.core.sessions

    def receive(self, message: Any, source: Source) -> None:
        self.core.receive(message, source, self.now)

    def wake(self) -> None:
        self.core.wake(self.now)

    def deadline(self) -> int | None:
        return self.core.deadline()

    def not_sent(self, peer: bytes) -> None:
        self.core.command(SendFailed(CLIENTS, peer), self.now)

    def effects(self) -> list[Effect]:
        return self.core.effects()


def hello(name: str = "a", number: int = 1, **fields: Any) -> Hello:
    said: dict[str, Any] = {"v": 1, "role": "client", "name": name, "id": bytes([number]) * 16, "pid": 4711}
    return Hello(**said | fields)


def send(*tags: int, payload: bytes = b"x", want: str = "spool") -> clients.Send:
    return clients.Send([SendItem(tag=tag, type="t", to=["DIRECT"], want=want) for tag in tags], [payload] * len(tags))


def parcel(number: int, *frames: bytes, via: tuple[bytes, ...] = ()) -> Parcel:
    mail = Mail(
        origin=b"a" * 16, era=3, sequence=number, type="t", frames=frames or (b"x",), to=("DIRECT",), via=via, at=9
    )
    return Parcel(number, "in", mail)


def statuses(messages: list[Any]) -> list[tuple[int, str]]:
    return [(item.tag, item.why) for message in messages if isinstance(message, Status) for item in message.m]


def recs(messages: list[Any], reg: int) -> list[RecItem]:
    return [item for message in messages if isinstance(message, Rec) and message.reg == reg for item in message.m]


A, B, C = b"a", b"b", b"c"
