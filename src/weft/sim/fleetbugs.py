"""The planted bugs of fleets that place themselves. Nothing imports this but `canaries.load`."""
# ruff: noqa: ARG001, ARG005  # a bug takes what the right method takes, and ignores it

from typing import Any

import msgspec

import weft.cores.configuration.core as core_module
import weft.cores.configuration.replica as replica_module
import weft.cores.configuration.root as root_module
import weft.cores.configuration.writes as writes_module
import weft.sim.machine as machine_module
from weft.base.effects import Persist
from weft.base.now import Now
from weft.cores.carrier.core import Carrier
from weft.cores.carrier.seen import Seen
from weft.cores.carrier.takeover import TakeOver
from weft.cores.configuration.answering import Stream
from weft.cores.configuration.context import Context
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.messages import TakeRoot
from weft.cores.configuration.replica import Replica
from weft.cores.configuration.serving import Serving
from weft.cores.configuration.states import TABLE, Cell, On, State
from weft.cores.configuration.store import Store
from weft.cores.topology.election import Cue, Election
from weft.cores.topology.recovery import Rescue
from weft.node.census import Census
from weft.sim.canaries import canary
from weft.wire.replication import counter_of, epoch_of, number_of


@canary(Election, "vote", caught_by="one_root", within=10, scenario="deaths")
def aye_before_durable(right: Any) -> Any:
    """A voter sends its vote before its promise is written to the journal."""

    def vote(self: Election, cue: Cue, now: Now) -> None:
        effects = self.context.effects
        begin = len(effects)
        right(self, cue, now)
        effects[begin:] = sorted(effects[begin:], key=lambda effect: isinstance(effect, Persist))

    return vote


@canary(Election, "hear", caught_by="kept", within=40, scenario="heirs")
def voter_ignores_what_is_held(right: Any) -> Any:
    """Voters compare UUIDs only: each claims to hold exactly what the candidate holds."""

    def hear(self: Election, message: Any, now: Now) -> None:
        atlas, content = self.context.atlas, message.content
        before = atlas.number, atlas.digest
        epoch, counter = content.get("holds") or (0, 0)
        atlas.number, atlas.digest = number_of(epoch, counter), bytes.fromhex(content.get("digest", ""))
        right(self, message, now)
        atlas.number, atlas.digest = before

    return hear


@canary(core_module._OBEY, TakeRoot, caught_by="numbers", within=40, scenario="splits")
def acting_root_writes(right: Any) -> Any:
    """A node that acts as root writes as if it were the root."""

    def take_root(self: Configuration, order: Any, now: Now) -> None:
        right(self, TakeRoot(order.epoch), now)

    return take_root


@canary(root_module, "number_of", caught_by="complete", within=20, scenario="splits")
def epoch_in_the_low_bits(right: Any) -> Any:
    """A new epoch does not raise the numbers, so an old root may already have written higher ones."""
    return lambda epoch, counter: number_of(0, counter << 3 | epoch & 7) if epoch else right(epoch, counter)


@canary(root_module.Root, "_next_number", caught_by="one_root", within=20, scenario="splits")
def new_root_goes_on_in_the_old_epoch(right: Any) -> Any:
    """A new root's first number is the next one after its last, still in the old epoch."""

    def next_number(self: root_module.Root) -> int:
        highest = max(self.context.store.number, self.context.store.seen)
        return number_of(epoch_of(highest), counter_of(highest) + 1)

    return next_number


@canary(Stream, "confirm", caught_by="converged", within=200, scenario="narrow")
def portion_counted_before_it_left(right: Any) -> Any:
    """A portion of a snapshot counts as sent at once; if the socket refused some of it, it is never sent again."""
    return lambda self, refused, now: right(self, 0, now)


@canary(Serving, "beat", caught_by="calm", within=3, scenario="undisturbed")
def updates_count_as_beats(right: Any) -> Any:
    """An update counts as a beat, also for children that have not subscribed to its key."""

    def beat(self: Serving, now: Now, *, is_due: bool) -> None:
        number = self._context.store.number
        if number != self.__dict__.setdefault("number", number) and self._beat_at is not None:
            self._beat_at = now.mono
        self.__dict__["number"] = number
        right(self, now, is_due=is_due)

    return beat


@canary(TABLE, (State.RUN, On.LOWER), caught_by="converged", within=60, scenario="memories")
def lower_number_ignored(right: Any) -> Any:
    """An update with a lower number is ignored, although it means that the root has changed."""
    return Cell("pass_over", State.RUN)


