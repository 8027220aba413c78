"""Active checks: the broker itself tests whether a service works (BEA-024).

    {"tcp": "10.0.0.5:80"}     it accepts connections; empty: at its calling address
    {"http": "/health"}        it answers a GET with one of `status` (200); a path, or a whole URL
    {"zmq": ""}                it answers a ping
    command                    by the broker's file only: exit status 0 is passing, 1 warning, all else critical

Each has `interval` and `timeout`, and `fall` and `rise`: the number of equal results in a row that changes the check's
health. The health of an instance is the worst of its checks and of the health that it reports itself; it never affects
the instance's state. A check never goes to an address that the service only claims and that the broker has not
observed. The number of checks at once is bounded; a check that has to wait is late, and that is counted.
"""

import heapq
from collections import deque
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from weft.base.endpoints import endpoint_of, host_of, is_address
from weft.base.now import SECOND, Now
from weft.cores.catalog import limits
from weft.cores.catalog.book import Book
from weft.cores.catalog.context import Context
from weft.cores.catalog.filters import glob
from weft.cores.catalog.instances import Change, Instance
from weft.cores.catalog.messages import CheckDone, RunCheck
from weft.cores.catalog.records import HEALTHS, calling_address
from weft.cores.catalog.registry import Registry

RANK: Final = {health: rank for rank, health in enumerate(HEALTHS)}
KINDS: Final = ("tcp", "http", "zmq")
"""Kinds that a record may ask for."""
PASSING, UNKNOWN, CRITICAL = "passing", "unknown", "critical"
Seconds = Annotated[float, Meta(ge=1, le=86_400)]
Count = Annotated[int, Meta(ge=1, le=100)]


class Wanted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of the `checks` of a record."""

    tcp: str | None = None
    http: str | None = None
    zmq: str | None = None
    status: Annotated[tuple[int, ...], Meta(max_length=16)] = (200,)
    interval: Seconds = 10.0
    timeout: Annotated[float, Meta(gt=0, le=30)] = 5.0
    fall: Count = 3
    rise: Count = 2


class Check:
    """One check of one instance, with its last results."""

    __slots__ = ("fall", "health", "instance", "interval_ns", "is_over", "rise", "row", "run", "seen")

    def __init__(self, instance: Instance, run: RunCheck, interval_ns: int, fall: int, rise: int) -> None:
        self.instance, self.run = instance, run
        self.interval_ns, self.fall, self.rise = interval_ns, fall, rise
        self.health, self.seen, self.row = UNKNOWN, UNKNOWN, 0
        """The check's health; the last result, and how many equal results came in a row."""
        self.is_over = False

    def judge(self, outcome: str) -> bool:
        """Add a result; returns whether the check's health changed."""
        is_same = (outcome == PASSING) == (self.seen == PASSING) and self.seen != UNKNOWN
        self.row = self.row + 1 if is_same else 1
        self.seen = outcome
        before = self.health
        if self.row >= (self.rise if outcome == PASSING else self.fall):
            self.health = outcome
        return before != self.health


