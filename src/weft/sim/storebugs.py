"""The planted bugs of the store. Nothing imports this but `canaries.load`."""
# ruff: noqa: ARG001, ARG005  # a bug takes what the right method takes, and ignores it

from typing import Any

import msgspec

import weft.cores.store.replica as replica_module
from weft.base.budget import Part
from weft.base.changes import Chain, Event
from weft.base.effects import Persist
from weft.base.records import DamageRecord, StreamRecord
from weft.cores.store import actions as actions_module
from weft.cores.store import limits, memory
from weft.cores.store.actions import Conditions
from weft.cores.store.conflicts import Conflicts
from weft.cores.store.context import Context
from weft.cores.store.deletion import Deletion
from weft.cores.store.mesh import Mesh
from weft.cores.store.namesakes import Namesakes
from weft.cores.store.recovery import Recovery
from weft.cores.store.replica import Replica
from weft.cores.store.resending import Resending
from weft.cores.store.ticks import TickBook
from weft.cores.store.tree import Tree
from weft.cores.store.watching import WatchStream
from weft.sim.canaries import canary

SMALL = "store-small"

# Memory


@canary(Part, "has_room", caught_by="bounded", within=10, scenario="store-flood")
def budget_not_asked(right: Any) -> Any:
    """Every change is taken, however little memory is left."""
    return lambda self, more: True


# Merging


@canary(Event, "beats", caught_by="converged", within=10, scenario=SMALL)
def store_no_tie_break(right: Any) -> Any:
    """Of two changes with the same tock, the one that arrives later wins."""
    return lambda self, other: self.tock >= other.tock


@canary(replica_module, "judge", caught_by="converged", within=60, scenario=SMALL)
def cut_chain_lets_the_old_one_win(right: Any) -> Any:
    """What a cut chain does not name counts as unseen by the author, so an older change is taken for newer."""

    def judge(event: Event, current: Event) -> tuple[str, str]:
        if current.chain.is_cut and not current.chain.covers(event.chain.head):
            return "newer", ""
        verdict: tuple[str, str] = right(event, current)
        return verdict

    return judge


@canary(Tree, "put", caught_by="store_durable", within=20, scenario=SMALL)
def deletion_merged_as_absence(right: Any) -> Any:
    """A deletion leaves no tombstone, so a change that arrives late brings the entry back."""

    def put(self: Tree, event: Event) -> Event:
        kept: Event = right(self, event)
        if event.value is None:
            self.remove(kept)
        return kept

    return put


@canary(Conflicts, "note", caught_by="store_durable", within=10, scenario=SMALL)
def conflict_not_reported(right: Any) -> Any:
    """The author of a change that lost a conflict is not told."""
    return lambda self, kept, lost, reason: None


@canary(Replica, "_next_event", caught_by="causal", within=10, scenario=SMALL)
def chain_forgotten(right: Any) -> Any:
    """A change does not name the change that it was written over."""

    def next_event(self: Replica, path: Any, value: Any, by: str, _below: Chain, *more: Any) -> Event:
        made: Event = right(self, path, value, by, Chain(()), *more)
        return made

    return next_event


# Numbers


@canary(Context, "hear_tock", caught_by="causal", within=5, scenario=SMALL)
def tock_not_merged(right: Any) -> Any:
    """A node does not raise its tock to those that it hears."""
    return lambda self, tock: None


@canary(TickBook, "missing", caught_by="converged", within=20, scenario=SMALL)
def hole_in_ticks_accepted(right: Any) -> Any:
    """A node that has the latest change of another one counts all changes before it as received."""
    return lambda self: {}


@canary(Replica, "_restore_change", caught_by="converged", within=20, scenario=SMALL)
def tick_reused_after_a_crash(right: Any) -> Any:
    """A start counts on from the last change but one, as if the last had not been sent."""

    def restore_change(self: Replica, record: StreamRecord) -> None:
        tick = self._context.tick
        right(self, record)
        if record.origin == self._context.name:
            self._context.tick = max(tick, record.sequence - 1)

    return restore_change


@canary(TickBook, "own_ahead", caught_by="ticks", within=100, scenario=SMALL)
def own_ticks_never_asked_for(right: Any) -> Any:
    """A node does not notice that others know later changes of its own than it does."""
    return property(lambda self: 0)


# The journal


@canary(Context, "keep", caught_by="own_numbers", within=5, scenario=SMALL)
def own_write_not_persisted(right: Any) -> Any:
    """An own write is sent to others, and never written to the journal."""

    def keep(self: Context, record: Any) -> None:
        if not isinstance(record, StreamRecord):
            right(self, record)

    return keep


