"""The peers of a session: those that are called, present, or gone (PEE-012, PEE-014).

A peer has two names: its endpoint, where it is called, and its UUID, which its messages carry. Both are unique here.
"""

from collections import Counter
from typing import Final

import msgspec

from weft.cores.document import limits
from weft.cores.document.context import PEERS, Context
from weft.cores.document.states import State
from weft.wire.document.messages import Gsip

MANUAL, MDNS, TOLD, CAME = "manual", "mdns", "peer", "helo"
"""How we learned of a peer: a person named it, mDNS found it, a PEER message told it, or it called us."""
PRESENT: Final = frozenset({State.GREETED, State.ACTIVE})
"""States in which a peer's messages are accepted."""
LINKED: Final = frozenset({State.CALLING, State.GREETED, State.ACTIVE})


class Saying(msgspec.Struct):
    """A message kind sent to one peer, as a question or as an answer."""

    said_at: int | None = None
    answers: int = 0
    """How many were answers, shortly after each other."""

    def may_answer(self, now: int) -> bool:
        """At most once a second, then less and less often, so that mutual answers die out on any link."""
        since = limits.ANSWERS_FORGOTTEN_NS if self.said_at is None else now - self.said_at
        if since >= limits.ANSWERS_FORGOTTEN_NS:
            self.answers = 0
        if since < min(limits.ANSWER_NS << max(0, self.answers - 1), limits.ANSWER_MOST_NS):
            return False
        self.answers += 1
        return True


class Peer(msgspec.Struct, eq=False, kw_only=True):
    """A node of the session, or a possible one. Instants are monotonic nanoseconds."""

    endpoint: str
    how: str
    """`manual`, `mdns`, `peer`, `helo`: how we first learned of it."""
    uuid: bytes | None = None
    """None: it never sent a message."""
    stage: State = State.UNKNOWN
    is_manual: bool = False
    """A person has named it: it is called without end."""
    is_mdns: bool = False
    caps: tuple[str, ...] = ()
    says_sums: bool = False
    """It has sent checksums since its last HELO: a message without one is altered."""
    heard_at: int = 0
    beat_at: int = 0
    """When we last sent it a BEAT."""
    called_at: int = 0
    """When we last sent HELO or BOUT as a question; with `tries`, it determines the next time."""
    tries: int = 0
    gone_at: int | None = None
    """Since when it is called without success, after it had been present."""
    paused_until: int = 0
    """It is not called before that: it has said goodbye."""
    due_at: int = 0
    """When it needs attention next."""
    helo: Saying = msgspec.field(default_factory=Saying)
    bout: Saying = msgspec.field(default_factory=Saying)
    hinted_at: int | None = None
    """When mDNS reported that it is gone; None once it is heard."""
    is_evasive: bool = False
    active_at: int = 0
    came_at: int = 0
    """When its HELO came, or we called it."""
    repaired_at: int | None = None
    """When we last told it of peers that it does not see."""
    is_introduction: bool = False
    """It has probably called because it was told of us."""
    repaired_by: list[str] = []
    """The peers that were told to it as all that it lacks."""
    view: int | None = None
    """The view that it last stated."""
    named: dict[str, int] = {}
    """Endpoints that it told us, with the time."""
    queue: list[Gsip] = []
    """Its messages before its BOUT."""
    skew_ns: int | None = None
    """Its session time minus ours, as last heard."""

    @property
    def state(self) -> str:
        """`CALLING`, `GREETED`, `ACTIVE` or `GONE`."""
        return self.stage.name

    @property
    def is_active(self) -> bool:
        return self.stage is State.ACTIVE

    @property
    def id(self) -> bytes:
        """Its UUID, or nothing."""
        return self.uuid or b""


