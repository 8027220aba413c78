"""The channels that cores use, and how each delivers messages (SIM-020 to SIM-022).

The shell maps a row to sockets, the simulator to a link model; in both the channel's codec turns frames into typed
messages. A core cannot tell which of the two runs it.

    stream     DEALER -> ROUTER  while connected: in order, once, none lost; if the queue is full, sending fails
    publish    PUB -> SUB        the same, but messages before the subscription has arrived, and beyond the queue, are lost
    datagram   UDP               may be lost, doubled and reordered
    broker     MQTT              to all subscribers, the sender included; lost while there is no connection (LNK-010)
    tcp        bytes over TCP    while connected: in order, once
"""

from collections.abc import Callable, Container
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from weft.base import endpoints
from weft.base.errors import PeerError
from weft.cores.carrier.messages import Garbled
from weft.cores.catalog import messages as catalog
from weft.cores.chains import messages as chains
from weft.cores.document import messages as document
from weft.node import storechannels as store
from weft.wire import beacon, chp, clients, data, discovery, enrolment, hop, replication
from weft.wire.catalog import beacon as shalom
from weft.wire.catalog import beats, bridges, commands, publications, taps
from weft.wire.catalog import messages as words
from weft.wire.document import frames as dialogue
from weft.wire.document import programs
from weft.wire.envelope import Asked, split
from weft.wire.store import mesh

BINDS, DIALS, ADDS, KEEPS, CALLS, SHOUTS, INSIDE = "binds", "dials", "adds", "keeps", "calls", "shouts", "inside"
"""How the sockets of a channel are opened:

binds   one socket, bound at the start
dials   one socket per `Connect`, which closes the one before
adds    one socket, to which each `Connect` adds a connection
keeps   one socket per tag of a `Connect`
calls   one socket per endpoint to which something is sent
shouts  no socket: datagrams to everyone
inside  no ZeroMQ socket: another part of the shell carries the channel, and has told the runner so
"""
LINK_QUEUE: Final = 64  # messages; the hop window of 8 MiB is the real bound (SEC-010: 64 MiB / MAXMSGSIZE)
ANSWER_QUEUE: Final = 1_000  # a snapshot is sent in pieces (CLI-002)
PUBLISH_QUEUE: Final = 10_000  # updates that wait for one child; with more, it needs a snapshot
FRAMES_MAX: Final = 1 << 12  # of one message: honest ones have far fewer
BUNDLE_FRAMES_MAX: Final = 1 << 19  # five per pair (CFG-013)
MESH_BYTES: Final = 64 << 10  # about 1,000 changes: merging many more in one turn delays answers to others (LNK-021)
CLIENTS_QUEUE: Final = 1_000  # multiparts for one client; the core keeps and limits what waits beyond them (CHN-018)
CLIENTS_BUDGET: Final = 32  # multiparts of up to 256 messages each: some 20 ms of chains
CATALOG: Final = "catalog"
"""The ports of the catalog, outside the node's own block (CAT-001). `shell.catalogdoors` binds them, or spare ones."""
CATALOG_QUEUE: Final = 10_000  # answers for one peer
VALUES_BUDGET: Final = 64  # messages of one source that wait (LVC-009 allows 256): 12,800 a second, a sixth of a core
BRIDGE_QUEUE: Final = 4_000  # messages of one bridge: its window, and those that need none
EVENTS_QUEUE: Final = 100_000  # messages for one watcher; with more, it needs a snapshot
DOCUMENT: Final = "document"
"""A socket in the node's state directory, for programs that edit documents (docs/doc.md)."""
DOCUMENT_BYTES: Final = 1 << 20  # that one turn folds and persists
CLONE: Final = "clone"
"""The block of ports of the Clone pattern (CFG-060)."""
ENROL: Final = "enrol"
"""The port for machines that join: bound while an invitation is open; the token names the port (SEC-022)."""
LOCAL: Final = "local"
"""A socket of this machine's file system, in the node's state directory (CLI-001)."""
BEAT: Final = b"HUGZ"
"""The topic of beats: every subscriber gets them, whatever keys it has subscribed to."""


