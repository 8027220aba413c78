"""The planted bugs. Nothing imports this but `canaries.load`."""
# ruff: noqa: ARG001, ARG005  # a bug takes what the right method takes, and ignores it

from typing import Any, Final

import msgspec

import weft.cores.carrier.parent as parent_module
import weft.sim.machine as machine_module
from weft.base.effects import Perform, Persist
from weft.base.now import SECOND, Now
from weft.cores.carrier.child import Child
from weft.cores.carrier.childprogress import ChildProgress
from weft.cores.carrier.core import Carrier
from weft.cores.carrier.links import Links
from weft.cores.carrier.messages import Hop
from weft.cores.carrier.outbox import Outbox
from weft.cores.carrier.parent import Parent
from weft.cores.carrier.seen import Seen, Verdict
from weft.cores.carrier.states import State
from weft.cores.drain.core import Drain
from weft.cores.drain.lane import Lane
from weft.cores.measurement.numbering import Numbering
from weft.node.ledger import Ledger
from weft.node.node import Node, Turn
from weft.sim.canaries import canary
from weft.sim.disk import JournalDisk
from weft.wire import hop

MEMORY_NS: Final = 60 * SECOND

# Nothing leaves before it is durable.


@canary(Parent, "flush", caught_by="wall", within=3)
def hack_before_persist(right: Any) -> Any:
    """The parent acknowledges messages before it writes them."""

    def flush(self: Parent, now: Now) -> None:
        effects = self.context.effects
        begin = len(effects)
        right(self, now)
        fresh = effects[begin:]
        effects[begin:] = sorted(fresh, key=lambda effect: isinstance(effect, Persist))

    return flush


@canary(machine_module, "part_at_wall", caught_by="wall", within=3)
def wall_ignored(right: Any) -> Any:
    """Everything of a turn is sent at once, before the records that it depends on are written."""

    def part_at_wall(effects: Any) -> Turn:
        turn: Turn = right(effects)
        return turn._replace(free=turn.free + turn.walled, walled=[])

    return part_at_wall


@canary(Parent, "_safe", caught_by="wall", within=3)
def held_called_safe(right: Any) -> Any:
    """A collector reports records as safe that are only on its own disk."""
    return lambda self, link: link.upto


# Exactly once.


@canary(Seen, "take", caught_by="exactly_once", within=60)
def root_keeps_everything_twice(right: Any) -> Any:
    """The root does not remove duplicates."""
    return lambda self, record: Verdict.NEW


@canary(Parent, "wake", caught_by="exactly_once", within=100)
def duplicates_forgotten_after_a_minute(right: Any) -> Any:
    """What the root has seen is remembered for 60 s."""

    def wake(self: Parent, now: Now) -> None:
        if now.mono // MEMORY_NS != getattr(self, "minute", None):
            self.minute = now.mono // MEMORY_NS  # type: ignore[attr-defined]  # a field of the bug's own
            self.seen = Seen()
        right(self, now)

    return wake


@canary(machine_module, "build_node", caught_by="exactly_once", within=20)
def era_kept_over_a_restart(right: Any) -> Any:
    """A node that starts again keeps its old era, and numbers from 1."""
    eras: dict[bytes, int] = {}

    def build_node(settings: Any, node: bytes, era: int, seed: str, **more: Any) -> Node:
        made: Node = right(settings, node, eras.setdefault(node, era), seed, **more)
        made.ledger = Forgetful(node, made.era)
        made.cores["measurement"].numbering.restore = lambda entries: None  # type: ignore[attr-defined]  # it would refuse
        return made

    return build_node


@canary(Ledger, "restore", caught_by="complete", within=20)
def end_of_the_last_era_forgotten(right: Any) -> Any:
    """The link between two eras says that the earlier one ended one number too early."""

    def restore(self: Ledger, entries: Any) -> None:
        right(self, entries)
        era, last = self._before
        self._before = (era, max(0, last - 1))

    return restore


