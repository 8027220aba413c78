"""A root and machines that want in, in virtual time: questions, answers, bindings and next keys are messages that may be lost.

Each has a disk. That of the root stands for its configuration core, too.
"""

import heapq
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec

from weft.base.chance import Chance
from weft.base.effects import Effect, Perform, Persist, Reply, Send, Source, Tell
from weft.base.keys import Binding, bound_node, decode_binding
from weft.base.now import MILLISECOND, SECOND, Now, seconds
from weft.base.records import Entry
from weft.cores.enrolment import messages as told
from weft.cores.enrolment.context import invitation_secret
from weft.cores.enrolment.core import Enrolment
from weft.cores.enrolment.messages import EnrolmentSettings
from weft.wire.enrolment import About, Join, Welcome, decode_answer, decode_join, encode_answer, encode_join, proof_of
from weft.wire.journal import decode_record, encode_record
from weft.wire.z85 import from_z85, to_z85

WALL = 1_795_000_000 * SECOND
SECRET = b"s" * 32
SYNC_NS = MILLISECOND
BEAT_NS = 2 * SECOND
STOPPED_NS = SECOND
"""From the end of a process that starts again to its start."""
BUSY = 5
"""What a configuration answers that cannot be written."""


class Post(msgspec.Struct, frozen=True):
    """A message under way to one run of a machine; `line`: the connection that keeps it in order, empty: none does."""

    to: "Machine"
    run: int
    line: str
    hear: Callable[[], None]

    def __call__(self) -> None:
        if self.to.run == self.run:
            self.hear()


class Pass(NamedTuple):
    """Somebody who was let in: by which invitation, and with which key."""

    ident: bytes
    node: bytes
    curve: str


class Machine:
    """A disk, and what runs on it."""

    def __init__(self, net: "Net", name: str) -> None:
        self.net, self.name, self.uuid = net, name, name.encode().ljust(16, b".")
        self.curve, self.following = net.new_key(), ""
        self.entries = list[Entry]()
        self.pairs: dict[str, bytes] = {}
        self.number = 0
        """Of the configuration."""
        self.core: Enrolment | None = None
        self.run = 0

    def start(self) -> None:
        """A node begins, with what its disk has."""
        settings = EnrolmentSettings(fabric="lab", name=self.name, endpoint="10.0.0.1:27500")
        self.core = Enrolment(settings, self.uuid, SECRET, Chance(f"{self.name}/{self.run}"))
        self.core.restore(self.entries, self.net.now)
        self.learn(self.pairs)
        self.order(told.Equip(self.curve, "5e" * 32, self.following))

    def crash(self) -> None:
        self.core = None
        self.run += 1

    def learn(self, pairs: dict[str, bytes]) -> None:
        self.order(told.LearnPairs(tuple((key, value or None) for key, value in pairs.items()), self.number))

    def order(self, order: Any) -> None:
        if self.core is not None:
            self.core.command(order, self.net.now)
            self.take()

    def take(self) -> None:
        """Carry out what is wanted, in order."""
        while self.core is not None and (effects := self.core.effects()):
            self.carry_out(effects)
        if self.core is not None and (due := self.core.deadline()) is not None:
            self.soon(max(due - self.net.mono, 0), self.wake)

    def carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if self.core is not None:
                self.do(effect)

    def soon(self, after_ns: int, do: Callable[[], None]) -> None:
        """Later, if the same process runs then."""
        run = self.run
        self.net.at(self.net.mono + after_ns, lambda: do() if self.run == run else None)

    def wake(self) -> None:
        due = self.core.deadline() if self.core is not None else None
        if self.core is not None and due is not None and due <= self.net.mono:
            self.core.wake(self.net.now)
            self.take()

    def do(self, effect: Effect) -> None:
        match effect:
            case Persist(records=records):
                written = [decode_record(encode_record(each)) for each in records]
                self.entries += [(len(self.entries) + n, each) for n, each in enumerate(written, 1)]
            case Perform(work=told.MakeKey()):
                self.following = self.following or self.net.new_key()
                self.soon(SYNC_NS, lambda: self.order(told.KeyMade(self.following)))
            case _:
                self.say(effect)

    def say(self, effect: Effect) -> None:
        """What concerns others."""