class Channel(NamedTuple):
    """A channel: the core that uses it, and its `kind`, a row of the link models."""

    core: str
    kind: str
    decode: Callable[[list[bytes]], Any]
    encode: Callable[[Any], list[bytes]]
    garbled: Callable[[str, bytes, str], Any] | None = None
    """Makes the order that tells the core of an unreadable message, from channel, peer and code (CLI-006)."""
    refuse: Callable[[list[bytes], PeerError], list[bytes]] | None = None
    """The answer of a ROUTER to frames that it cannot decode (CFG-008)."""
    deny: Callable[[Any, PeerError], list[bytes]] | None = None
    """The answer of a ROUTER to a message that its sender may not send (SEC-026); None: no answer."""
    socket: str = ""
    """`ROUTER`, `DEALER`, `PUB` or `SUB`: the type at this end."""
    how: str = SHOUTS
    place: int = 0
    """The offset of its port in a block of ports: in this node's block if it binds, in the peer's if it connects."""
    block: str = ""
    """If it binds: the block of that port. Empty: the node's own; else a block of that name, if the settings give one."""
    budget: int = 256
    """How many of its messages are handled in one turn, so that a flood on one channel does not delay the others."""
    budget_bytes: int = 2 << 20
    """Bytes of its messages that are handled in one turn, approximately."""
    queue: int = LINK_QUEUE
    """How many messages may wait for one peer."""
    frames_max: int = FRAMES_MAX
    tells_failure: bool = False
    """Whether the core is told about each message that could not be sent, by `SendFailed`."""
    tells_kind: bool = False
    """Whether `Source.kind` has the type of the peer's socket (CFG-013)."""
    tells_address: bool = False
    """Whether `Source.kind` has, after a space, the address of the peer; empty for a local socket (CAT-016)."""
    tells_process: bool = False
    """Whether `Source.kind` has the process id of the peer, from the kernel (CHN-080)."""
    is_plain: bool = False
    """Whether it is a foreign protocol, without keys: it is served on loopback only, and connects without keys."""
    is_for_strangers: bool = False
    """Whether any key is accepted; `Source.kind` is then that key in Z85, a space, and its address (SEC-022)."""
    verb: str = ""
    """For an annex: the verb that a sender's role needs (`base.keys.VERBS`); those of Weft are in `node.authority`."""
    is_of_parents: bool = False
    """Whether a node that always stays a sensor does not have it."""

    @property
    def is_published(self) -> bool:
        """Whether it goes from a PUB to SUBs."""
        return self.kind == "publish"

    @property
    def is_bound(self) -> bool:
        """Whether this end listens for connections."""
        return self.how == BINDS


def _never_sent(_: Any) -> list[bytes]:
    raise AssertionError("this end of the channel only receives")


def _never_received(_: list[bytes]) -> Any:
    raise AssertionError("this end of the channel only sends")


def _wtf(frames: list[bytes], error: PeerError, words: frozenset[bytes] = frozenset()) -> list[bytes]:
    """WTF, in the envelope of a message that could not be decoded; `words`: commands that are no part of an envelope."""
    try:
        envelope, _ = split(frames, words)
    except PeerError:
        envelope = ()  # without a command, or with an unknown one
    return [*envelope, *replication.wtf_frames(replication.refusal(error))]


def _deny_asked(asked: Asked, error: PeerError) -> list[bytes]:
    """WTF 3 in the envelope of the request (CFG-081)."""
    return [*asked.envelope, *replication.wtf_frames(replication.refusal(error))]


def _deny_link(message: Any, error: PeerError) -> list[bytes]:
    """Refuse a greeting with a code; a peer that is already connected gets no answer to a message it may not send."""
    return hop.seal(hop.Refuse("denied", error.why)) if type(message) is hop.Hello else []


def _deny_client(message: Any, error: PeerError) -> list[bytes]:
    return clients.encode(clients.Refuse("denied", error.why)) if type(message) is clients.Hello else []


def _deny_catalog(message: words.Message, error: PeerError) -> list[bytes]:
    why = msgspec.json.encode({"Error": error.why, "code": "not-authorised"})
    return commands.encode(words.Message(words.DENIED, message.time, (why,), message.envelope))


def _stream(core: str, decode: Any, encode: Any, socket: str, how: str) -> Channel:
    return Channel(core, "stream", decode, encode, socket=socket, how=how, queue=ANSWER_QUEUE)