@canary(TakeOver, "_go_on", caught_by="exactly_once", within=40, scenario="deaths")
def new_root_forgets_what_it_has(right: Any) -> Any:
    """A new root ignores what its journal already holds, and takes all of it again."""

    def going_on(self: TakeOver, now: Now) -> None:
        self._parent.seen = Seen()
        right(self, now)

    return going_on


@canary(Carrier, "restore", caught_by="complete", within=40, scenario="fleet")
def former_root_keeps_what_it_had_not_drained(right: Any) -> Any:
    """A former root sends up only new records, and not those that it had not drained."""

    def restore(self: Carrier, entries: Any, now: Now) -> None:
        right(self, entries, now)
        if self.context.settings.level == "collector":
            self.outbox.resume(self.outbox.seen_lsn, 0)

    return restore


@canary(Census, "is_voter", caught_by="kept", within=60, scenario="splits")
def majority_of_one(right: Any) -> Any:
    """A root that is cut off declares the others dead, and then has a majority without them."""
    return lambda self, node: self.is_elector(node)


@canary(Rescue, "lead", caught_by="kept", within=20, scenario="given-up")
def root_forgets_whom_it_gave_up(right: Any) -> Any:
    """A root that restarts counts only today's voters, although those that it had given up may still vote."""
    return lambda self: None


@canary(Census, "recall", caught_by="kept", within=20, scenario="given-up")
def root_forgets_whom_it_removed(right: Any) -> Any:
    """A root that starts again no longer counts voters whose removal it alone knows of."""
    return lambda self, voters, electorates: None


@canary(Census, "electorates", caught_by="kept", within=range(130, 140), scenario="given-up")
def new_voters_outnumber_the_old_ones(right: Any) -> Any:
    """A root that is cut off makes its children voters, and with them outnumbers the old voters."""
    return lambda self, root: ()


@canary(Election, "submit", caught_by="settled", within=20, scenario="splits")
def old_root_goes_on(right: Any) -> Any:
    """A root that hears of a root with a higher epoch stays the root."""

    def submit(self: Election, cue: Cue, now: Now) -> None:
        if not self.context.is_root:
            right(self, cue, now)

    return submit


@canary(Context, "set_times", caught_by="swift", within=10, scenario="quick")
def death_takes_twice_as_long(right: Any) -> Any:
    """A node counts as dead only after twice as many silent beats as the fleet sets."""
    return lambda self, heartbeat_ns, dead_after: right(self, heartbeat_ns, 2 * dead_after)


@canary(Replica, "_note_adopted", caught_by="never_back", within=40, scenario="memories")
def older_snapshot_taken_unsaid(right: Any) -> Any:
    """A node that takes an older snapshot does not report it."""

    def note_adopted(self: Replica, stage: Any, seen: int, gone_back: int, now: Now) -> None:
        self._rewinds = 0
        right(self, stage, seen, 0, now)

    return note_adopted


@canary(replica_module, "values_gone_back", caught_by="never_back", within=20, scenario="splits")
def values_go_back_unsaid(right: Any) -> Any:
    """A node does not report that a new root lacks values which it had from the one before."""
    return lambda store, stage, topics: 0


@canary(Store, "has", caught_by="claimed", within=20, scenario="shapes")
def part_served_as_everything(right: Any) -> Any:
    """A former sensor serves its children the part of the configuration that it has, as if it were all of it."""
    return lambda self, subtree: True


@canary(Configuration, "effects", caught_by="own_numbers", within=5, scenario="splits")
def published_before_durable(right: Any) -> Any:
    """A root publishes a write before it is in the journal."""
    return lambda self: sorted(right(self), key=lambda effect: isinstance(effect, Persist))


@canary(writes_module, "_mismatch", caught_by="linearizable", within=20, scenario="heirs")
def condition_of_a_write_not_checked(right: Any) -> Any:
    """A conditional write is made although the number that it names is no longer the newest."""
    return lambda store, write: None


@canary(machine_module, "build_node", caught_by="sealed", within=20, scenario="neighbours")
def fleet_not_asked(right: Any) -> Any:
    """Nodes do not check which fleet another belongs to: all use one name."""

    def build_node(settings: Any, *about: Any, **more: Any) -> Any:
        fleet = msgspec.structs.replace(settings.fleet, name="any")
        return right(msgspec.structs.replace(settings, fleet=fleet), *about, **more)

    return build_node