@canary(Lane, "order_segment", caught_by="exactly_once", within=60)
def segment_number_reused(right: Any) -> Any:
    """Every tenth segment overwrites the one before."""

    def order_segment(self: Lane, moment: Any) -> None:
        right(self, moment)
        effects = self._outbox.effects
        work = effects[-1].work  # type: ignore[union-attr]  # it has just been ordered
        if work.number % 10 == 0:
            self.tip = msgspec.structs.replace(self.tip, number=self.tip.number - 1)
            effects[-1] = Perform(msgspec.structs.replace(work, number=work.number - 1))

    return order_segment


class Forgetful(Ledger):
    """Does not look where the previous start ended."""

    def restore(self, entries: Any) -> None:
        """Ignore the records."""


# Nothing is missing.


@canary(parent_module._HEAR, Hop, caught_by="wall", within=20)
def receiver_ignores_the_era(right: Any) -> Any:
    """The first messages of a new start are taken for known, up to the last number of the start before."""

    def hop(self: Parent, link: Any, message: Hop, now: Now) -> None:
        eras = self.progress._children.get(link.node, {})
        known = max((progress.upto for era, progress in eras.items() if era != link.era), default=0)
        if link.upto + 1 == message.s and message.s + len(message.m) <= known:
            link.upto += len(message.m)
            self._owe(link)
        else:
            right(self, link, message, now)

    return hop


@canary(hop, "is_altered", caught_by="wall", within=range(110, 135), scenario="link")
def sum_not_checked(right: Any) -> Any:
    """A message whose checksum is wrong is accepted."""
    return lambda header, payload=(): False


@canary(Outbox, "frontier", caught_by="wall", within=20)
def spool_trimmed_at_held(right: Any) -> Any:
    """A child forgets records once its parent holds them, before they are safe at the root."""

    def frontier(self: Outbox) -> int:
        if self.safe < self.held <= self.given:
            return max(self.safe_lsn, self._ledger.lsn(self.held))
        return int(right(self))

    return frontier


@canary(Carrier, "_finish_drop", caught_by="complete", within=60)
def drop_not_announced(right: Any) -> Any:
    """A sensor's full spool drops its oldest records without announcing it."""

    def finish_drop(self: Carrier, dropping: Any) -> None:
        if self.context.settings.level == "sensor":
            dropping.announcements = list
        right(self, dropping)

    return finish_drop


@canary(Node, "releasable", caught_by="complete", within=60)
def journal_forgets_what_one_reader_released(right: Any) -> Any:
    """The journal forgets a record as soon as one of its two readers has released it."""
    return property(lambda self: max((self.released.get(reader, 0) for reader in self._readers), default=0))


@canary(Drain, "_releasable", caught_by="complete", within=60)
def cursor_before_publication(right: Any) -> Any:
    """The drain moves its cursor past records that it has seen, before they are published."""
    return lambda self: self.seen


@canary(Child, "join", caught_by="complete", within=20)
def resend_starts_one_too_late(right: Any) -> Any:
    """After a new hello a sensor skips the first message that its parent lacks; the next one gets its number."""

    def join(self: Child, welcome: Any, before: State, now: Now) -> None:
        right(self, welcome, before, now)
        outbox = self.outbox
        if self.context.settings.level == "sensor" and outbox._slots and outbox.held < outbox.given:
            outbox._bytes -= outbox._slots.pop(0)[2]

    return join


@canary(parent_module._HEAR, Hop, caught_by="wall", within=60)
def gap_accepted(right: Any) -> Any:
    """A gap between two messages counts as received."""

    def hop(self: Parent, link: Any, message: Any, now: Now) -> None:
        if message.s > link.upto + 1 and message.era == link.era:
            link.upto = message.s - 1
        right(self, link, message, now)

    return hop


@canary(Numbering, "restore", caught_by="complete", within=20)
def era_link_left_out(right: Any) -> Any:
    """A start does not look where the era before ended, and reports an end that is a hundred too high."""

    def restore(self: Numbering, entries: Any) -> None:
        right(self, entries)
        if self.before != (0, 0):
            self.before = (self.before[0], self.before[1] + 100)

    return restore


# In order, and found again.


@canary(Parent, "flush", caught_by="order", within=20)
def newest_first(right: Any) -> Any:
    """The messages of a child that one turn received are written in reverse order."""

    def flush(self: Parent, now: Now) -> None:
        for link in self._dirty.values():
            link.pending.reverse()
        right(self, now)

    return flush


