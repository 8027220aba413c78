"""Orders, answers and events of the configuration core."""

import msgspec

from weft.cores.configuration import limits
from weft.wire.replication import Bundle, Hugz, ICanHaz, KThxBai, KvPack, KvPub, KvSync, Wtf

__all__ = [
    "Bundle",
    "ConfigurationApplied",
    "ConfigurationDiverged",
    "ConfigurationRewound",
    "ConfigurationSettings",
    "ConfigurationWiped",
    "FollowParent",
    "HistoryRead",
    "Hugz",
    "ICanHaz",
    "KThxBai",
    "KeysListed",
    "KvPack",
    "KvPub",
    "KvSync",
    "LeaveParent",
    "ListKeys",
    "LoadTree",
    "NoteApplied",
    "NotePromises",
    "NoteVoters",
    "OrderRefused",
    "PairsChanged",
    "ParentHeard",
    "ParentQuiet",
    "ParentSilent",
    "ReadHistory",
    "ReplicaResynced",
    "RollBack",
    "SetTimes",
    "SnapshotDiffers",
    "StepDown",
    "Stop",
    "SyncFailing",
    "TakeRoot",
    "Write",
    "WriteDone",
    "WriteKeys",
    "WriteLost",
    "Written",
    "Wtf",
]


class ConfigurationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How this node replicates."""

    heartbeat_ns: int = limits.HEARTBEAT_NS
    dead_after: int = limits.DEAD_AFTER
    """Beats of silence after which a parent counts as dead: D = dead_after * heartbeat (CFG-046)."""
    write_ack: str = "auto"
    """`local`, `quorum`, or `auto`: quorum with two or more first-level collectors (CFG-024)."""
    is_kept: bool = True
    """Whether the replica is journaled (CFG-048); sensors may do without."""
    keys_max: int = limits.KEYS_MAX
    """Maximum number of keys in the store, and of chains."""
    bytes_max: int = limits.STORE_BYTES_MAX
    """Maximum bytes of keys and values."""


# Orders


class TellPairs(msgspec.Struct, frozen=True):
    """Order: report the pairs that were in force before this start, although this node follows no parent yet."""


class FollowParent(msgspec.Struct, frozen=True, gc=False):
    """Order: replicate these topics from the node at `endpoint` (its port block); the same again changes nothing."""

    endpoint: str
    topics: tuple[str, ...]
    """As of CFG-030: prefixes ending in a slash, or exact keys; `/` is everything."""
    serves: bool
    """Whether this node is a collector, which serves snapshots and forwards updates."""


class LeaveParent(msgspec.Struct, frozen=True, gc=False):
    """Order: there is no parent any more; the known pairs stay readable."""


class TakeRoot(msgspec.Struct, frozen=True, gc=False):
    """Order: be root of `epoch` from now on, with what this node has.

    Acting: send beats and serve, but write nothing.
    """

    epoch: int
    is_acting: bool = False


class StepDown(msgspec.Struct, frozen=True, gc=False):
    """Order: this node is no longer root.

    Writes that the next parent's snapshot lacks are told as `WriteLost` (REC-015).
    """


class Write(msgspec.Struct, frozen=True, gc=False):
    """One requested write."""

    key: str
    value: bytes
    """Empty: delete."""
    ttl_s: float | None = None
    if_number: int | None = None
    """Only if the key's last number is this (0: only if absent)."""


class WriteKeys(msgspec.Struct, frozen=True, gc=False):
    """Order: write these, in order, all or none; unchanged values write nothing (CFG-022)."""

    ticket: int
    writes: tuple[Write, ...]
    who: str = ""
    by: str = ""
    """Empty: a person waits for `Reply(ticket, Written | OrderRefused)`; else the core that gets `WriteDone`."""
    ack: str = ""
    """`local` or `quorum` for this order; empty: as in the settings."""
    is_rollback: bool = False
    """It is made even if it leaves alerts that can never fire; the answer names them."""


class LoadTree(msgspec.Struct, frozen=True, gc=False):
    """Order: make the subtrees contain exactly these pairs, by the smallest list of writes (CFG-022, CFG-026).

    It is answered after the last of them. Writes are made in portions, and those that were made before a refusal stay.
    """

    ticket: int
    pairs: tuple[tuple[str, bytes], ...]
    prefixes: tuple[str, ...]
    who: str = ""


class ListKeys(msgspec.Struct, frozen=True, gc=False):
    """Order: the pairs of a subtree, in key order; each node answers with what it knows, by `KeysListed`."""

    ticket: int
    subtree: str
    count_max: int = 1_000
    after: str = ""


class ReadHistory(msgspec.Struct, frozen=True, gc=False):
    """Order: the last writes of a subtree, newest first (CFG-027)."""

    ticket: int
    subtree: str = ""
    count_max: int = 100


class RollBack(msgspec.Struct, frozen=True, gc=False):
    """Order: restore the keys of a subtree to their state just after `number`, by new writes (CFG-027)."""

    ticket: int
    number: int
    subtree: str = ""
    who: str = ""


class NoteApplied(msgspec.Struct, frozen=True, gc=False):
    """Order, at the root: a node has reported the number that it applies (CFG-047)."""

    node: bytes
    number: int
    is_voter: bool
    voters: int
    """Number of voters, this root included (REC-010)."""
    count: int = 0
    digest: str = ""
    candidates: tuple[bytes, ...] = ()
    """As in `ConfigurationApplied`."""


class NotePromises(msgspec.Struct, frozen=True, gc=False):
    """Order: nodes that may still become root by this node's vote: epoch and node (REC-012)."""

    promises: tuple[tuple[int, bytes], ...]


