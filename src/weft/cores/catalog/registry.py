"""The registered instances and all changes of them, by the table of instances (CAT-013 to CAT-022, CAT-050, CAT-051).

A command is planned first, and only planning can refuse it; carrying it out cannot fail. So a refusal changes nothing,
and an index is given only to a change that happens (CAT-080).
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple, Protocol

import msgspec

from weft.base.now import MILLISECOND, Now
from weft.base.records import CoreRecord, DamageRecord, Entry, StreamRecord
from weft.cores.catalog import limits, records
from weft.cores.catalog.book import Book
from weft.cores.catalog.context import Asker, Context
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.memory import STREAMS, InstanceKept, StreamEnded, ended_of, instance_of, kept_of, memory_of
from weft.cores.catalog.records import Registration, Update
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.states import TABLE, Cell, On, State

RETURNS: Final = frozenset({On.BEAT, On.PROBED, On.LEFT})
"""Inputs that are ignored once an instance has said goodbye, or another one has its name."""
HEARD: Final = RETURNS | {On.GOODBYE}
"""Inputs that peers repeat. Losing one is harmless: it comes again, or the liveness timer notices the silence."""
REASONS: Final = {On.OVERDUE: "silent", On.LEFT: "left", On.REAPED: "reaped"}


class Watcher(Protocol):
    """Watches liveness: `liveness.Liveness`."""

    def heard(self, instance: Instance, via: str, now: Now) -> bool:
        """A sign of life came; False: it does not count, since the instance had said goodbye."""

    def began(self, instance: Instance) -> None:
        """It was registered, came back, was restored, or has another interval: its silence timer starts."""

    def ended(self, instance: Instance) -> None:
        """It became INACTIVE, or was removed."""


class Cause(NamedTuple):
    """The input of a row of the table; fields are empty where the input has none."""

    asker: Asker | None = None
    registration: Registration | None = None
    """The complete new record; for an update, the merged one."""
    reason: str = ""

    @property
    def entry(self) -> Registration:
        """The record, in rows that require one."""
        assert self.registration is not None, "only a registration or an update leads here"
        return self.registration

    @property
    def sender(self) -> Asker:
        """The sender, in rows that require one."""
        assert self.asker is not None, "only who says something leads here"
        return self.asker


class Plan(NamedTuple):
    """A command that was checked and will be carried out."""

    instance: Instance
    """In state NONE if it would be new."""
    cell: Cell
    cause: Cause


class Registry:
    """All changes of instances are made here."""

    def __init__(self, context: Context, book: Book, watcher: Callable[[], Watcher]) -> None:
        """`watcher`: returns it later, since it is built with this registry."""
        self.context, self.book, self.watcher = context, book, watcher
        self.judge: Callable[[Instance, str], str] = lambda _, own: own
        """The health of an instance, given the health that it reports itself; checks replace this function (BEA-024).
        """
        self._room = context.budget.part("records", limits.RECORDS_PERCENT, lambda: book.bytes)
        self._turn_at = self._turn_bytes = 0
        """The instant of this turn, and the bytes of changes in it."""

    @property
    def is_busy(self) -> bool:
        """Whether this turn has enough changes: they are written as one batch of the journal, whose size is limited.

        One small update of a large record makes a large change, so counting input bytes is not enough (CAT-081). All
        verbs of one turn get the same `now`, those of the next a later one.
        """
        return self._turn_bytes >= limits.CHANGES_BYTES and self._turn_at == self.context.now.mono

    @property
    def free_at(self) -> int:
        """When waiting changes may go on, monotonic ns; 0: nothing has to wait."""
        return self._turn_at + MILLISECOND if self.is_busy else 0

    # Commands

    def plan(self, body: bytes, asker: Asker) -> Plan:
        """Check a `UwU`; Refusal if it cannot be accepted. `enter` carries the plan out, within the same turn."""
        registration = records.registration(body, is_strict=self.context.settings.strict)
        instance_id = registration.instance_id(asker.owner, self.context.settings.rewrite)
        instance = self.book.get(registration.name, instance_id)
        on = On.REGISTERED if instance is None or owns(asker, instance) else On.CLAIMED
        if instance is None:
            instance = _unknown(registration.name, instance_id, asker)
        plan = self._planned(instance, on, Cause(asker, registration))
        self._check_room(instance, on, asker)
        self._check_memory(plan)
        self._check_journal(plan)
        return plan

    def update(self, body: bytes, asker: Asker, bound: Instance | None = None) -> Instance:
        """Carry out a `UoU` (CAT-018); `bound`: the instance of its connection. Refusal: nothing has changed."""
        asked = records.update(body)
        instance = self._meant(asked, asker, bound)
        on = On.UPDATED if instance.state is State.NONE or owns(asker, instance) else On.MEDDLED
        self._planned(instance, on, Cause(asker))
        is_strict = self.context.settings.strict
        merged = records.merge(instance.name, instance.record, asked.changes, is_strict=is_strict)
        plan = self._planned(instance, on, Cause(asker, merged))
        if instance.state is State.INACTIVE:
            self._check_unique(instance)
        self._check_memory(plan)
        self._check_journal(plan)
        return self.enter(plan)

    def deregister(self, arguments: tuple[bytes, ...], asker: Asker) -> tuple[bytes, ...]:
        """Carry out `dbp.deregister name [instance]` of an administrator (CAT-034)."""
        if not (asker.is_admin or asker.is_proved):
            raise Refusal("not-authorised", "only an administrator removes services")
        name, instance_id = _arguments(arguments)
        instance = self._one_of(self.book.of_name(name), instance_id)
        self.enter(self._planned(instance or _unknown(name, "", asker), On.REAPED, Cause(asker, reason="deregistered")))
        assert instance is not None, "what is unknown was refused"
        removed = {"name": instance.name, "instance": instance.id, "index": self.context.index}
        return (msgspec.json.encode(removed),)

    def enter(self, plan: Plan) -> Instance:
        """Carry out a plan, within the same turn."""
        self._do(plan.cell, plan.instance, plan.cause)
        return plan.instance

    def approval(self, instance: Instance) -> bytes:
        """The body of `OwO` (BEA-014)."""
        context = self.context
        approved = {
            "heartbeat": instance.interval_ns // MILLISECOND,
            "liveness": context.settings.liveness,
            "dbp": 1,
            "epoch": context.epoch,
            "instance": instance.id,
            "index": instance.index,
            "hb": context.beats_port,
        }
        return msgspec.json.encode(approved)

    # Lives

    def move(self, instance: Instance, on: On, reason: str = "") -> None:
        """An input for an instance: do what the table says. Without a row nothing happens, and that is counted."""
        if on in RETURNS and self.stays_away(instance):
            on = On.AFTERWARDS
        cell = None if instance.state is State.NONE else TABLE.get((instance.state, on))
        if cell is None:
            self.context.count("dropped", f"{on.name.lower()} while {instance.state.name.lower()}")
            return
        if on in HEARD and cell.then is not instance.state and self.is_busy:
            self.context.count("dropped", "busy")
            return
        self._do(cell, instance, Cause(reason=reason or REASONS.get(on, "")))

    def leave(self, instance: Instance, reason: str = "left") -> None:
        """It sent a goodbye that can be trusted."""
        self.move(instance, On.LEFT, reason)

    def remove(self, instance: Instance, reason: str) -> None:
        """Remove it from the catalog."""
        self.move(instance, On.REAPED, reason)

    def of_beat(self, name: str, instance_id: str | None, asker_owner: str | None) -> Instance | None:
        """The one instance that a beat of this owner means; None: none, or several (CAT-021, BEA-011).

        An administrator (None) may mean an instance of any owner. Instances that said goodbye do not count. The search
        ends at the second match.
        """
        found = self.book.get(name, instance_id) if instance_id is not None else None
        known = (found,) if found is not None else self.book.any_of_name(name) if instance_id is None else ()
        own = (one for one in known if asker_owner in (None, one.owner) and not self.stays_away(one))
        first = next(own, None)
        return first if next(own, None) is None else None

    def stays_away(self, instance: Instance) -> bool:
        """Whether a beat cannot bring it back: it said goodbye, or its name is unique and another instance has it."""
        if instance.state is not State.INACTIVE:
            return False
        return instance.reason == "left" or (self.context.settings.unique_names and self._has_rival(instance))

    # Memory

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Restore instances from the journal, in one or several pieces (CAT-051).

        Restored instances come before all that this start will number, in the order of their last changes.
        """
        found: dict[tuple[str, str], InstanceKept | None] = {}
        for _, record in entries:
            self._note_end(record)
            memory = memory_of(record, self.context.node)
            if isinstance(memory, StreamEnded):
                self.context.note_before(memory.stream, memory.era, memory.last)
            elif isinstance(memory, InstanceKept):
                found.pop((memory.name, memory.id), None)  # the instance changed last is last
                found[memory.name, memory.id] = memory
            elif isinstance(memory, tuple):
                found[memory] = None
            if type(record) is DamageRecord:  # any instance may be affected: those alive register again (JRN-023)
                found = dict.fromkeys([*((each.name, each.id) for each in self.book.all()), *found])
        for key, kept in found.items():
            self._take_back(key, kept)

    def condense(self) -> Iterator[CoreRecord]:
        """Records from which `restore` makes the same instances."""
        for instance in sorted(self.book.all(), key=lambda instance: instance.index):
            if instance.is_imported:
                continue
            yield kept_of(instance)
        for stream in STREAMS:
            last = self.context.lasts.get(stream)
            end = (self.context.era, last) if last is not None else self.context.befores.get(stream)
            if end is not None:
                yield ended_of(stream, *end)

    def _note_end(self, record: object) -> None:
        if isinstance(record, StreamRecord) and record.stream in STREAMS and record.origin == self.context.node:
            self.context.note_before(record.stream, record.era or 0, record.last)

    def _take_back(self, key: tuple[str, str], kept: InstanceKept | None) -> None:
        before = self.book.get(*key)
        if before is not None:
            self.book.drop(before)
            before.state = State.NONE
            self.watcher().ended(before)
        if kept is not None:
            instance = instance_of(kept)
            instance.net = self.context.settings.net
            self.book.weigh(instance, records.cost_of(instance.record))
            self.book.put(instance)
            self.watcher().began(instance)  # INACTIVE ones too: they are forgotten one day

    # Planning

    def _planned(self, instance: Instance, on: On, cause: Cause) -> Plan:
        """The row for a command. A row that denies raises its Refusal here, before anything is changed."""
        cell = TABLE[instance.state, on]
        if cell.do.startswith("deny_"):
            self._do(cell, instance, cause)
        return Plan(instance, cell, cause)

    def _meant(self, asked: Update, asker: Asker, bound: Instance | None) -> Instance:
        """The instance that an update is for; one in state NONE if none is registered."""
        name = asked.name or (bound.name if bound else None)
        if name is None:
            raise Refusal("missing-field", "which service? no name was given", fields=("name",))
        if bound is not None and bound.name == name:
            if asked.id not in (None, bound.id):
                raise Refusal("immutable-field", "an instance keeps its id", service=name, fields=("id",))
            return bound
        known = self.book.of_name(name)
        if asked.id is not None:
            return self.book.get(name, asked.id) or _unknown(name, asked.id, asker)
        own = [instance for instance in known if owns(asker, instance)]
        if len(own) > 1:
            raise Refusal("missing-field", f"{len(own)} instances: which?", service=name, fields=("id",))
        return (own or known or [_unknown(name, "", asker)])[0]

    def _one_of(self, known: list[Instance], instance_id: str | None) -> Instance | None:
        if instance_id is not None:
            known = [instance for instance in known if instance.id == instance_id]
        if len(known) > 1:
            names = ", ".join(instance.id for instance in known[:10])
            raise Refusal("bad-argument", f"{len(known)} instances: {names}; say which", service=known[0].name)
        return known[0] if known else None

    def _check_room(self, instance: Instance, on: On, asker: Asker) -> None:
        """Refuse a registration beyond the limits."""
        settings, name = self.context.settings, instance.name
        if instance.state is not State.ACTIVE:
            self._check_unique(instance)
        if instance.state is State.NONE:
            if len(self.book) >= settings.instances_max:
                raise Refusal("limit", f"{settings.instances_max} instances are registered", service=name)
            if len(self.book.of_name(name)) >= settings.per_name_max:
                raise Refusal("limit", f"{settings.per_name_max} instances have this name", service=name)
        is_owners = instance.state is not State.NONE and on is not On.CLAIMED
        if not is_owners and self.book.by_owner(asker.owner) >= settings.per_owner_max:
            raise Refusal("limit", f"{settings.per_owner_max} instances are yours", service=name)

    def _check_memory(self, plan: Plan) -> None:
        """Refuse what memory has no room for.

        An instance that takes no more than before is always accepted (FLD-032).
        """
        more = records.cost_of(plan.cause.entry.record) - plan.instance.cost
        if not self._room.has_room(more) and not _is_known(plan):
            self._room.refuse()
            raise Refusal("limit", "the catalog has no memory left for more", service=plan.instance.name)

    def _check_unique(self, instance: Instance) -> None:
        if self.context.settings.unique_names and self._has_rival(instance):
            raise Refusal("name-taken", "another instance has this name", service=instance.name)

    def _check_journal(self, plan: Plan) -> None:
        """Refuse while the journal has no room, unless nothing would change."""
        if not (self.context.is_full or self.is_busy) or _is_known(plan):
            return
        why = (
            "the journal is full: nothing can be kept"
            if self.context.is_full
            else "too much changes at once: try again"
        )
        raise Refusal("limit", why, service=plan.instance.name)

    def _has_rival(self, instance: Instance) -> bool:
        return any(other is not instance and other.is_live for other in self.book.of_name(instance.name))

    # Rows of the table

    def _do(self, cell: Cell, instance: Instance, cause: Cause) -> None:
        getattr(self, cell.do)(instance, cause)
        assert instance.state is cell.then, (cell, instance.state)

    def add(self, instance: Instance, cause: Cause) -> None:
        """Add a new instance."""
        instance.net = self.context.settings.net
        self._describe(instance, cause.entry)
        self._become(instance, State.ACTIVE)
        self.book.put(instance)
        self._announce_begin("register", instance)

    def replace_if_changed(self, instance: Instance, cause: Cause) -> None:
        """It registers again: a change is announced only if its record differs."""
        if not records.is_same(instance.record, cause.entry.record):
            self._describe(instance, cause.entry)
            self.announce("register", instance)
        self.watcher().began(instance)

    def replace(self, instance: Instance, cause: Cause) -> None:
        """It is back, with a new record."""
        self._describe(instance, cause.entry)
        self._become(instance, State.ACTIVE)
        self._announce_begin("register", instance)

    def take_over(self, instance: Instance, cause: Cause) -> None:
        """Another owner takes over an instance whose owner has gone."""
        instance.owner = instance.observed_ip = cause.sender.owner
        instance.bound = b""
        self.replace(instance, cause)

    def merge(self, instance: Instance, cause: Cause) -> None:
        """Change some of its keys; if they are equal, nothing is announced."""
        if records.is_same(instance.record, cause.entry.record):
            return
        interval_ns = instance.interval_ns
        self._describe(instance, cause.entry)
        self.announce("update", instance)
        if instance.interval_ns != interval_ns:
            self.watcher().began(instance)

    def merge_and_return(self, instance: Instance, cause: Cause) -> None:
        """Change some of its keys; the update also shows that it is alive."""
        self.merge(instance, cause)
        self.come_back(instance, cause)

    def return_merged(self, instance: Instance, cause: Cause) -> None:
        """It was INACTIVE, perhaps after a goodbye: it is back, with the new keys."""
        self._describe(instance, cause.entry)
        self.come_back(instance, cause)

    def refresh(self, instance: Instance, cause: Cause) -> None:
        """It is alive, as expected; liveness has noted when."""

    def come_back(self, instance: Instance, cause: Cause) -> None:
        """It was silent, and is heard again."""
        self._become(instance, State.ACTIVE)
        self._announce_begin("active", instance)

    def suspect(self, instance: Instance, cause: Cause) -> None:
        """It is silent for too long, and may be dead."""
        self._become(instance, State.SUSPECT)
        self.announce("suspect", instance, cause.reason)

    def end(self, instance: Instance, cause: Cause) -> None:
        """It is INACTIVE; nothing is pushed to it any more."""
        self._become(instance, State.INACTIVE, cause.reason)
        instance.bound = b""
        self.context.count("evictions", cause.reason)
        self.announce("inactive", instance, cause.reason)
        self.watcher().ended(instance)

    def stay_away(self, instance: Instance, cause: Cause) -> None:
        """It said goodbye: a late beat does not count."""
        self.context.count("dropped", "stays away")

    def forget(self, instance: Instance, cause: Cause) -> None:
        """Remove it from the book."""
        instance.bound = b""
        self.context.count("evictions", cause.reason)
        self.book.drop(instance)
        self.announce("remove", instance, cause.reason)
        instance.state = State.NONE
        self.watcher().ended(instance)

    def deny_unknown(self, instance: Instance, cause: Cause) -> None:
        """Refuse: it is not registered."""
        raise Refusal("not-registered", "service is not registered", service=instance.name)

    def deny_taken(self, instance: Instance, cause: Cause) -> None:
        """Refuse: a live instance of another owner has it."""
        raise Refusal("name-taken", "another owner has this instance", service=instance.name)

    def deny_foreign(self, instance: Instance, cause: Cause) -> None:
        """Refuse: it belongs to another owner."""
        raise Refusal("not-owner", "the instance is another owner's", service=instance.name)

    # What rows share

    def _describe(self, instance: Instance, registration: Registration) -> None:
        instance.record = registration.record
        self.book.weigh(instance, records.cost_of(registration.record))
        instance.interval_ns = registration.interval_ns
        instance.health = self.judge(instance, registration.health)

    def _become(self, instance: Instance, state: State, reason: str = "") -> None:
        if instance.state is not state:
            instance.since = self.context.wall
        instance.state, instance.reason = state, reason

    def announce(self, op: str, instance: Instance, reason: str = "") -> None:
        """Announce the next indexed change, and add its size to this turn."""
        records, now = self.context.records, self.context.now.mono
        before = len(records)
        self.context.announce(op, instance, reason)
        if self._turn_at != now:
            self._turn_at, self._turn_bytes = now, 0
        for record in islice(records, before, None):
            self._turn_bytes += limits.CHANGE_BYTES + (len(record.payload) if isinstance(record, StreamRecord) else 0)

    def _announce_begin(self, op: str, instance: Instance) -> None:
        self.announce(op, instance)
        self.watcher().began(instance)


def owns(asker: Asker, instance: Instance) -> bool:
    """Whether the asker owns the instance."""
    return asker.is_admin or instance.owner == asker.owner


def _is_known(plan: Plan) -> bool:
    """Whether the plan would change nothing."""
    is_active = plan.instance.state is State.ACTIVE
    return is_active and records.is_same(plan.instance.record, plan.cause.entry.record)


def _unknown(name: str, instance_id: str, asker: Asker) -> Instance:
    """An instance in state NONE, for a name that is not registered."""
    instance = Instance(name, instance_id, asker.owner, asker.owner)
    instance.state = State.NONE
    return instance


def _arguments(arguments: tuple[bytes, ...]) -> tuple[str, str | None]:
    """Name and instance from the arguments of a query."""
    try:
        words = [argument.decode() for argument in arguments]
    except UnicodeDecodeError:
        raise Refusal("bad-argument", "name and instance are UTF-8") from None
    if not 1 <= len(words) <= 2 or not words[0]:
        raise Refusal("bad-argument", "a name, and perhaps an instance")
    return words[0], words[1] if len(words) > 1 and words[1] else None
