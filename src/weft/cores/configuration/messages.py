"""What the configuration core hears and says."""

import msgspec

from weft.cores.configuration import limits
from weft.wire.replication import Bundle, Hugz, ICanHaz, KThxBai, KvPub, KvSync, Wtf

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
    """Whether the replica is written to the journal (CFG-048); sensors may go without."""
    keys_max: int = limits.KEYS_MAX
    """How many keys the store may hold, and how many chains."""
    bytes_max: int = limits.STORE_BYTES_MAX
    """How many bytes of keys and values."""


# Orders


class TellPairs(msgspec.Struct, frozen=True):
    """Order: tell what was in force before this start, although this node follows nobody yet."""


class FollowParent(msgspec.Struct, frozen=True, gc=False):
    """Order: replicate these topics from the node at `endpoint` (its port block); the same again changes nothing."""

    endpoint: str
    topics: tuple[str, ...]
    """As of CFG-030: prefixes ending in a slash, or exact keys; `/` is everything."""
    serves: bool
    """Whether this node is a collector: serves snapshots and forwards updates."""


class LeaveParent(msgspec.Struct, frozen=True, gc=False):
    """Order: there is no parent any more; what is known stays readable."""


class TakeRoot(msgspec.Struct, frozen=True, gc=False):
    """Order: be the root of `epoch` from now on, by what this node holds; acting: beat and serve, but write nothing."""

    epoch: int
    is_acting: bool = False


class StepDown(msgspec.Struct, frozen=True, gc=False):
    """Order: be the root no longer; writes that the next parent's snapshot lacks are told as `WriteLost` (REC-015)."""


class Write(msgspec.Struct, frozen=True, gc=False):
    """One write that is wanted."""

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
    """Empty: a person waits for `Reply(ticket, Written | OrderRefused)`; else the core that hears `WriteDone`."""
    ack: str = ""
    """`local` or `quorum` for this order; empty: as the settings say."""


class LoadTree(msgspec.Struct, frozen=True, gc=False):
    """Order: let exactly these pairs stand under the prefixes, by the smallest list of writes (CFG-022, CFG-026)."""

    ticket: int
    pairs: tuple[tuple[str, bytes], ...]
    prefixes: tuple[str, ...]
    who: str = ""


class ListKeys(msgspec.Struct, frozen=True, gc=False):
    """Order: pairs of a subtree, in key order; answered by `KeysListed` on every node, as it knows them."""

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
    """Order: let the keys of a subtree be again as they were just after `number`, by new writes (CFG-027)."""

    ticket: int
    number: int
    subtree: str = ""
    who: str = ""


class NoteApplied(msgspec.Struct, frozen=True, gc=False):
    """Order, at the root: a node has reported the number it runs (CFG-047)."""

    node: bytes
    number: int
    is_voter: bool
    voters: int
    """How many voters there are, this root included (REC-010)."""
    count: int = 0
    digest: str = ""
    candidates: tuple[bytes, ...] = ()
    """As in `ConfigurationApplied`."""


class NotePromises(msgspec.Struct, frozen=True, gc=False):
    """Order: who may still become the root with this node's vote, by epoch and node (REC-012)."""

    promises: tuple[tuple[int, bytes], ...]


class NoteVoters(msgspec.Struct, frozen=True, gc=False):
    """Order, at the root: how many voters there are, and how many of them have a live link to it, itself included."""

    voters: int
    linked: int


class SetTimes(msgspec.Struct, frozen=True, gc=False):
    """Order: beat, and count silences, by what the configuration itself says."""

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
    """False: no majority of voters has said yet that it has it; the write stays (CFG-024)."""


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
    """Answer: a code of WTF (CFG-007), in words; `root`: the endpoint to ask instead, if known."""

    code: int
    text: str
    root: str = ""
    key: str = ""
    """Of the write that was refused, if it was one of many."""
    number: int | None = None
    """Where `if_number` did not hold: the present number of that key, 0 if it is absent."""