_up = Channel("carrier", "stream", hop.decode, hop.seal, Garbled)
_announce = Channel("topology", "publish", _never_received, discovery.seal_announcement)
_announced = Channel("topology", "publish", discovery.decode_announcement, _never_sent)
_updates = Channel("configuration", "publish", replication.decode_update, _never_sent)
_publish = Channel("configuration", "publish", _never_received, replication.seal_update)
_data = Channel("measurement", "publish", data.decode, _never_sent)
_clients = Channel("chains", "stream", clients.decode_asked, clients.encode, chains.Garbled)
_call = _stream("topology", discovery.decode_called, discovery.seal_call, "DEALER", CALLS)
_control = _stream("topology", discovery.decode_control, discovery.seal_control_answer, "ROUTER", BINDS)
_ask = _stream("configuration", replication.decode_answer, replication.seal_ask, "DEALER", DIALS)
_serve = _stream("configuration", replication.decode_ask, replication.seal_answer, "ROUTER", BINDS)
_enrol = _stream("enrolment", enrolment.decode_join, enrolment.encode_answer, "ROUTER", BINDS)
_mesh = _stream("store", mesh.decode, mesh.encode, "ROUTER", BINDS)
_mesh_call = _stream("store", mesh.decode, mesh.encode, "DEALER", CALLS)
_catalog = _stream("catalog", commands.decode, commands.encode, "ROUTER", BINDS)
_events = Channel("catalog", "publish", publications.decode, publications.encode, socket="XPUB", how=BINDS)
_monitor = _stream("catalog", taps.decode, commands.encode, "ROUTER", BINDS)
_bridge = _stream("catalog", bridges.decode, commands.encode, "ROUTER", BINDS)
_bridge_dial = _stream("catalog", bridges.decode, commands.encode, "DEALER", CALLS)
_carry = _stream("catalog", commands.decode, commands.encode, "DEALER", CALLS)
_values = Channel("catalog", "publish", publications.decode_taken, _never_sent, socket="SUB", how=KEEPS)
_probe = _stream("catalog", commands.decode, commands.encode, "DEALER", CALLS)
_doc_clients = _stream("document", programs.decode, programs.encode, "ROUTER", BINDS)
_clone_serve = _stream("clone", chp.decode_ask, chp.encode_answer, "ROUTER", BINDS)
_clone_ask = _stream("clone", chp.decode_answer, chp.encode_ask, "DEALER", DIALS)
_clone_publish = Channel("clone", "publish", _never_received, chp.encode_update, socket="PUB", how=BINDS)
_clone_take = Channel("clone", "publish", chp.decode_set, _never_sent, socket="SUB", how=BINDS)
_clone_follow = Channel("clone", "publish", chp.decode_update, _never_sent, socket="SUB", how=DIALS)

