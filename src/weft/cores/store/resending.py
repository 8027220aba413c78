"""Answers to nodes that miss changes (step 3 of recovery; HEA-003 to HEA-005).

Head changes are sent as updates with their whole chain; then superseded and purged ticks are named. The answer goes
tick by tick, with a limit per turn, so that own writes go first and queues stay short.
"""

import msgspec

from weft.base.now import SECOND
from weft.base.ranges import RangeSet
from weft.cores.store import limits
from weft.cores.store.bus import Bus
from weft.cores.store.context import Context
from weft.cores.store.replica import Replica
from weft.cores.store.ticks import in_parts
from weft.wire.store.messages import Ticks, Update
from weft.wire.store.pack import LEFT_OUT


class Job(msgspec.Struct):
    """What one asker, or all nodes, still has to get."""

    to: str
    due_at: int
    wanted: Ticks
    known: Ticks
    deleted: Ticks
    is_begun: bool = False


class Budget(msgspec.Struct):
    """What may be sent in this turn."""

    messages: int
    bytes: int = limits.RESEND_BYTES
    ticks: int = limits.RESEND_TICKS

    @property
    def is_spent(self) -> bool:
        return self.messages <= 0 or self.bytes <= 0 or self.ticks <= 0


class Resending:
    """`prev` in messages to all is set only by askers; answers name only changes."""

    def __init__(self, context: Context, bus: Bus, replica: Replica) -> None:
        self._context, self._bus, self._replica = context, bus, replica
        self._jobs: list[Job] = []

    def ask(self, missing: Ticks, to: str, delay_ns: int) -> None:
        """Changes are missing elsewhere: send those that are here after the delay, `to` a member or all nodes."""
        seen = {node: ranges & self._replica.book.seen(node) for node, ranges in missing.items()}
        wanted = {node: ranges for node, ranges in seen.items() if ranges}
        if not wanted:
            return
        job = next((job for job in self._jobs if to and job.to == to), None)
        if job is None:
            self._jobs.append(Job(to, self._context.now.mono + delay_ns, wanted, {}, {}))
            del self._jobs[: -limits.RESEND_JOBS_MAX]
        else:
            for node, ranges in wanted.items():
                job.wanted.setdefault(node, RangeSet()).update(ranges)

    def seen_resent(self, node: str, tick: int) -> None:
        """Another node has sent it to all (HEA-003)."""
        for job in self._jobs:
            ranges = job.wanted.get(node) if not job.to else None
            if ranges:
                ranges.remove(tick)

    def seen_named(self, ticks: Ticks) -> None:
        """Another node has named these as known or deleted."""
        for job in self._jobs:
            for node, ranges in ticks.items() if not job.to else ():
                if node in job.wanted:
                    job.wanted[node] -= ranges

    def wake(self) -> None:
        """Send as much as one turn allows, for askers whose time has come."""
        now = self._context.now.mono
        for job in [job for job in self._jobs if job.due_at <= now]:
            rate = self._rate(job)
            messages = min(limits.RESEND_MESSAGES, max(1, rate // 20))
            if self._walk(job, Budget(messages)):
                self._jobs.remove(job)
            else:
                job.due_at = now + messages * SECOND // rate

    def deadline(self) -> int | None:
        return min(job.due_at for job in self._jobs) if self._jobs else None

    def _rate(self, job: Job) -> int:
        if self._context.foreign:  # limit for all jobs together
            return max(1, limits.RESEND_RATE_FOREIGN // len(self._jobs))
        is_mesh = job.to in self._bus.members or not self._bus.has_broker
        return limits.RESEND_RATE_MESH if is_mesh else limits.RESEND_RATE_BROKER

    def _walk(self, job: Job, budget: Budget) -> bool:
        """Continue a job; returns whether it is finished."""
        if not job.is_begun:
            job.is_begun = True
            self._context.count("recoveries", "resend")
        while job.wanted and not budget.is_spent:
            node, ranges = next(iter(job.wanted.items()))
            if not ranges:
                del job.wanted[node]
                continue
            self._step(job, node, ranges, budget)
        if job.wanted:
            return False
        self._name(job)
        return True

    def _step(self, job: Job, node: str, ranges: RangeSet, budget: Budget) -> None:
        """Process the next few ticks of one node, as far as the budget allows."""
        first, last = next(iter(ranges))
        last = min(last, first + limits.RESEND_STRIDE - 1)
        heads, superseded, deleted = self._replica.book.held(node, RangeSet([(first, last)]))
        for event in heads:
            if budget.is_spent:
                last = event.tick - 1
                break
            if event.value != LEFT_OUT:  # its value was too large to be kept here: a node that has it sends it
                self._bus.say(Update(event, (self._context.name, self._context.tick)), job.to)
                self._context.count("resent")
            budget.messages -= 1
            budget.bytes -= len(event.value or b"") + limits.ASK_WEIGHT
        if last >= first:
            budget.ticks -= last - first + 1
            ranges.remove(first, last)
            _collect(job.known, node, superseded, last)
            _collect(job.deleted, node, deleted, last)

    def _name(self, job: Job) -> None:
        """Name the ticks without an entry, in as many messages as needed."""
        known, deleted = in_parts(job.known), [*in_parts(self._forgotten_before(job)), *in_parts(job.deleted)]
        for index in range(max(len(known), len(deleted))):
            info = self._context.info(
                known=known[index] if index < len(known) else None,
                deleted=deleted[index] if index < len(deleted) else None,
            )
            self._bus.say(info, job.to)

    def _forgotten_before(self, job: Job) -> Ticks:
        """Name all purged ticks to a node that may have missed a deletion, and still has the entry (DEL-005).

        They are named before the answer, so that no node believes itself complete without them. Real servers would
        delete more than that (HEA-004).
        """
        if not job.deleted or self._context.foreign:
            return {}
        book = self._replica.book
        return {node: book.deleted(node) - job.deleted.get(node, RangeSet()) for node in book.nodes()}


def _collect(ticks: Ticks, node: str, ranges: RangeSet, upto: int) -> None:
    for first, last in ranges.overlap(1, upto):
        ticks.setdefault(node, RangeSet()).add(first, last)