class Peers:
    """All peers, and the view: a value over all ACTIVE ones (PEE-022)."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._by_endpoint: dict[str, Peer] = {}
        self._by_uuid: dict[bytes, Peer] = {}
        self._active: list[Peer] = []
        self._active_view = 0
        self.view_at = 0
        """When it last changed."""
        self.refused: dict[str, int] = {}
        """Endpoints of other sessions, and until when each is not called."""
        self.sessions: dict[str, str] = {}
        """The session that each of these stated."""
        self.ours: dict[str, None] = {}
        """Endpoints that lead to this node."""
        self.aliases: dict[str, str] = {}
        """Endpoints that lead to a peer with another main endpoint."""

    # Who is there

    def get(self, uuid: bytes) -> Peer | None:
        """The peer with this UUID."""
        return self._by_uuid.get(uuid)

    def at(self, endpoint: str) -> Peer | None:
        """The peer at this endpoint, main one or alias."""
        return self._by_endpoint.get(self.aliases.get(endpoint, endpoint))

    def active(self) -> list[Peer]:
        """All ACTIVE peers, by UUID. Do not change the list."""
        return self._active

    def all(self) -> list[Peer]:
        """All known peers, including those only called and those gone."""
        return list(self._by_endpoint.values())

    def counts(self) -> dict[str, int]:
        """The number of peers in each state."""
        return dict(Counter(peer.state for peer in self._by_endpoint.values()))

    @property
    def view(self) -> int:
        """The exclusive or of the first 4 bytes of our UUID and of those of all ACTIVE peers."""
        return self._active_view ^ head_of(self._context.uuid)

    def may_be_called(self, endpoint: str) -> bool:
        """Whether it is neither ours nor was found to be of another session less than a minute ago."""
        until = self.refused.get(endpoint)
        is_refused = until is not None and until > self._context.now.mono
        return not (is_refused or endpoint == self._context.endpoint or endpoint in self.ours)

    # What changes

    def add(self, endpoint: str, how: str) -> Peer | None:
        """Add an endpoint; None if there are too many, and none of them can be dropped."""
        if len(self._by_endpoint) >= limits.REMEMBERED_MAX and not self._forget_one():
            return None
        peer = Peer(endpoint=endpoint, how=how, is_manual=how == MANUAL, is_mdns=how == MDNS)
        self._by_endpoint[endpoint] = peer
        return peer

    def is_full(self) -> bool:
        """Whether the maximum number of peers is called or present (PEE-014)."""
        return sum(peer.stage in LINKED for peer in self._by_endpoint.values()) >= limits.PEERS_MAX

    def make_room(self, how: str) -> bool:
        """Whether one more may be called or present.

        When full, another makes room, so that invented peers keep no real one out.

        For one that called us, or that a person named, any that is not yet a peer makes room; for others, one that was
        called without success for long.
        """
        if not self.is_full():
            return True
        is_earnest = how in (CAME, MANUAL)
        found = [
            peer
            for peer in self._by_endpoint.values()
            if not peer.is_manual
            and (peer.stage is State.CALLING or (peer.stage is State.GREETED and is_earnest))
            and (is_earnest or peer.tries >= limits.CALLS_IN_VAIN)
        ]
        if not found:
            return False
        victim = min(found, key=lambda peer: peer.stage is State.GREETED)
        self.drop(victim)
        self.forget(victim)
        return True

    def _forget_one(self) -> bool:
        for peer in self._by_endpoint.values():
            if not peer.is_manual and peer.stage not in (State.GREETED, State.ACTIVE):
                self.drop(peer)
                self.forget(peer)
                return True
        return False

    def identify(self, peer: Peer, uuid: bytes) -> None:
        """Its UUID is known now."""
        if peer.uuid is not None and self._by_uuid.get(peer.uuid) is peer:
            del self._by_uuid[peer.uuid]
        peer.uuid = uuid
        self._by_uuid[uuid] = peer

    def move(self, peer: Peer, endpoint: str) -> None:
        """It listens at another endpoint, where no other peer is known."""
        self.drop(peer)
        del self._by_endpoint[peer.endpoint]
        peer.endpoint = endpoint
        self._by_endpoint[endpoint] = peer

    def rename(self, alias: str, endpoint: str) -> None:
        """Both endpoints lead to the same peer; only the second one is called from now on."""
        if len(self.aliases) >= limits.REMEMBERED_MAX:
            del self.aliases[next(iter(self.aliases))]
        self.aliases[alias] = endpoint

    def turn(self, peer: Peer, stage: State) -> None:
        """Set its state, and update the view."""
        if (peer.stage is State.ACTIVE) != (stage is State.ACTIVE):
            self._active_view ^= head_of(peer.id)
            self.view_at = self._context.now.mono
            peer.stage = stage
            self._active = sorted((one for one in self._by_endpoint.values() if one.is_active), key=lambda one: one.id)
        peer.stage = stage

    def drop(self, peer: Peer) -> None:
        """Close our link to it (`link.drop`)."""
        self._context.disconnect(PEERS, peer.endpoint.encode())
        self._context.said_at.pop(peer.endpoint, None)

    def forget(self, peer: Peer) -> None:
        """As if it had never been met."""
        self.turn(peer, State.UNKNOWN)
        if self._by_endpoint.get(peer.endpoint) is peer:
            del self._by_endpoint[peer.endpoint]
            self.aliases = {alias: endpoint for alias, endpoint in self.aliases.items() if endpoint != peer.endpoint}
        if peer.uuid is not None and self._by_uuid.get(peer.uuid) is peer:
            del self._by_uuid[peer.uuid]

    def refuse(self, endpoint: str, session: str = "") -> None:
        """Do not call it for a minute, and remember its session for that time."""
        self.pardon(endpoint)
        if len(self.refused) >= limits.REFUSED_MAX:
            self.pardon(next(iter(self.refused)))
        self.sessions[endpoint] = session[: limits.SESSION_SHOWN]
        self.refused[endpoint] = self._context.now.mono + limits.REFUSE_NS

    def pardon(self, endpoint: str) -> None:
        """It may be called again."""
        self.refused.pop(endpoint, None)
        self.sessions.pop(endpoint, None)

    def own(self, endpoint: str) -> None:
        """It leads to this node."""
        if len(self.ours) < limits.REMEMBERED_MAX:
            self.ours[endpoint] = None


def head_of(uuid: bytes) -> int:
    """The first 4 bytes of a UUID."""
    return int.from_bytes(uuid[:4], "big")