class Checks:
    """All checks of all instances of this broker."""

    def __init__(self, context: Context, book: Book, registry: Registry) -> None:
        self.context, self.book, self.registry = context, book, registry
        self._configured = [(glob(each.service), each) for each in context.settings.checks]
        self._allowed = [ip_network(network, strict=False) for network in context.settings.probe_allow]
        self._of: dict[tuple[str, str], list[Check]] = {}
        self._declared: dict[tuple[str, str], Any] = {}
        """The `checks` of each record for which checks were made."""
        self._heap: list[tuple[int, int, Check]] = []
        self._waiting: deque[Check] = deque()
        self._running: dict[int, Check] = {}
        self._serial = 0
        self._is_open = False
        registry.judge = self.health_of
        context.listeners.append(self.changed)

    def open(self, now: Now) -> None:
        """Start the checks of restored instances."""
        self._is_open = True
        for instance in self.book.all():
            if instance.is_live:
                self._follow(instance)

    def changed(self, change: Change) -> None:
        """An instance was added, changed or removed."""
        instance = change.instance
        if not instance.is_imported:
            if change.op == "remove" or not instance.is_live:
                self._forget(instance.key)
            elif self._is_open and change.op in ("register", "update", "active"):
                self._follow(instance)

    def health_of(self, instance: Instance, own: str) -> str:
        """The worst of its checks and of `own`, the health that it reports itself.

        `own` is `unknown` if it reports none.
        """
        checks = [check.health for check in self._of.get(instance.key, ())]
        if not checks:
            return own
        return max([*checks, *([own] if own != UNKNOWN else [])], key=RANK.__getitem__)

    # Which

    def _follow(self, instance: Instance) -> None:
        declared = (instance.record.get("checks"), _place_of(instance, self.context.settings.rewrite))
        if self._declared.get(instance.key) == declared:
            return
        self._forget(instance.key)
        made = list(self._checks_of(instance))[: limits.CHECKS_PER_INSTANCE]
        if made:
            self._of[instance.key], self._declared[instance.key] = made, declared
        for check in made:
            first = round(self.context.chance.random() * min(check.interval_ns, SECOND))
            self._arm(check, self.context.now.mono + first)

    def _forget(self, key: tuple[str, str]) -> None:
        for check in self._of.pop(key, ()):
            check.is_over = True
        self._declared.pop(key, None)

    def _checks_of(self, instance: Instance) -> Iterator[Check]:
        place = _place_of(instance, self.context.settings.rewrite)
        for fits, configured in self._configured:
            if fits(instance.name):
                made = RunCheck(
                    0, configured.kind, configured.target, configured.timeout_ns, configured.status, configured.command
                )
                run = made if made.command else self._located(made, place)
                if run is not None:
                    yield Check(instance, run, configured.interval_ns, configured.fall, configured.rise)
        for declared in instance.record.get("checks") or ():
            check = self._said_check(instance, declared, place)
            if check is not None:
                yield check

    def _said_check(self, instance: Instance, declared: Any, place: str) -> Check | None:
        try:
            wanted = msgspec.convert(declared, Wanted)
        except (msgspec.ValidationError, RecursionError):
            wanted = None
        kinds = [kind for kind in KINDS if wanted is not None and getattr(wanted, kind) is not None]
        if wanted is None or len(kinds) != 1:
            self.context.count("checks", "refused")
            return None
        target = getattr(wanted, kinds[0])
        run = self._located(RunCheck(0, kinds[0], target, round(wanted.timeout * SECOND), wanted.status), place)
        if run is None or not self._may(instance, run):
            self.context.count("checks", "not-allowed")
            return None
        return Check(instance, run, round(wanted.interval * SECOND), wanted.fall, wanted.rise)

    def _located(self, run: RunCheck, place: str) -> RunCheck | None:
        """The check with the address of the service, where it names none."""
        target = run.target
        if run.kind == "http" and (not target or target.startswith("/")):
            target = f"http://{place}{target or '/'}" if place else ""
        elif not target:
            target = place
        return msgspec.structs.replace(run, target=target) if target else None

    def _may(self, instance: Instance, run: RunCheck) -> bool:
        """Whether the target is where the service was observed, or in a network that may be probed (BEA-016)."""
        try:
            host = _host_of(run)
            address = ip_address(host)
        except ValueError:  # no address, or a host name, which may resolve to any address
            return False
        return host == instance.observed_ip or any(address in network for network in self._allowed)

    # When

    def _arm(self, check: Check, at: int) -> None:
        self._serial += 1
        heapq.heappush(self._heap, (at, self._serial, check))

    def wake(self, now: Now) -> None:
        """Start the checks that are due, as far as there is room."""
        while self._heap and self._heap[0][0] <= now.mono:
            check = heapq.heappop(self._heap)[2]
            if not check.is_over:
                self._waiting.append(check)
        self._begin()

    def _begin(self) -> None:
        while self._waiting and len(self._running) < limits.CHECKS_AT_ONCE:
            check = self._waiting.popleft()
            if not check.is_over:
                self._serial += 1
                self._running[self._serial] = check
                self.context.perform(msgspec.structs.replace(check.run, id=self._serial))
        if self._waiting:
            self.context.count("checks", "late")

    def deadline(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def done(self, order: CheckDone, now: Now) -> None:
        """A check has its result."""
        check = self._running.pop(order.id, None)
        if check is None:
            return
        self.context.count("checks", order.outcome)
        if not check.is_over:
            self._arm(check, now.mono + check.interval_ns)
            if check.judge(order.outcome):
                self._tell(check.instance)
        self._begin()

    def _tell(self, instance: Instance) -> None:
        own = instance.record.get("health", UNKNOWN)
        health = self.health_of(instance, own if own in RANK else UNKNOWN)
        if health != instance.health:
            instance.health = health
            self.registry.announce("health", instance)


def _host_of(run: RunCheck) -> str:
    """The host that a check goes to; empty: none. ValueError for an invalid URL."""
    if run.kind != "http":
        return host_of(run.target) if is_address(run.target) else ""
    parts = urlsplit(run.target)
    is_plain = parts.scheme == "http" and all(letter > " " for letter in run.target)
    return parts.hostname or "" if is_plain else ""


def _place_of(instance: Instance, rewrite: Any) -> str:
    address = calling_address(instance.record, instance.observed_ip, rewrite)
    return endpoint_of(address.ip, address.port) if address is not None else ""