@canary(JournalDisk, "crash", caught_by="durable", within=20)
def page_cache_trusted(right: Any) -> Any:
    """A node calls its last batches durable while they are only in the page cache."""

    def crash(self: JournalDisk, chance: Any, disk: str, on_survival: Any) -> Any:
        survived = right(self, chance, disk, on_survival)
        if self._data:
            self._data.pop()
            self.claims.pop()
        return survived

    return crash


# Refused without effect.


@canary(Child, "receive", caught_by="inert", within=60)
def silence_ends_with_what_is_refused(right: Any) -> Any:
    """Even a forbidden message counts as a sign of life."""

    def receive(self: Child, message: Any, source: Any, now: Now) -> None:
        self._heard_at = now.mono
        right(self, message, source, now)

    return receive


@canary(Node, "_refuse", caught_by="inert", within=20)
def refusal_counted_twice(right: Any) -> Any:
    """Every refused message is counted twice."""

    def refuse(self: Node, *arguments: Any) -> None:
        right(self, *arguments)
        right(self, *arguments)

    return refuse


# Silence: dead nodes are noticed in time, and live ones are not called dead.


@canary(Child, "greet", caught_by="timely", within=60)
def socket_kept_after_silence(right: Any) -> Any:
    """After a silence a child says hello through its old socket, not through a fresh one (Z7)."""

    def greet(self: Child, what: Any, before: State, now: Now) -> None:
        effects = self.context.effects
        begin = len(effects)
        right(self, what, before, now)
        if getattr(self, "has_socket", False) and before is not State.NONE:
            del effects[begin]
        self.has_socket = True  # type: ignore[attr-defined]  # a field of the bug's own

    return greet


@canary(Carrier, "wake", caught_by="timely", within=20)
def silence_by_wall_clock(right: Any) -> Any:
    """Silence is measured by the wall clock: after it is set by an hour, everybody counts as dead."""

    def wake(self: Carrier, now: Now) -> None:
        stepped = now.wall - now.mono
        ahead = stepped - getattr(self, "offset", stepped)
        self.offset = stepped  # type: ignore[attr-defined]  # a field of the bug's own
        for link in self.parent.links:
            link.heard_at -= ahead
        self.child._heard_at -= ahead
        right(self, now)

    return wake


@canary(Carrier, "deadline", caught_by="timely", within=60)
def woken_late_declares_the_parent_dead(right: Any) -> Any:
    """A node that is woken much later than it asked calls its parent dead at once, without time to hear it."""

    def deadline(self: Carrier) -> Any:
        due = right(self)
        self._asked_for = None
        return due

    return deadline


@canary(Child, "back_off", caught_by="timely", within=20)
def retries_end(right: Any) -> Any:
    """After the fifth pause the child gives up."""

    def back_off(self: Child, what: Any, before: State, now: Now) -> None:
        self.tries = getattr(self, "tries", 0) + 1  # type: ignore[attr-defined]  # a field of the bug's own
        right(self, what, before, now)
        if self.tries > 5:  # type: ignore[attr-defined]  # same
            self._greet_at = None

    return back_off


@canary(Child, "_watch", caught_by="timely", within=20)
def silence_not_watched(right: Any) -> Any:
    """A child does not notice that its parent is silent."""

    def watch(self: Child, now: Now) -> None:
        self._heard_at = now.mono
        right(self, now)

    return watch


# At rest.


@canary(Parent, "hold_back", caught_by="converged", within=60)
def never_let_go_again(right: Any) -> Any:
    """Children that were held back are never released."""

    def hold_back(self: Parent, *, is_full: bool) -> None:
        if is_full:
            right(self, is_full=is_full)

    return hold_back


@canary(ChildProgress, "adopt", caught_by="converged", within=60)
def snapshot_read_without_the_children(right: Any) -> Any:
    """A start from a snapshot forgets up to which number it holds each child's messages."""
    return lambda self, memory: None


# Bounded.


@canary(Links, "remove", caught_by="bounded", within=20)
def links_pile_up(right: Any) -> Any:
    """A link that has ended is kept for ever."""

    def remove(self: Links, link: Any) -> None:
        self._by_node.pop(link.node, None)
        self._by_name.pop(link.name, None)
        link.heard_at = 1 << 62

    return remove