@canary(Context, "take", caught_by="store_durable", within=5, scenario=SMALL)
def acknowledged_above_the_wall(right: Any) -> Any:
    """The messages of a turn are sent before its records are written."""
    return lambda self: sorted(right(self), key=lambda effect: isinstance(effect, Persist))


@canary(Replica, "_keep", caught_by="watched", within=40, scenario=SMALL)
def known_before_the_entry(right: Any) -> Any:
    """A tick is recorded as known, but its entry is not: it is thought to be safe with its author."""

    def keep(self: Replica, event: Event, joined: Any) -> None:
        right(self, event, joined._replace(is_kept=False))

    return keep


# Peers


@canary(Resending, "ask", caught_by="converged", within=40, scenario="store")
def only_the_head_of_the_chain_answers(right: Any) -> Any:
    """Only the first node of the chain of pings answers questions."""

    def ask(self: Resending, missing: Any, to: str, delay_ns: int) -> None:
        names = sorted([*self._bus.members, self._context.name])
        if names[0] == self._context.name:
            right(self, missing, to, delay_ns)

    return ask


@canary(Recovery, "link_up", caught_by="converged", within=40, scenario=SMALL)
def nothing_said_when_a_link_is_up(right: Any) -> Any:
    """When a link comes up, neither side says what it has."""

    def link_up(self: Recovery, member: str, now: Any) -> None:
        self.say_full = lambda *_, **__: None  # type: ignore[method-assign]  # for good

    return link_up


@canary(Mesh, "_hang_up", caught_by="converged", within=60, scenario=SMALL)
def deaf_socket_kept(right: Any) -> Any:
    """A socket is kept although its peer is silent (Z7)."""
    return lambda self, peer: None


# Deletions


@canary(Deletion, "_purge", caught_by="no_resurrection", within=60, scenario="store-deletes")
def tombstone_dropped_while_a_deleter_is_away(right: Any) -> Any:
    """A deletion is forgotten when it is old enough, even if some node has not seen it."""

    def purge(self: Deletion, now: Any) -> None:
        self._forget(self._old(now.mono - limits.BURIED_CLOCKS * self._clock))

    return purge


# Clients


@canary(Conditions, "check", caught_by="causal", within=10, scenario=SMALL)
def condition_not_checked(right: Any) -> Any:
    """The condition of a write is not checked."""
    return lambda self: None


@canary(actions_module.ACTIONS, "get_value", caught_by="causal", within=40, scenario=SMALL)
def first_answer_remembered(right: Any) -> Any:
    """The first answer to a read is cached for ever."""
    cache: dict[Any, Any] = {}

    def get_value(asked: Any) -> Any:
        answer = cache.setdefault((asked.tree, asked.path), right(asked))
        return msgspec.structs.replace(answer, seq=asked.request.seq)

    return get_value


@canary(WatchStream, "_take", caught_by="watched", within=20, scenario=SMALL)
def watcher_without_room_is_skipped(right: Any) -> Any:
    """Changes are dropped if a watcher has no room for them."""
    return lambda self, lsn, event: right(self, lsn, event) if self.room > 0 else True


@canary(WatchStream, "_resume", caught_by="watched", within=20, scenario=SMALL)
def watcher_goes_on_from_now(right: Any) -> Any:
    """A watcher that reconnects sees only changes from then on."""

    def resume(self: WatchStream, since: Any) -> None:
        self._place.hold(self)
        self._skip = self._place.pending

    return resume


@canary(memory, "shown", caught_by="watched", within=20, scenario=SMALL)
def losers_are_shown(right: Any) -> Any:
    """Watchers are also shown the changes that lost a conflict, after those that won."""
    return memory.event_of


# Names


@canary(Namesakes, "judge", caught_by="converged", within=20, scenario="store-moves")
def moved_node_is_a_second_one(right: Any) -> Any:
    """What a node says after it has started again elsewhere counts as said by its former start, which so never dies."""

    def judge(self: Namesakes, hello: Any, now: Any) -> Any:
        for caller in self._callers.values():
            if caller.node == hello.node and caller.boot < hello.boot:
                caller.heard_at = now.mono
        return right(self, hello, now)

    return judge


# Damage


@canary(Replica, "restore", caught_by="ticks", within=range(235, 245), scenario="store-damages")
def damaged_store_goes_on_as_if_whole(right: Any) -> Any:
    """A node whose journal lost records goes on with the ticks that it knows of, and gives those after them again."""

    def restore(self: Replica, entries: Any) -> None:
        right(self, [entry for entry in entries if not isinstance(entry[1], DamageRecord)])

    return restore