# Events


class PairsChanged(msgspec.Struct, frozen=True, gc=False):
    """Event: pairs are durably others here, told in number order, whole writes at once; None: deleted.

    After a snapshot it holds every difference to what was told before.
    """

    pairs: tuple[tuple[str, bytes | None], ...]
    number: int
    """Highest number applied."""
    is_root: bool = False
    numbers: tuple[int, ...] = ()
    """Of the writes that made the pairs so, in the same order; of a deletion that a snapshot showed: `number`."""
    digest: bytes = b""
    """Of all pairs that this node holds at `number` (FLD-003); empty: it lacks a part of the configuration."""


class ConfigurationApplied(msgspec.Struct, frozen=True, gc=False):
    """Event: this node runs that number now; journaled, so that it travels up to the root (CFG-047)."""

    number: int
    why: str
    """`update`, `snapshot` or `root`."""
    count: int = 0
    """How many pairs this node holds."""
    digest: str = ""
    """Theirs, in 32 hex digits; empty: this node does not follow the whole configuration."""
    candidates: tuple[str, ...] = ()
    """Who may still become a root of a later epoch with this node's vote, in hex: the report counts for what they hold too."""


class ReplicaResynced(msgspec.Struct, frozen=True, gc=False):
    """Event: a new snapshot was needed and is adopted: `lower`, `gap`, `epoch`, `tip`, `parent`, `start`."""

    why: str
    number: int
    attempts: int


class ConfigurationWiped(msgspec.Struct, frozen=True, gc=False):
    """Event: a lower number was heard, so all saved values are deleted and asked for anew (CFG-034)."""

    number: int
    last: int


class ConfigurationRewound(msgspec.Struct, frozen=True, gc=False):
    """Event: values of this node go back to older ones, or are gone, since the parent's snapshot never had them.

    The root lost its disk, and the snapshot was taken after asking again (CFG-044); or the root before wrote them without
    a majority, and the new root did not have them (REC-012).
    """

    number: int
    last: int
    keys: int
    """How many values go back."""


class ConfigurationDiverged(msgspec.Struct, frozen=True, gc=False):
    """Event: another node has other pairs at the same number (FLD-002); the replica asks for everything anew."""

    other: str
    """The endpoint of the parent, or the UUID of a node that reported."""
    number: int
    count: int
    digest: str
    other_count: int
    other_digest: str
    is_here: bool = True
    """Whether this node asks anew, because its parent has other pairs; False: this is the root, and the other one will."""


class SnapshotDiffers(msgspec.Struct, frozen=True, gc=False):
    """Event: a snapshot was refused, because other pairs came than its end speaks of; it is asked for again (FLD-002)."""

    number: int
    missing: int
    """How many pairs fewer than said; negative: more; 0: others."""
    attempts: int


class WriteLost(msgspec.Struct, frozen=True, gc=False):
    """Event: a write of this former root is not in the new root's store (REC-015)."""

    key: str
    value: bytes
    number: int


class WriteDone(msgspec.Struct, frozen=True, gc=False):
    """Event: what core `by` wanted is durable; `code` 0, or a code of WTF if it was refused."""

    by: str
    ticket: int
    number: int
    code: int = 0


class ParentQuiet(msgspec.Struct, frozen=True, gc=False):
    """Event: nothing was heard from the parent for D/2."""


class ParentSilent(msgspec.Struct, frozen=True, gc=False):
    """Event: nothing was heard from the parent for D; told again every D (REC-002)."""

    silent_ns: int


class ParentHeard(msgspec.Struct, frozen=True, gc=False):
    """Event: the parent speaks again after `ParentQuiet`, or for the first time."""


class SyncFailing(msgspec.Struct, frozen=True, gc=False):
    """Event: the snapshot could not be had for the third time and more."""

    attempts: int
    code: int