class Newcomer(Machine):
    """Joins by a token that somebody carried to it; from then on it is a node, which may change its key."""

    token: told.Invited | None = None
    is_in = False
    """Its file is written."""

    def come(self) -> None:
        """A person at this machine: join, or change the key of the node that runs."""
        if self.core is not None and self.core.bindings.known.get(self.uuid):
            self.order(told.RotateKey(1))
        elif self.token is not None:
            self.knock(self.token)

    def knock(self, token: told.Invited) -> None:
        self.crash()
        self.net.knock(self, encode_join(self.question(bytes.fromhex(token.ident))))

    def question(self, ident: bytes) -> Join:
        """As the token says."""
        client, server = from_z85(self.curve), from_z85(self.net.root.curve)
        assert client is not None
        assert server is not None
        secret = invitation_secret(SECRET, ident)
        return Join(ident, self.uuid, proof_of(secret, ident, self.uuid, client, server), About(self.name))

    def hear(self, frames: list[bytes]) -> None:
        """What the door has answered."""
        answer = decode_answer(frames)
        if isinstance(answer, Welcome) and self.core is None:
            self.is_in = True
            self.start()

    def follow(self, pairs: dict[str, bytes], number: int) -> None:
        """The configuration has come."""
        if self.core is not None and number > self.number:
            self.pairs, self.number = pairs, number
            self.learn(pairs)

    def wipe(self) -> None:
        """Its keys are gone, and it makes others."""
        self.crash()
        self.curve, self.following, self.is_in = self.net.new_key(), "", False

    def say(self, effect: Effect) -> None:
        match effect:
            case Perform(work=told.SwitchKey()):
                self.curve, self.following = self.following, ""
                self.crash()
                self.soon(STOPPED_NS, self.start)
            case Tell(event=told.KeyOffered() | told.KeyTaken() as event):
                order = told.HearKey(self.uuid, event.curve, isinstance(event, told.KeyTaken), getattr(event, "by", ""))
                hear = partial(self.net.root.hear_key, self.curve, order)
                self.net.post(self, Post(self.net.root, self.net.root.run, f"{self.name} up", hear))
            case _:
                pass


class Thief(Newcomer):
    """Has no token: it knows its id, or repeats what somebody else has said."""

    def question(self, ident: bytes) -> Join:
        heard = [join for join in self.net.heard if join.ident == ident]
        guess = Join(ident, self.uuid, b"x" * 32, About(self.name))
        return heard[-1] if heard and self.run % 2 else guess


class Root(Machine):
    """Invites, lets in, revokes. Its configuration writes in the same turn, which is on its disk as a whole or not at all."""

    dies = ""
    """At its next write: `before` or `behind` it; empty: it does not."""
    writes_are = 0
    """What the configuration answers."""
    has_door = False

    @property
    def bindings(self) -> dict[bytes, Binding]:
        """As its disk has them, without its own."""
        named = {bound_node(key): decode_binding(value) for key, value in self.pairs.items() if value}
        return {node: binding for node, binding in named.items() if node is not None and node != self.uuid}

    def start(self) -> None:
        super().start()
        self.order(told.TakeRoot())
        self.beat()

    def crash(self) -> None:
        super().crash()
        self.dies, self.has_door = "", False

    def beat(self) -> None:
        """Whoever has less than all bindings gets them."""
        for each in self.net.newcomers:
            if each.core is not None and each.number < self.number and self.knows(each.uuid, each.curve):
                follow = partial(each.follow, dict(self.pairs), self.number)
                self.net.post(self, Post(each, each.run, f"{each.name} down", follow))
        self.soon(BEAT_NS, self.beat)

    def knows(self, node: bytes, curve: str) -> bool:
        binding = self.bindings.get(node)
        return binding is not None and curve in binding.curve

    def hear_key(self, proved: str, order: told.HearKey) -> None:
        """What a node says of its keys, over a connection that has proved one."""
        if self.core is not None and self.knows(order.node, proved):
            self.net.entitled.add((order.node, order.curve))
            self.order(order)

    def hear(self, frames: list[bytes], curve: str, peer: bytes) -> None:
        """A question at the door."""
        if self.core is not None and self.has_door:
            join = decode_join(frames)
            self.net.judge(join, curve, peer)
            self.core.receive(join, Source("enrol", peer, None, curve), self.net.now)
            self.take()

    def carry_out(self, effects: list[Effect]) -> None:
        """A turn as a node has it: what its cores tell one another, then the disk, then the others."""
        core, waiting = self.core, deque[Any](effects)
        kept, pairs, said = list[Effect](), dict(self.pairs), list[Effect]()
        assert core is not None
        while waiting:
            match waiting.popleft():
                case Persist() as effect:
                    kept.append(effect)
                case Tell(event=told.BindingWanted() as wanted):
                    waiting += self._written(wanted, pairs)
                case Tell() | Send() | Reply() | Perform() as effect:
                    said.append(effect)
                case order:
                    core.command(order, self.net.now)
                    waiting += core.effects()
        self._end_turn(kept, pairs, said)

    def _written(self, wanted: told.BindingWanted, pairs: dict[str, bytes]) -> list[Any]:
        """What the configuration answers."""
        if self.writes_are:
            return [told.BindingWritten(wanted.ticket, self.writes_are)]
        pairs[wanted.key] = wanted.value
        changed = told.LearnPairs(((wanted.key, wanted.value or None),), self.number + 1)
        return [changed, told.BindingWritten(wanted.ticket, 0)]

    def _end_turn(self, kept: list[Effect], pairs: dict[str, bytes], said: list[Effect]) -> None:
        dies = self.dies if kept or pairs != self.pairs else ""
        if dies != "before":
            self._keep(kept, pairs)
        if dies:
            self.crash()
            return
        for effect in said:
            self.do(effect)

    def _keep(self, kept: list[Effect], pairs: dict[str, bytes]) -> None:
        for effect in kept:
            self.do(effect)
        self.number += pairs != self.pairs
        for key in [key for key, value in pairs.items() if not value and self.pairs.get(key)]:
            self.net.revoked |= {*decode_binding(self.pairs[key]).curve}
        self.pairs = pairs

    def say(self, effect: Effect) -> None:
        match effect:
            case Perform(work=told.OpenDoor()):
                self.has_door = True
                self.soon(0, lambda: self.order(told.DoorIs(27_509)))
            case Perform(work=told.CloseDoor()):
                self.has_door = False
            case Send(peer=peer, message=message):
                self.net.answer(peer, message)
            case Reply(answer=answer):
                self.net.note(answer)
            case _:
                pass


