"""What anybody on the network can do without a proof: send false hints, and listen at an address that is free.

A false message is well formed, and received like any other; a node may act on it no further than to ask somebody. No
such message may end a node, move a child from a parent that answers, or lead a fleet away for good.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.base.endpoints import LINK
from weft.base.errors import PeerError
from weft.sim.links import size_of
from weft.sim.plan import BASE_PORT
from weft.sim.settings import FLEET
from weft.sim.sockets import Flow
from weft.wire import beacon, discovery, hop
from weft.wire.envelope import Answer

if TYPE_CHECKING:
    from weft.sim.fabric import Fabric
    from weft.sim.machine import Machine

LIAR: Final = b"f" * 16
ADDRESS: Final = "10.66.0.1"
NOWHERE: Final = f"{ADDRESS}:{BASE_PORT}"
"""Where nobody listens."""
FAR_EPOCH: Final = 4_000_000  # no fleet comes so far by its elections
NEAR_EPOCH: Final = 2
WINDOW: Final = 1_000
WINDOW_BYTES: Final = 1 << 20


class Heard(NamedTuple):
    """One message that a node hears."""

    channel: str
    peer: bytes
    frames: list[bytes]


def _fleet_of(machine: "Machine") -> str:
    return machine.plan.fleet or FLEET


def _beacon(machine: "Machine", name: str, level: str) -> Heard:
    message = beacon.Beacon(_fleet_of(machine), name, LIAR, level, BASE_PORT, 1)
    return Heard("beacon", ADDRESS.encode(), beacon.encode(message))


def _namesake(machine: "Machine") -> list[Heard]:
    return [_beacon(machine, machine.name, machine.level)]


def _parent_elsewhere(machine: "Machine") -> list[Heard]:
    return [_beacon(machine, machine.plan.parent, "root")] if machine.plan.parent else []


def _root(machine: "Machine", epoch: int) -> Heard:
    content = {"fleet": _fleet_of(machine), "epoch": epoch, "count": 1, "protocol": 1, "holds": [epoch, 1]}
    message = discovery.Announcement("/MARCO", NOWHERE, LIAR, content)
    return Heard("announced", b"", discovery.encode_announcement(message))


def _far_vote(machine: "Machine") -> list[Heard]:
    content = {"fleet": _fleet_of(machine), "election": "e", "propose": FAR_EPOCH, "holds": [FAR_EPOCH, 1]}
    message = discovery.Announcement("/RECOVERY/wutup", NOWHERE, b"\xff" * 16, content)
    return [Heard("announced", b"", discovery.encode_announcement(message))]


def _place(machine: "Machine") -> list[Heard]:
    """Somebody claims to be the root, and answers when it is asked for a place."""
    if machine.level == "root":
        return []
    place = {"parent": NOWHERE, "root": NOWHERE, "level": "leaf", "group": "g1", "tier": 1, "epoch": NEAR_EPOCH}
    message = discovery.Control("assignment", machine.endpoint, machine.node_id, {**place, "root_uuid": LIAR.hex()})
    answer = Heard("call", NOWHERE.encode(), discovery.encode_control_answer(Answer((), message)))
    return [_root(machine, NEAR_EPOCH), answer]


LIES: Final[dict[str, Callable[["Machine"], list[Heard]]]] = {
    "an older node has your name": _namesake,
    "your parent is elsewhere": _parent_elsewhere,
    "there is a root of a far epoch": lambda machine: [_root(machine, FAR_EPOCH)],
    "there is a root of a later epoch": lambda machine: [_root(machine, NEAR_EPOCH)],
    "vote for me in a far epoch": _far_vote,
    "your place is below me": _place,
}
"""False messages, by what they claim."""


def tell(machine: "Machine", lie: str) -> bool:
    """Let a node receive a false message; False if it does not listen."""
    node = machine.node
    lies = [each for each in LIES[lie](machine) if node is not None and each.channel in node.channels]
    for each in lies:
        machine.hear(each.channel, each.peer, each.frames, None)
    return bool(lies)


class Impostor:
    """A stranger that listens where a node did: it welcomes every child, takes everything, and calls it safe."""

    queue_messages = 0
    is_listening = True
    key: str | None = None

    def __init__(self, fabric: "Fabric", machine: "Machine") -> None:
        self.name, self._fabric = machine.name, fabric
        self._router = fabric.streams.bind(self, f"{machine.address}:{fabric.base_port + LINK}")
        self.taken = 0
        """Messages that it has called safe."""

    def end(self) -> None:
        """It ends, and its kernel tells its peers."""
        self._fabric.streams.unbind(self._router, is_loud=True)

    def hear(self, _: str, peer: bytes, frames: list[bytes], flow: Flow | None) -> None:
        """Take a message of a child."""
        if flow is not None:
            flow.read(size_of(frames))
        try:
            message = hop.decode(frames)
        except PeerError:
            return
        if isinstance(message, hop.Hello):
            self._say(peer, self._welcome(message))
        elif isinstance(message, hop.Hop):
            self.taken += len(message.m)
            upto = message.s + len(message.m) - 1
            acknowledgement = hop.Hack(
                era=message.era, upto=upto, win=WINDOW, winb=WINDOW_BYTES, safe=upto, root=(LIAR, 0)
            )
            self._say(peer, acknowledgement)
            self._fabric.recorder.meet("a stranger that calls samples safe")
        elif isinstance(message, hop.Beat):
            self._say(peer, hop.Beat())

    def _say(self, peer: bytes, message: hop.Message) -> None:
        self._fabric.streams.send_down(self._router, peer, hop.seal(message))

    def _welcome(self, hello: hop.Hello) -> hop.Welcome:
        """A welcome in the name of the node that was here."""
        upto = hello.next - 1
        return hop.Welcome(
            v=hop.VERSION, node=LIAR, name=self.name, addr="", boot=1, level="root", parent=None, children=[],
            credit=0, credit_bytes=0, beat=1_000, dead=5_000, era=1, first=1, next=1,
            upto=upto, win=WINDOW, winb=WINDOW_BYTES, safe=upto, root=(LIAR, 0),
        )  # fmt: skip
