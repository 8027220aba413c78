"""Planted bugs of the catalog: at the broker, and at who watches it. Nothing imports this but `canaries.load`."""
# ruff: noqa: ARG001, ARG005  # a bug takes what the right method takes, and ignores it

from typing import Any, Final

from weft.base.effects import Persist
from weft.base.now import SECOND, Now
from weft.base.records import DamageRecord
from weft.client.catalog.following import Follower
from weft.cores.catalog.context import Context
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.liveness import DUE, Liveness
from weft.cores.catalog.records import Registration
from weft.cores.catalog.registry import Cause, Registry
from weft.cores.catalog.states import On, State
from weft.sim.canaries import canary
from weft.wire.catalog.messages import HEARTBEAT, Beat

CATALOG: Final = "catalog"


@canary(Context, "take", caught_by="wall", within=3, scenario=CATALOG)
def approved_before_persist(right: Any) -> Any:
    """The broker approves and publishes a change before it writes it."""

    def take(self: Context) -> Any:
        return sorted(right(self), key=lambda effect: isinstance(effect, Persist))

    return take


@canary(Liveness, "_hear_line", caught_by="timely", within=3, scenario=CATALOG)
def deadline_by_the_time_in_the_beat(right: Any) -> Any:
    """An instance is declared dead when the time in its beat, from its own clock, is three intervals old."""

    def hear(self: Liveness, line: Beat, owner: str, peer: bytes, now: Now) -> str:
        answer: str = right(self, line, owner, peer, now)
        instance = self._registry.of_beat(line.name, line.id, owner)
        if (
            instance is not None
            and line.at is not None
            and now.wall - round(line.at * SECOND) > 3 * instance.interval_ns
        ):
            self._registry.move(instance, On.SILENT)
            self._registry.move(instance, On.OVERDUE, "silent")
        return answer

    return hear


@canary(Registry, "restore", caught_by="no_resurrection", within=20, scenario="catalog-damages")
def damaged_catalog_goes_on_as_if_whole(right: Any) -> Any:
    """A broker whose journal lost records lists what stands before them, although it may have been removed there."""

    def restore(self: Registry, entries: Any, now: Now) -> None:
        right(self, [entry for entry in entries if not isinstance(entry[1], DamageRecord)], now)

    return restore


@canary(Liveness, "note_late", caught_by="timely", within=60, scenario=CATALOG)
def pause_not_shifted(right: Any) -> Any:
    """A broker that was paused declares all instances dead that it did not hear during its pause."""
    return lambda self, now: None


@canary(DUE, State.SUSPECT, caught_by="timely", within=10, scenario=CATALOG)
def nobody_is_called_dead(right: Any) -> Any:
    """A silent instance stays suspect for ever."""

    def overdue(self: Liveness, watch: Any) -> None:
        watch.instance.due_at += SECOND

    return overdue


@canary(Liveness, "_hear_goodbye", caught_by="sealed", within=20, scenario=CATALOG)
def forged_goodbye_believed(right: Any) -> Any:
    """A goodbye by datagram ends a registration, wherever it comes from."""

    def goodbye(self: Liveness, instance: Instance, owner: str) -> str:
        self._registry.leave(instance)
        return ""

    return goodbye


@canary(Liveness, "_hear_line", caught_by="sealed", within=20, scenario=CATALOG)
def datagram_registers(right: Any) -> Any:
    """A beat from an unknown instance registers it."""

    def hear(self: Liveness, line: Beat, owner: str, peer: bytes, now: Now) -> str:
        registry: Any = self._registry
        if line.id is not None and self._book.get(line.name, line.id) is None:
            instance = Instance(line.name, line.id, owner, owner)
            registry.add(instance, Cause(registration=Registration(line.name, line.id, {})))
        answer: str = right(self, line, owner, peer, now)
        return answer

    return hear


@canary(Follower, "_compare", caught_by="watched", within=20, scenario=CATALOG)
def watcher_ignores_gaps(right: Any) -> Any:
    """A watcher does not notice that it missed a change."""
    return lambda self, heard, before: True


@canary(Liveness, "_hear_line", caught_by="no_resurrection", within=60, scenario=CATALOG)
def late_beat_revives_who_has_left(right: Any) -> Any:
    """A beat revives any known instance, even one that has said goodbye."""

    def hear(self: Liveness, line: Beat, owner: str, peer: bytes, now: Now) -> str:
        instance = self._book.get(line.name, line.id) if line.id is not None else None
        if instance is not None and instance.state is State.INACTIVE and line.word == HEARTBEAT:
            registry: Any = self._registry
            registry.come_back(instance, Cause())
        answer: str = right(self, line, owner, peer, now)
        return answer

    return hear


@canary(Registry, "restore", caught_by="no_resurrection", within=5, scenario="catalog-removals")
def removal_forgotten_over_a_restart(right: Any) -> Any:
    """After a restart, instances that had been removed are listed again."""

    def restore(self: Registry, entries: Any, now: Now) -> None:
        remaining = [
            (lsn, record) for lsn, record in entries if getattr(record, "attributes", {}).get("op") != "remove"
        ]
        right(self, remaining, now)

    return restore