class Net:
    """One root, two machines that somebody gives tokens to, and a thief."""

    def __init__(self, seed: int, most_ns: int) -> None:
        self.mono, self.most_ns = SECOND, most_ns
        """`most_ns`: how long a message is under way at most."""
        self.stood_ns = 0
        self.heap: list[tuple[int, int, Callable[[], None]]] = []
        self.cut: set[str] = set()
        self._chance = Chance(f"{seed}/enrolment")
        self._serial = 0
        self._last: dict[str, int] = {}
        self._asked: dict[bytes, tuple[Join, str, bool]] = {}
        self.heard: list[Join] = []
        self.invited: dict[bytes, told.Invited] = {}
        self.withdrawn: set[bytes] = set()
        self.entitled: set[tuple[bytes, str]] = set()
        """Which keys may be bound to which node: those that came with a right proof, or that a known node offered."""
        self.passes: set[Pass] = set()
        self.revoked: set[str] = set()
        self.wrong: list[str] = []
        self.root = Root(self, "root")
        self.newcomers: tuple[Newcomer, ...] = (Newcomer(self, "a"), Newcomer(self, "b"), Thief(self, "thief"))
        self.machines: dict[str, Machine] = {each.name: each for each in (self.root, *self.newcomers)}
        self.root.start()

    @property
    def now(self) -> Now:
        return Now(self.mono, WALL + self.mono)

    def new_key(self) -> str:
        return to_z85(self._chance.randbytes(32))

    # Time

    def at(self, due: int, do: Callable[[], None]) -> None:
        self._serial += 1
        heapq.heappush(self.heap, (due, self._serial, do))

    def run(self, span_s: float) -> None:
        """Let time pass."""
        end = self.mono + seconds(span_s)
        while self.heap and self.heap[0][0] <= end:
            due, _, do = heapq.heappop(self.heap)
            self.mono = max(self.mono, due)
            do()
        self.mono = end

    def post(self, sender: Machine, post: Post) -> None:
        """On its way, unless a cable is out."""
        if sender.name in self.cut or post.to.name in self.cut:
            return
        due = self.mono + 1 + int(self._chance.random() * self.most_ns)
        if post.line:
            due = self._last[post.line] = max(due, self._last.get(post.line, 0))
        self.at(due, post)

    # The door

    def knock(self, machine: Newcomer, frames: list[bytes]) -> None:
        """A machine asks to be let in, over a connection of its own."""
        root, peer, curve = self.root, b"%s/%d" % (machine.name.encode(), machine.run), machine.curve
        self.post(machine, Post(root, root.run, "", partial(root.hear, frames, curve, peer)))

    def judge(self, join: Join, curve: str, peer: bytes) -> None:
        """Whether that one may be let in, as somebody sees who knows all."""
        invited, client, server = self.invited.get(join.ident), from_z85(curve), from_z85(self.root.curve)
        assert client is not None
        assert server is not None
        right = proof_of(invitation_secret(SECRET, join.ident), join.ident, join.node, client, server)
        is_open = invited is not None and self.now.wall < invited.expires_minutes * 60 * SECOND
        may = right == join.proof and is_open and join.ident not in self.withdrawn
        self._asked[peer] = join, curve, may
        self.heard.append(join)
        if may:
            self.entitled.add((join.node, curve))

    def answer(self, peer: bytes, message: Any) -> None:
        name, _, run = peer.decode().partition("/")
        machine, (join, curve, may) = self.machines[name], self._asked[peer]
        assert isinstance(machine, Newcomer)
        if isinstance(message, Welcome):
            self._note_pass(Pass(join.ident, join.node, curve), may=may)
        self.post(self.root, Post(machine, int(run), "", partial(machine.hear, encode_answer(message))))

    def _note_pass(self, new: Pass, *, may: bool) -> None:
        if new not in self.passes:
            self.revoked.discard(new.curve)  # another token lets it in again
            if not may:
                self.wrong.append(f"{new} is let in, and may not")
        self.passes.add(new)
        if not self.root.knows(new.node, new.curve):
            self.wrong.append(f"{new} is told that it is in, and nobody knows its key")

    def note(self, answer: Any) -> None:
        """A person is told what has been done."""
        match answer:
            case told.Invited():
                self.invited[bytes.fromhex(answer.ident)] = answer
                for each in self.newcomers:
                    each.token = answer
            case told.Withdrawn():
                self.withdrawn.add(bytes.fromhex(answer.ident))
            case told.KeysRevoked() if bytes.fromhex(answer.uuid) in self.root.bindings:
                self.wrong.append(f"{answer.name} is revoked, and known")

    # What holds

    def check(self) -> list[str]:
        """What is wrong at this moment."""
        bound = {(node, curve) for node, binding in self.root.bindings.items() for curve in binding.curve}
        wrong = [f"{each} is bound, and nobody who may has asked for it" for each in sorted(bound - self.entitled)]
        wrong += [f"{curve} is back" for _, curve in sorted(bound) if curve in self.revoked]
        for ident, invited in self.invited.items():
            let_in = [each for each in self.passes if each.ident == ident]
            if len(let_in) > invited.uses:
                wrong.append(f"{len(let_in)} came in by {ident.hex()}, which is for {invited.uses}")
        return self.wrong + wrong + self._forgotten()

    def _forgotten(self) -> list[str]:
        """What somebody was told, and the root does not know."""
        if self.root.core is None:
            return []
        kept = self.root.core.invitations.kept
        wrong = [f"invitation {ident.hex()}" for ident in self.invited if ident not in kept]
        wrong += [f"{ident.hex()} is open again" for ident in self.withdrawn if ident in kept and kept[ident].is_open]
        used = {Pass(ident, one.node, one.curve) for ident, each in kept.items() for one in each.joined}
        return wrong + [f"{each} was let in" for each in sorted(self.passes - used)]

    def unsettled(self) -> list[str]:
        """Where somebody who was let in and the root do not know the same, when all is quiet."""
        wrong = []
        for each in self.newcomers:
            binding = self.root.bindings.get(each.uuid)
            if each.is_in and binding is None and each.curve not in self.revoked:
                wrong.append(f"{each.name} was let in, and is not known")
            if each.is_in and binding is not None and each.curve not in self.revoked:
                wrong += self._differing(each, binding)
        return wrong

    def _differing(self, each: Newcomer, binding: Binding) -> list[str]:
        if binding.curve != (each.curve,):
            return [f"{each.name} has {each.curve}, and is known by {binding.curve}"]
        if each.core is None or self.root.core is None or each.core.bindings.known != self.root.core.bindings.known:
            return [f"{each.name} knows other keys than the root"]
        return []


def line_of(entry: tuple[Any, ...]) -> Any:
    """The connection that carries what stands in the heap, empty for a message alone, None for what is no message."""
    return entry[2].line if isinstance(entry[2], Post) else None
