"""Intruders at every port of a closed fabric (SEC-027, CHK-021); the checker `sealed` judges what is recorded of each.

One has no key, one a key that nobody knows, others the key of a role that no port accepts; one of these repeats what
others have sent to that port.

Scenario `intruders`: a fleet that places itself, with store and documents, whose nodes have keys; there are other
faults, too.
"""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from weft.base.chance import Chance
from weft.base.effects import Source
from weft.base.errors import PeerError
from weft.base.now import SECOND
from weft.node.authority import DENIED, NO_KEY, NOT_YOURS
from weft.node.channels import CHANNELS
from weft.node.handshake import KEY_BYTES
from weft.sim.digest import state_digest
from weft.sim.keys import GUESTS, knock
from weft.sim.plan import BASE_PORT, Action, Plan
from weft.sim.settings import FLEET
from weft.wire import data, discovery, hop, replication
from weft.wire.discovery import Announcement, Control
from weft.wire.document import frames as dialogue
from weft.wire.document.messages import Chat, Helo
from weft.wire.store import mesh

if TYPE_CHECKING:
    from weft.sim.machine import Machine

INTRUDERS: Final = "intruders"
PLAIN, UNKNOWN, RECORDED = "plain", "unknown", "recorded"
DOCUMENT: Final = "document"
KINDS: Final = (PLAIN, UNKNOWN, RECORDED, *GUESTS)
ADDRESS: Final = f"10.66.0.1:{BASE_PORT}"
INTRUDER: Final = b"\x7fintruder-16byte"
"""Suffix of an intruder's `Source.peer`."""
REFUSALS: Final = (b"WTF", b"refuse", b"denied")
"""Marks of an answer that is a refusal."""
TIMES: Final = (6, 16)
RECORDED_MAX: Final = 3  # messages per port
CODES: Final = (DENIED, NOT_YOURS, NO_KEY)


class Knock(NamedTuple):
    """The result of one intruder at one port."""

    who: str
    channel: str
    is_in: bool
    """Whether the handshake let it in."""
    sent: int
    """Number of messages that it then sent."""
    refused: int
    """How many of them the node has counted."""
    is_changed: bool
    """Whether any core's memory has changed."""


class Recorded:
    """Messages recently received at a node's ports, for replay."""

    def __init__(self) -> None:
        self._heard: dict[str, deque[list[bytes]]] = {}

    def note(self, channel: str, frames: list[bytes]) -> None:
        """Record a message that was received."""
        self._heard.setdefault(channel, deque(maxlen=RECORDED_MAX)).append(frames)

    def at(self, channel: str) -> list[list[bytes]]:
        """Recorded messages that can be decoded: no cable has altered them."""
        return [frames for frames in self._heard.get(channel, ()) if _is_read(channel, frames)]


def _is_read(channel: str, frames: list[bytes]) -> bool:
    try:
        CHANNELS[channel].decode([INTRUDER, *frames] if channel == DOCUMENT else frames)
    except PeerError:
        return False
    return True


def answers(sent: list[tuple[str, list[bytes]]], channel: str) -> int:
    """How many answers of a port were not refusals."""
    on_channel = [frames for where, frames in sent if where == channel]
    return sum(not any(word in frame for frame in frames for word in REFUSALS) for frames in on_channel)


def words_of(channel: str, uuid: bytes, name: str, fleet: str) -> list[list[bytes]]:
    """The messages of an intruder at a port: well formed, in its own name and in that of others."""
    evil = b"e" * 16
    messages = {
        "announced": [
            discovery.encode_announcement(
                Announcement("/MARCO", ADDRESS, who, {"fleet": fleet, "epoch": 4_000, "count": 1, "protocol": 1})
            )
            for who in (uuid, evil)
        ],
        "control": [
            discovery.encode_call(Control("stop", ADDRESS, uuid, {})),
            discovery.encode_call(Control("polo", ADDRESS, uuid, {"fleet": fleet, "name": name, "protocol": 1})),
            discovery.encode_call(Control("polo", ADDRESS, evil, {"fleet": fleet, "name": "evil", "protocol": 1})),
        ],
        "down": [
            hop.seal(hop.Hello(v=1, role="node", name=called, id=who, era=1, first=1, next=1))
            for called, who in ((name, uuid), ("evil", evil))
        ],
        "serve": [replication.seal_ask(replication.ICanHaz("/"))],
        "mesh": [mesh.encode(mesh.Hello(fabric=fleet, node=name, boot=1, endpoint=ADDRESS))],
        "data": [data.encode(data.DataHugz(source=ADDRESS))],
        "document": [dialogue.encode(Helo(ADDRESS)), dialogue.encode(Chat("evil"))],
    }
    return messages.get(channel, [])


def intrude(machine: "Machine", kind: str) -> Iterator[Knock]:
    """Let one intruder try each port of a node."""
    node = machine.running
    assert node.authority is not None, "only a node with keys has doors that refuse"
    keyring, table = machine.fabric.keyring, node.authority.table
    uuid = keyring.uuid_of(kind if kind in GUESTS else GUESTS[0], 0)
    for channel in sorted(machine.doors.keyed):
        credentials = {PLAIN: [], UNKNOWN: [Chance(kind).randbytes(KEY_BYTES)]}.get(kind, [keyring.key_of(uuid)])
        verdict = knock(channel, b"NULL" if kind == PLAIN else b"CURVE", credentials, table)
        if not verdict.allowed:
            yield Knock(kind, channel, is_in=False, sent=0, refused=0, is_changed=False)
            continue
        holder = table.find(verdict.frames[4].decode("ascii"))
        peer = machine.doors.peer_of(channel, INTRUDER)
        source = Source(channel, peer, holder.uuid if holder is not None else None)
        own = words_of(channel, uuid, kind, machine.plan.fleet or FLEET)
        yield _say(machine, kind, source, machine.recorded.at(channel) if kind == RECORDED else own)


def _say(machine: "Machine", kind: str, source: Source, words: list[list[bytes]]) -> Knock:
    node, now = machine.running, machine.clocks.now(machine.world.at)
    for code in CODES:  # otherwise the event of a refusal would count as a change
        node.note_told(source.channel, code, source.proved, now)
    before, refused = state_digest(node), node.refused.total()
    for frames in words:
        node.receive(source, [INTRUDER, *frames] if source.channel == DOCUMENT else frames, now)
    is_changed = state_digest(node) != before
    return Knock(kind, source.channel, True, len(words), node.refused.total() - refused, is_changed)  # it is in


def with_intruders(plan: Plan, seed: str) -> Plan:
    """The same plan with keys, and with intruders at every node while there are faults."""
    chance, names = Chance(f"{seed}/{INTRUDERS}"), [node.name for node in plan.nodes]
    begin = plan.safety_ns // 4
    came = [
        Action(chance.randrange(begin, plan.safety_ns), "intrude", chance.choice(names), how=chance.choice(KINDS))
        for _ in range(chance.randint(*TIMES))
    ]
    levels = dict.fromkeys((*names[:2], *[node.name for node in plan.nodes if node.sessions][:1], names[-1]))
    came += [Action(plan.safety_ns - SECOND, "intrude", name, how=kind) for name in levels for kind in KINDS]
    actions = sorted([*plan.actions, *came], key=lambda action: action.at)
    return msgspec.structs.replace(plan, scenario=INTRUDERS, closed=True, actions=tuple(actions))
