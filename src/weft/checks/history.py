"""Histories: what happened in a fabric, simulated or real, one JSON object per line (CHK-001).

A checker reads a history and knows nothing else. Positions in `value` are those of `VOCABULARY`; a *claim* is
`[stream, origin, first, last]`, where the origin is the text `name/era`; claims of a segment leave the stream out.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

KINDS: Final = ("invoke", "ok", "fail", "info", "event", "sent", "durable")

VOCABULARY: Final[dict[tuple[str, str], str]] = {
    ("info", "start"): "level, parent, silence after which a peer counts as dead (ns): this node starts",
    ("info", "crash"): "disk (kept, torn, lost, old): this node dies without goodbye",
    (
        "info",
        "disk",
    ): "lost, old, harmed or copied, claims, losses: this node's disk now holds only these; copied: a second machine has them, too",
    (
        "info",
        "harmed",
    ): "how, is_refused, claims, losses, listed: this node's journal was damaged while it did not run, and has lost these; what is left of it still lists some",
    (
        "info",
        "rewound",
    ): "lost or old, ns, UUID before: this node begins on an empty or an older disk; what it acknowledged in that span may never have left it",
    ("info", "repaired"): "somebody has put notes of the loss where this node's journal was not whole",
    ("event", "verdict"): "clean, damaged or refused: how this node judges its journal at its start",
    ("event", "ended"): "name of an event: this node ends by itself",
    ("info", "restored"): "claims, losses: all that the journal of this node holds at a start",
    ("info", "forgot"): "stream, origin, first, last: the journal gave these up on purpose",
    ("durable", "taken"): "stream, origin, first, last: durable at the origin itself",
    ("durable", "held"): "stream, origin, first, last: durable at another node on the way up, or at the root",
    ("durable", "lost"): "stream, origin, first, last, why: the announcement of a loss is durable here",
    ("durable", "link"): "stream, origin, era before, last before: an era link is durable here",
    ("durable", "segment"): "stream, number, claims, losses, links: a segment of the lake exists",
    ("durable", "mail-segment"): "lists of origin, first, last: the messages that are in a segment of the lake",
    ("sent", "hello"): "parent, era, first: this node does not need its messages before `first` any more",
    ("sent", "hop"): "parent, era, number of the first, list of claims, each with `record`, `loss` or `link` behind it",
    ("sent", "hack"): "child, era, upto, safe: an acknowledgement leaves this node",
    ("info", "path"): "from, to, open or slow or cut: the cable in that direction",
    ("info", "link"): "child, parent, is_up: whether the transport between them carries messages both ways, in time",
    ("info", "paused"): "this node's process is paused",
    ("info", "resumed"): "this node's process goes on",
    ("event", "parent-joined"): "parent",
    ("event", "parent-lost"): "why",
    ("event", "child-joined"): "child",
    ("event", "child-lost"): "child, why",
    (
        "event",
        "lake-unknown",
    ): "is_unknown: whether this root goes on without knowing what its lake holds; false: it has read it now",
    (
        "durable",
        "change",
    ): "lsn, path, tock, value (hex; None: deleted), chain (newest first), is_own, is_shown, head before: a change of the store is in this node's journal",
    ("durable", "stale"): "lsn, path, node, tick: an entry is removed because it was an old copy of a forgotten one",
    ("durable", "emptied"): "lsn: this node begins its store anew, because it had been dropped",
    ("event", "conflict"): "path, node and tick that lost, node and tick that were kept",
    ("event", "store"): "name of an event of the store",
    ("info", "journal"): "first, end: the journal lost the records of these lsns; without end, all from the first on",
    (
        "ok",
        "stored",
    ): "path, node, tick, condition on the entry before (any, None or a link): a client got the answer that this is written",
    ("ok", "watching"): "watcher, what (fresh, again, gap, uptodate, gone, rest), lsn",
    ("ok", "shown"): "watcher, lsn or 0, path, node, tick, tock, is_deleted: a watcher was shown an entry",
    (
        "info",
        "holding",
    ): "name, entries (path, node, tick, tock, is_deleted), forgotten ticks by node, highest ticks of dropped nodes",
    ("info", "gone"): "this node will never run again: the contents of its journal count as kept",
    ("event", "root-taken"): "fleet, epoch, is_acting: this node is the root, or acts for it",
    ("event", "root-left"): "fleet, epoch: this node is no longer the root, because a later epoch has one",
    ("event", "parent-silent"): "ns: this node has not heard its parent in the tree of the configuration for so long",
    ("event", "applied"): "number of the configuration that this node runs",
    (
        "event",
        "adopted",
    ): "fleet, topic, number, count, digest: what this node holds of a topic after a snapshot, or the root at the same number",
    ("event", "went-back"): "number, last: this node reports that its configuration is an older one",
    ("event", "other-topics"): "topics: this node replicates other parts of the configuration from now on",
    ("durable", "promise"): "epoch: this node has promised its vote in that epoch",
    ("sent", "vote"): "fleet, epoch: this node votes",
    ("durable", "write"): "fleet, number, key, value: a write of the configuration is durable here",
    ("sent", "write"): "fleet, number, key, value: this node publishes a write of its own",
    (
        "ok",
        "wrote",
    ): "fleet, key, value, number, is_confirmed: a client got the answer that this is written, and perhaps that a majority has it",
    (
        "ok",
        "read-pair",
    ): "fleet, key, number, value: this node, or a client of it, reads that pair of the configuration",
    ("info", "members"): "list of (name, fleet): all members of the fabric; any other name is a stranger's",
    (
        "sent",
        "offer",
    ): "in or out, origin, number, place of the link, places of all links that may rewrite on that chain now, is_again: a message is handed to a program that may rewrite it",
    ("info", "standing"): "fleet, role, standing, state of the replica, parent: of a node after quiet",
    ("info", "store"): "fleet, list of (key, number, value): what its root holds after quiet",
    ("info", "due"): "root or parent, fleet or node, until when, who died: what must be replaced by then",
    ("info", "mail-types"): "list of (name, is_whole, is_ordered): what programs send, and what is expected of it",
    (
        "invoke",
        "send",
    ): "program, client and session, tag, type, text, is_promised: a program sends this, or is about to",
    ("invoke", "drop"): "program, origin, number: a program deletes a message that it holds",
    ("ok", "status"): "program, client and session, tag, is_ok, why, text: a program gets the final status of a send",
    ("ok", "offered"): "program, client, registration, origin, number, type, is_again: a program is handed a message",
    ("durable", "mail"): "out, in or journal, origin, number, type, text, (client, tag): a message is durable here",
    ("durable", "met"): "origin, numbers: it is durable that this node has had these messages",
    ("sent", "mail"): "era, hop number, origin, number: a message leaves this node for its parent",
    ("event", "mail-dropped"): "origin, first, last: a full spool gave these messages up",
    ("info", "idle"): "messages that wait in line at links of this node that have room",
    (
        "info",
        "accounts",
    ): "list of (stretch of the road, taken, missing): what this node counts, and holds, adds up or not",
    ("ok", "standing"): "reader, type: this node remembers that reader for messages of that type",
    ("ok", "confirmed"): "reader, origin, number: the reader has confirmed that message",
    ("event", "given-up"): "reader, origin, first, last: that reader will never get these",
    ("event", "forgotten"): "reader, type: this node has forgotten that reader",
    ("info", "chains"): "messages under way, at links, in the inbox: the state of this node's chains after quiet",
    ("info", "program"): "program, tags of sends without a status after quiet",
    (
        "invoke",
        "call",
    ): "client, number, key, operation (get, set, swap or claim, with its arguments): a client makes a call",
    ("ok", "call"): "client, number, result: the call is answered",
    ("fail", "call"): "client, number: the call is refused, without effect",
    ("ok", "session"): "client: it begins a new session, because it asks another node from now on",
    ("ok", "wrote-version"): "client, key, version: its write stands as that version",
    ("ok", "read-version"): "client, key, version: it reads that version; 0: there is none",
    ("durable", "operation"): "session, source, sequence: an operation of a document is in this node's journal",
    ("event", "operation"): "session, source, sequence: this node has received the operation of another one",
    ("ok", "entered"): "session, source, sequence: a client gets the answer that its entry is accepted",
    ("sent", "operation"): "session, source, sequence: this node passes the operation on",
    ("info", "document"): "session, digests of its log, of the document that is shown[, and of the log folded anew]",
    ("info", "log"): "session, list of (source, ranges): the numbers of operations that this node shows",
    ("durable", "announced"): "start of the broker, index, operation, name: a change of the catalog is durable",
    ("info", "opened"): "start of the broker, names: this broker starts, and lists these services from its journal",
    (
        "ok",
        "mirrored",
    ): "watcher, start of the broker, index[, names]: a watcher has the whole list as of that change",
    ("ok", "told"): "watcher, start of the broker, index, operation, name: a watcher gets the next change",
    ("ok", "unwatched"): "watcher: it stops watching",
    ("info", "ill"): "is_ill: whether the port of this host's service refuses checks",
    (
        "info",
        "imported",
    ): "start of the broker, network, name, host, state or remove: of a service of another network a change is durable here",
    (
        "info",
        "imports",
    ): "list of (name, host, health): the services of other networks that this broker lists after quiet",
    ("info", "health"): "list of (name, host, health): its own services, after quiet",
    ("info", "served"): "call: the service on this host has answered it",
    ("ok", "called"): "call, name, call that the answer names, host that answered: a caller has its answer",
    ("info", "copied"): "tap, host, number, call or nothing: this broker publishes a copy of a message",
    (
        "info",
        "tapped",
    ): "tap, host, seen, copied, dropped, left out: this broker publishes a service's counts for a tap",
    ("info", "untapped"): "tap, seen, copied, dropped, left out: this broker publishes the end of a tap",
    ("info", "gave-up"): "channel: TCP has broken what this machine had connected there; the other ends notice later",
    (
        "info",
        "service",
    ): "what (started, paused, resumed, stopped, ended), name, interval (ns), brokers: of a service's process; stopped: it says goodbye",
    (
        "durable",
        "listed",
    ): "start of the broker, name, instance, operation, reason: a change of one instance is durable at the broker",
    ("sent", "catalog"): "start of the broker, index: an approval or an event leaves that names this change",
    ("info", "catalog"): "start of the broker, index, list of (name, instance): who is listed as live after quiet",
    ("event", "registered"): "instance: a service gets the answer that it is registered",
    ("info", "injected"): "channel, digest of the node's state before: this node gets bytes that it must refuse",
    (
        "info",
        "absorbed",
    ): "channel, digest after, refusals counted, messages sent, records kept except that of the refusal",
    (
        "info",
        "knocked",
    ): "who, channel, whether it was let in, messages it sent, refusals counted, whether any core has changed, answers except refusals: an intruder tries a channel of this node",
    ("info", "gauge"): "name, value, limit",
    ("info", "state"): "subject, digest: this node's state of something that other nodes hold, too",
    ("info", "waits"): "for what, since when: a core of this node still waits for something",
    ("info", "trace"): "plan hash, trace hash: of a whole run",
    ("invoke", "put"): "protocol, key, value: a client is about to write this; value None: to delete it",
    ("ok", "put"): "protocol, key, value: a client got the answer that this is written",
    ("ok", "got"): "protocol, key, value: this client reads that value; None: there is none",
    ("ok", "saw"): "protocol, key, value: this watcher is shown that",
    ("info", "replica"): "protocol, values by key: all that this node holds of what clients wrote, after quiet",
    ("info", "delivered"): "protocol, counts by key: how often each has reached its destination, after quiet",
    ("info", "healed"): "all faults are over",
    ("info", "quiet"): "the fabric has had its time to come to rest",
}
"""Every (kind, what) that a checker knows, and the fields of its value."""


class Fact(msgspec.Struct, frozen=True, gc=False):
    """One line of a history."""

    at: int
    """Nanoseconds of the history's own clock; true time in the simulator, one machine's monotonic clock elsewhere."""
    node: str
    process: int
    """Which start of the node: its era."""
    kind: str
    what: str
    value: Any = None

    def __str__(self) -> str:
        return str(msgspec.json.encode(self), "utf-8")


class Violation(NamedTuple):
    """A broken promise: the rule, a sentence, and at most `WITNESSES_MAX` facts that show it."""

    rule: str
    why: str
    witnesses: tuple[Fact, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.rule}: {self.why}", *(f"  {str(fact)[:WITNESS_CHARS_MAX]}" for fact in self.witnesses)]
        return "\n".join(lines)


class Unknown(NamedTuple):
    """A history from which the checker cannot judge; that counts as a failure (CHK-001)."""

    rule: str
    why: str

    def __str__(self) -> str:
        return f"{self.rule}: cannot tell, {self.why}"


WITNESSES_MAX: Final = 20
WITNESS_CHARS_MAX: Final = 400


def write_lines(history: Iterable[Fact]) -> bytes:
    """The history as JSON lines."""
    return b"".join(msgspec.json.encode(fact) + b"\n" for fact in history)


def read_lines(data: bytes) -> Iterator[Fact]:
    """The facts of JSON lines; `msgspec.DecodeError` for a line that is none."""
    for line in data.splitlines():
        if line.strip():
            yield msgspec.json.decode(line, type=Fact)