CHANNELS: Final[dict[str, Channel]] = {
    "up": _up._replace(socket="DEALER", how=DIALS, place=endpoints.LINK),
    "down": _up._replace(socket="ROUTER", how=BINDS, place=endpoints.LINK, deny=_deny_link),
    "clients": _clients._replace(
        socket="ROUTER",
        how=BINDS,
        place=endpoints.CLIENTS,
        block=LOCAL,
        queue=CLIENTS_QUEUE,
        tells_failure=True,
        tells_process=True,
        budget=CLIENTS_BUDGET,
        deny=_deny_client,
    ),
    "beacon": Channel("topology", "datagram", beacon.decode, beacon.encode),
    "announce": _announce._replace(socket="PUB", how=ADDS, place=endpoints.ANNOUNCEMENTS, queue=ANSWER_QUEUE),
    "announced": _announced._replace(socket="SUB", how=BINDS, place=endpoints.ANNOUNCEMENTS, queue=ANSWER_QUEUE),
    "call": _call._replace(place=endpoints.CONTROL),
    "control": _control._replace(
        place=endpoints.CONTROL,
        refuse=partial(_wtf, words=discovery.WORDS),
        deny=_deny_asked,
        tells_failure=True,
    ),
    "updates": _updates._replace(socket="SUB", how=DIALS, place=endpoints.UPDATES, queue=PUBLISH_QUEUE),
    "publish": _publish._replace(socket="PUB", how=BINDS, place=endpoints.UPDATES, queue=PUBLISH_QUEUE),
    "ask": _ask._replace(place=endpoints.SNAPSHOTS, frames_max=BUNDLE_FRAMES_MAX),
    "data": _data._replace(socket="SUB", how=BINDS, place=endpoints.DATA, queue=ANSWER_QUEUE, is_of_parents=True),
    "serve": _serve._replace(
        place=endpoints.SNAPSHOTS, refuse=_wtf, deny=_deny_asked, tells_failure=True, tells_kind=True
    ),
    "clone-serve": _clone_serve._replace(block=CLONE, tells_failure=True, is_plain=True),
    "clone-publish": _clone_publish._replace(block=CLONE, place=1, queue=PUBLISH_QUEUE, is_plain=True),
    "clone-take": _clone_take._replace(block=CLONE, place=2, queue=ANSWER_QUEUE, is_plain=True),
    "clone-ask": _clone_ask._replace(is_plain=True),
    ENROL: _enrol._replace(block=ENROL, queue=LINK_QUEUE, is_for_strangers=True),
    "mesh": _mesh._replace(place=endpoints.MESH, queue=PUBLISH_QUEUE, budget_bytes=MESH_BYTES),
    "mesh-call": _mesh_call._replace(place=endpoints.MESH, queue=PUBLISH_QUEUE),
    "store-mqtt": Channel("store", "broker", store.decode_payload, store.encode_payload, how=INSIDE),
    "store-clients": Channel(
        "store", "tcp", store.decode_request, store.encode, store.Garbled, store.refuse, how=INSIDE
    ),
    "store-join": Channel("store", "tcp", store.decode_answer, store.encode, store.Garbled, how=INSIDE),
    "catalog": _catalog._replace(
        block=CATALOG,
        queue=CATALOG_QUEUE,
        garbled=catalog.Garbled,
        deny=_deny_catalog,
        tells_failure=True,
        tells_address=True,
        is_plain=True,
    ),
    "catalog-events": _events._replace(block=CATALOG, queue=EVENTS_QUEUE, is_plain=True),
    "catalog-monitor": _monitor._replace(
        block=CATALOG, queue=LINK_QUEUE, frames_max=taps.FRAMES_MAX, tells_address=True, is_plain=True
    ),
    "catalog-bridge": _bridge._replace(
        block=CATALOG,
        queue=BRIDGE_QUEUE,
        garbled=catalog.Garbled,
        frames_max=bridges.FRAMES_MAX,
        tells_failure=True,
        tells_address=True,
        is_plain=True,
    ),
    "catalog-bridge-dial": _bridge_dial._replace(
        queue=BRIDGE_QUEUE,
        garbled=catalog.Garbled,
        frames_max=bridges.FRAMES_MAX,
        tells_failure=True,
        is_plain=True,
    ),
    "catalog-relay": Channel("catalog", "stream", commands.decode_call, commands.encode, how=INSIDE),
    "catalog-call": _carry._replace(queue=ANSWER_QUEUE, is_plain=True),
    "catalog-beats": Channel("catalog", "datagram", beats.decode, beats.encode, how=INSIDE),
    "catalog-beacon": Channel("catalog", "datagram", _never_received, shalom.encode, how=INSIDE),
    "catalog-probe": _probe._replace(queue=LINK_QUEUE, is_plain=True),
    "catalog-values": _values._replace(queue=ANSWER_QUEUE, budget=VALUES_BUDGET, is_plain=True),
    "document": Channel("document", "stream", dialogue.decode, dialogue.encode, document.Garbled, how=INSIDE),
    "doc-clients": _doc_clients._replace(
        block=DOCUMENT,
        queue=CLIENTS_QUEUE,
        refuse=programs.refuse,
        tells_failure=True,
        budget=CLIENTS_BUDGET,
        budget_bytes=DOCUMENT_BYTES,
    ),
    "clone-follow": _clone_follow._replace(place=1, queue=PUBLISH_QUEUE, is_plain=True),
}
"""The channels of Weft; those of an annex are added when a node runs it (`node.annexes.admit`)."""


def channels_of(cores: Container[str], *, is_parent: bool = True) -> dict[str, Channel]:
    """The channels of a node that runs these cores; a channel whose core does not run is not opened.

    `is_parent`: whether the node may have children; a node that always stays a sensor accepts no foreign samples
    (MEA-020).
    """
    return {name: row for name, row in CHANNELS.items() if row.core in cores and (is_parent or not row.is_of_parents)}