class NoteVoters(msgspec.Struct, frozen=True, gc=False):
    """Order, at the root: the number of voters, and how many of them have a live link to it, itself included."""

    voters: int
    linked: int
    electorates: tuple[tuple[bytes, ...], ...] = ()
    """Earlier sets of voters that may still elect a root, each without this one (REC-012)."""


class SetTimes(msgspec.Struct, frozen=True, gc=False):
    """Order: use the beat and silence limit of the configuration itself."""

    heartbeat_ns: int
    dead_after: int


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Order: close."""


# Answers to orders (Reply)


class Written(msgspec.Struct, frozen=True, gc=False):
    """Answer: durable at the root; `number` of the last write, 0 if nothing had to change."""

    number: int
    count: int
    is_confirmed: bool = True
    """False: no majority of voters has confirmed it yet; the write stays (CFG-024)."""
    dead: tuple[str, ...] = ()
    """After a rollback: alerts that could fire before it and never can from then on, each as `key: sentence`."""


class KeysListed(msgspec.Struct, frozen=True, gc=False):
    """Answer: (key, number, value), and the number of the whole store; `is_current` false: an old replica."""

    pairs: tuple[tuple[str, int, bytes], ...]
    number: int
    is_current: bool
    is_more: bool = False


class HistoryRead(msgspec.Struct, frozen=True, gc=False):
    """Answer: (number, who, at ns, key, old, new); old or new is empty where the key was absent."""

    writes: tuple[tuple[int, str, int, str, bytes, bytes], ...]


class OrderRefused(msgspec.Struct, frozen=True, gc=False):
    """Answer: a code of WTF (CFG-007) with a text; `root`: the endpoint to ask instead, if known."""

    code: int
    text: str
    root: str = ""
    key: str = ""
    """Key of the refused write, if it was one of many."""
    number: int | None = None
    """If `if_number` did not match: the present number of that key, 0 if it is absent."""
    dead: tuple[str, ...] = ()
    """Alerts that could never fire after these writes, each as `key: sentence`; empty: refused for another reason."""


# Events


class PairsChanged(msgspec.Struct, frozen=True, gc=False):
    """Event: pairs have changed durably, told in the order of numbers, whole writes at once; None: deleted.

    After a snapshot it contains every difference to what was told before.
    """

    pairs: tuple[tuple[str, bytes | None], ...]
    number: int
    """Highest number applied."""
    is_root: bool = False
    numbers: tuple[int, ...] = ()
    """Number of the write of each pair, in the same order; for a deletion found by a snapshot: `number`."""
    digest: bytes = b""
    """Digest of all pairs of this node at `number` (FLD-003); empty: it has only a part of the configuration."""


class ConfigurationApplied(msgspec.Struct, frozen=True, gc=False):
    """Event: this node has applied that number; journaled, so that it goes up to the root (CFG-047)."""

    number: int
    why: str
    """`update`, `snapshot` or `root`."""
    count: int = 0
    """Number of pairs at this node."""
    digest: str = ""
    """Their digest in 32 hex digits; empty: this node does not follow the whole configuration."""
    candidates: tuple[str, ...] = ()
    """Nodes that may still become root of a later epoch by this node's vote, in hex: the report counts only up to what
    they have too.
    """


class ReplicaResynced(msgspec.Struct, frozen=True, gc=False):
    """Event: a new snapshot was needed and is adopted: `lower`, `gap`, `epoch`, `tip`, `parent`, `start`."""

    why: str
    number: int
    attempts: int


class ConfigurationWiped(msgspec.Struct, frozen=True, gc=False):
    """Event: a lower number came, so all saved values were deleted and are asked for again (CFG-034)."""

    number: int
    last: int


class ConfigurationRewound(msgspec.Struct, frozen=True, gc=False):
    """Event: values of this node go back to older ones, or are gone, since the parent's snapshot never had them.

    Either the root lost its disk, and the snapshot was accepted after asking again (CFG-044); or the former root wrote
    them without a majority, and the new root did not have them (REC-012).
    """

    number: int
    last: int
    keys: int
    """Number of values that go back."""


class ConfigurationDiverged(msgspec.Struct, frozen=True, gc=False):
    """Event: another node has other pairs at the same number (FLD-002); the replica asks for everything again."""

    other: str
    """The endpoint of the parent, or the UUID of a node that reported."""
    number: int
    count: int
    digest: str
    other_count: int
    other_digest: str
    is_here: bool = True
    """True: this node asks again, because its parent has other pairs. False: this is the root, and the other node will
    ask.
    """


class SnapshotDiffers(msgspec.Struct, frozen=True, gc=False):
    """Event: a snapshot was refused, because its pairs do not match its end; it is asked for again (FLD-002)."""

    number: int
    missing: int
    """How many pairs are missing; negative: there are too many; 0: the number matches but the pairs differ."""
    attempts: int


class WriteLost(msgspec.Struct, frozen=True, gc=False):
    """Event: a write of this former root is not in the new root's store (REC-015)."""

    key: str
    value: bytes
    number: int


class WriteDone(msgspec.Struct, frozen=True, gc=False):
    """Event: the writes that core `by` wanted are durable; `code` 0, or the code of WTF of a refusal."""

    by: str
    ticket: int
    number: int
    code: int = 0


class ParentQuiet(msgspec.Struct, frozen=True, gc=False):
    """Event: no message from the parent for D/2."""


class ParentSilent(msgspec.Struct, frozen=True, gc=False):
    """Event: no message from the parent for D; told again every D (REC-002)."""

    silent_ns: int


class ParentHeard(msgspec.Struct, frozen=True, gc=False):
    """Event: the parent is heard again after `ParentQuiet`, or for the first time."""


class SyncFailing(msgspec.Struct, frozen=True, gc=False):
    """Event: getting a snapshot has failed for the third time or more."""

    attempts: int
    code: int
