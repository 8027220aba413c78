"""Watchers: each is a position in the journal, not a queue (CLN-010, CLN-011).

    SNAPSHOT   entries are sent as they stand; changes meanwhile wait in the journal
    BEHIND     changes are read from the journal, behind the watcher's position
    LIVE       changes are sent as soon as they are in the journal

A watcher that does not read falls behind, and needs no more memory than before. Changes made during its snapshot are
sent only if they are still the latest of their entry, so that no older value follows a newer one.
"""

from collections import deque
from collections.abc import Container
from enum import Enum
from typing import Any, Final

from msgspec import UNSET

from weft.base.changes import Event, Path
from weft.base.records import Entry, Record
from weft.base.spool import FetchRecords, Journaled, RecordsFetched
from weft.cores.kit.refusals import Refusal
from weft.cores.store import limits, memory
from weft.cores.store.streams import Client, Depths, Desk, EntryStream, flag, weight
from weft.cores.store.tree import cost_of
from weft.wire.store.clients import Request
from weft.wire.store.path import pack_path

CORE: Final = "store"
MODES: Final = ("all", "latest")


class Phase(Enum):
    SNAPSHOT = "shows entries as they stand"
    BEHIND = "reads the journal"
    LIVE = "has shown everything"


class Place:
    """The positions of all watchers in the journal, and those that wait for records."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.last_lsn = 0
        """Lsn of the last store record, as far as known; 0: none was written in this start."""
        self._last_shown: tuple[int, int] | None = None
        """Lsn and tock of the last change of this start that readers see."""
        self._by_path: dict[bytes, dict[WatchStream, None]] = {}
        self._waiting: dict[WatchStream, None] = {}
        self._early: dict[WatchStream, None] = {}
        """Watchers that began, or ended a snapshot, in this turn: the records of the turn are not in the journal yet.
        """
        self._is_fetching = False
        self.ahead_bytes = 0
        """Bytes of memory held for watchers that have not read it."""
        self.room = desk.context.budget.part("watchers", limits.BACKLOG_PERCENT, lambda: self.ahead_bytes)

    @property
    def pending(self) -> int:
        """Number of changes of this turn that are merged but not yet in the journal."""
        return len(self.changes(self.desk.context.records))

    @property
    def lag(self) -> int:
        """How many records the journal has behind the position of the watcher that is furthest behind (ADM-030)."""
        behind = (one for here in self._by_path.values() for one in here if one.phase is not Phase.LIVE)
        return max((self.last_lsn - one.after for one in behind), default=0)

    def changes(self, records: "list[Record] | tuple[Record, ...]") -> list[Event]:
        """The changes in this turn's records that readers see."""
        names = self.desk.replica.names
        found = (shown(record, names) for record in records)
        return [event for event in found if event is not None]

    def add(self, watcher: "WatchStream") -> None:
        """Add a watcher."""
        self._by_path.setdefault(pack_path(watcher.top), {})[watcher] = None

    def remove(self, watcher: "WatchStream") -> None:
        """Remove a watcher."""
        here = self._by_path.get(pack_path(watcher.top), {})
        here.pop(watcher, None)
        if not here:
            self._by_path.pop(pack_path(watcher.top), None)
        self._waiting.pop(watcher, None)
        self._early.pop(watcher, None)

    def hold(self, watcher: "WatchStream") -> None:
        """Notify the watcher when the records of this turn are in the journal."""
        self._early[watcher] = None

    def is_held(self, watcher: "WatchStream") -> bool:
        return watcher in self._early

    def watchers(self, path: Path) -> "list[WatchStream]":
        """The watchers of this entry. O(path + watchers)."""
        found: list[WatchStream] = []
        key = b""
        for depth in range(len(path) + 1):
            key += pack_path(path[depth - 1 : depth]) if depth else b""
            found += [watcher for watcher in self._by_path.get(key, ()) if watcher.depths.has(len(path) - depth)]
        return found

    def journaled(self, order: Journaled) -> "list[WatchStream]":
        """Send durable changes to watchers that are up to date; returns those that finished a snapshot by it."""
        last_lsn = order.first_lsn + len(order.records) - 1
        early, self._early = list(self._early), {}
        for watcher in early:
            watcher.place_at(order.first_lsn - 1)
        if self._by_path:
            self._show(order)
        self.last_lsn = last_lsn
        self._note_last(order)
        for watcher in early:
            watcher.settle(last_lsn)
        return early

    def _note_last(self, order: Journaled) -> None:
        names = self.desk.replica.names
        for index in range(len(order.records) - 1, -1, -1):
            tock = tock_shown(order.records[index], names)
            if tock is not None:
                self._last_shown = (order.first_lsn + index, tock)
                return

    def position(self, lsn: int) -> list[Any]:
        """The position of a watcher that has seen everything up to `lsn`, in a form that is specific to this journal.

        It is the last change, if there was one in this start, else the start itself: the next start has to begin with a
        snapshot.
        """
        here = self._last_shown
        if here is None or here[0] > lsn:
            here = (lsn, -self.desk.context.settings.boot)
        return [self.desk.context.name, *here]

    def _show(self, order: Journaled) -> None:
        names = self.desk.replica.names
        for lsn, record in enumerate(order.records, order.first_lsn):
            event = shown(record, names)
            if event is not None:
                for watcher in self.watchers(event.path):
                    watcher.hear(lsn, event)

    # Reading

    def want(self, watcher: "WatchStream") -> None:
        """A watcher that is behind can accept more."""
        self._waiting[watcher] = None
        self._fetch()

    def _fetch(self) -> None:
        if self._is_fetching or not self._waiting:
            return
        self._is_fetching = True
        after = next(iter(self._waiting)).after
        self.desk.context.perform(FetchRecords(CORE, after, limits.WATCH_FETCH_BYTES))

    def fetched(self, order: RecordsFetched) -> "list[WatchStream]":
        """Journal records: sent to all that wait for them; returns those."""
        self._is_fetching = False
        readers = [watcher for watcher in self._waiting if watcher.after == order.after]
        for watcher in readers:
            del self._waiting[watcher]
            watcher.read(order)
        self._fetch()
        return readers


class WatchStream(EntryStream):
    """All changes below a path, from now on, from a position, or from a snapshot on: `watch`."""

    def __init__(self, desk: Desk, place: Place, client: Client, request: Request, top: Path) -> None:
        super().__init__(desk, client, request.seq, top, 0 if request.nchain is UNSET else request.nchain)
        mode = "all" if request.mode is UNSET else request.mode
        if mode not in MODES:
            raise Refusal("bad-request", "mode: all or latest")
        if not _is_position(request.since):
            raise Refusal("bad-request", "`since` is a position that a watch has told")
        self._place, self.depths = place, Depths.of(request)
        self._is_latest = mode == "latest"
        self._has_positions = request.mode is not UNSET or request.since is not UNSET
        self._has_tombstones = flag(request.empty) or isinstance(request.from_server, str)
        self.phase = Phase.LIVE
        self.after = place.last_lsn
        """Everything up to this lsn was sent, or is in `_ahead`; without meaning while LIVE."""
        self._skip = 0
        """How many changes of the turn in which it began were made before it."""
        self._settled = 0
        """Up to this lsn, a change is sent only if it is still the latest of its entry."""
        self._expected: tuple[int, int] | None = None
        """Lsn and tock of the change that the client says it saw last."""
        self._is_awaited = True
        """Whether `uptodate` still has to be sent."""
        self._ahead: deque[tuple[int, Event | None]] = deque()
        """The few changes that the client has not read; None: `uptodate`."""
        self.state("start")
        place.add(self)
        self._begin(request)

    def _begin(self, request: Request) -> None:
        if isinstance(request.since, list):
            self._resume(request.since)
        elif flag(request.fetch):
            self._snapshot()
        else:
            self._place.hold(self)
            self._skip = self._place.pending
            self._is_awaited = self._has_positions

    def _resume(self, since: list[Any]) -> None:
        """Continue after a position; a position of another node is not valid here."""
        name, lsn, tock = since
        if name in self.desk.replica.names:
            self.phase, self.after, self._expected = Phase.BEHIND, lsn - 1, (lsn, tock)
        else:
            self._gap()

    def _gap(self) -> None:
        """The following records no longer exist: tell the client, and send everything again."""
        self.state("gap")
        self._forget_ahead()
        self._snapshot()

    def _snapshot(self) -> None:
        self.phase, self._is_awaited, self._expected = Phase.SNAPSHOT, True, None
        self.after, self._skip = self._place.last_lsn, self._place.pending
        self._place.hold(self)
        self._events = self.desk.replica.tree.walk(self.top, self.depths.least, self.depths.most)

    def stop(self) -> None:
        self.leave()
        super().stop()

    def leave(self) -> None:
        """The client is gone."""
        self._place.remove(self)
        self._forget_ahead()

    # Items the client has not read

    def _put_ahead(self, lsn: int, event: Event | None) -> None:
        self._ahead.append((lsn, event))
        self._place.ahead_bytes += cost_of(event)

    def _take_ahead(self) -> tuple[int, Event | None]:
        lsn, event = self._ahead.popleft()
        self._place.ahead_bytes -= cost_of(event)
        return lsn, event

    def _forget_ahead(self) -> None:
        while self._ahead:
            self._take_ahead()

    # Saying

    @property
    def is_ready(self) -> bool:
        if self.room <= 0:
            return False
        return bool(self._ahead) or self.phase is Phase.SNAPSHOT or (self.phase is Phase.LIVE and self._is_awaited)

    def go_on(self, steps: int) -> int:
        used = 0
        while self._ahead and self.room > 0 and used < steps:
            self._tell(*self._take_ahead())
            used += 1
        if self.phase is Phase.SNAPSHOT:
            return used + self._go_round(steps - used)
        if self.phase is Phase.BEHIND and not self._ahead and self.room > 0:
            self._place.want(self)
        elif self.phase is Phase.LIVE and self._is_awaited and not self._ahead and self.room > 0:
            self._tell_uptodate(self._place.last_lsn)
        return used

    def _go_round(self, steps: int) -> int:
        """Send a piece of the snapshot."""
        used = 0
        while used < steps and self.room > 0:
            event = next(self._events, None)
            if event is None:
                self._end_snapshot()
                break
            used += weight(event)
            if event.value is not None or self._has_tombstones:
                self.item(event)
        return used

    def _end_snapshot(self) -> None:
        """The snapshot is complete; changes made meanwhile have to be read."""
        place = self._place
        is_first_turn = place.is_held(self) and place.pending == self._skip
        if is_first_turn or (not place.pending and self.after >= place.last_lsn):
            self.phase = Phase.LIVE
            if self.room > 0:
                self._tell_uptodate(place.last_lsn)
            return
        self.phase, self._settled = Phase.BEHIND, place.last_lsn
        if place.pending:
            place.hold(self)  # its end position is known when this turn is in the journal
        else:
            place.want(self)

    def _tell(self, lsn: int, event: Event | None) -> None:
        if event is None:
            self._tell_uptodate(lsn)
        elif self._has_positions:
            self.item(event, position=[self.desk.context.name, lsn, event.tock])
        else:
            self.item(event)

    def _tell_uptodate(self, lsn: int) -> None:
        self._is_awaited = False
        more = {"position": self._place.position(lsn)} if self._has_positions and lsn else {}
        self.state("uptodate", **more)

    # Hearing

    def place_at(self, lsn: int) -> None:
        """The records of the turn in which it began follow this lsn."""
        if self.phase is not Phase.BEHIND or not self.after:
            self.after = lsn

    def settle(self, last_lsn: int) -> None:
        """The turn in which it began, or its snapshot ended, is in the journal up to this lsn."""
        self._skip = 0
        if self.phase is Phase.BEHIND:
            self._settled = max(self._settled, last_lsn)
            self._place.want(self)

    def hear(self, lsn: int, event: Event) -> None:
        """A change is in the journal."""
        if self._skip:
            self._skip -= 1
            if self.phase is Phase.SNAPSHOT:
                self.after = lsn
        elif self.phase is Phase.LIVE:
            self._take(lsn, event)

    def _take(self, lsn: int, event: Event) -> bool:
        """Send it, hold it, or leave it in the journal (returns False)."""
        if not self._ahead and self.room > 0:
            self._tell(lsn, event)
        elif len(self._ahead) < limits.WATCH_AHEAD and self._place.room.has_room(cost_of(event)):
            self._put_ahead(lsn, event)
        else:
            self.phase, self.after = Phase.BEHIND, lsn - 1
            return False
        return True

    def read(self, order: RecordsFetched) -> None:
        """Continue with records of the journal."""
        if not self._is_whole(order):
            self._gap()
            return
        begin = self._expected[0] if self._expected else 0
        self._expected = None
        names = self.desk.replica.names
        for lsn, record in order.entries:
            event = shown(record, names)
            if event is None or lsn <= begin or not self._wants(lsn, event):
                continue
            if not self._take(lsn, event):
                return
        self.after = order.upto
        if self.after < self._place.last_lsn or self._place.is_held(self):
            if not self._ahead and self.room > 0:
                self._place.want(self)
        else:
            self.phase = Phase.LIVE
            if self._is_awaited and self._ahead:
                self._is_awaited = False
                self._put_ahead(self.after, None)

    def _is_whole(self, order: RecordsFetched) -> bool:
        """Whether nothing is missing after the position, and the position belongs to this journal."""
        entries: tuple[Entry, ...] = order.entries
        if self._expected is not None and not self._is_expected(entries):
            return False
        if [lsn for lsn, _ in entries] != list(range(order.after + 1, order.upto + 1)):
            return False
        return order.upto > order.after or order.after >= self._place.last_lsn

    def _is_expected(self, entries: tuple[Entry, ...]) -> bool:
        assert self._expected is not None, "asked only where a position was given"
        lsn, tock = self._expected
        if not entries or entries[0][0] != lsn:
            return False
        if tock < 0:
            return -tock == self.desk.context.settings.boot
        event = shown(entries[0][1], self.desk.replica.names)
        return not tock or (event is not None and event.tock == tock)

    def _wants(self, lsn: int, event: Event) -> bool:
        path, top = event.path, self.top
        if len(path) < len(top) or pack_path(path[: len(top)]) != pack_path(top):
            return False
        if not self.depths.has(len(path) - len(top)):
            return False
        if lsn > self._settled and not self._is_latest:
            return True
        current = self.desk.replica.tree.get(path)
        return current.chain.head == event.chain.head if current else event.value is None


def shown(record: Record, names: Container[str]) -> Event | None:
    """What a record shows to watchers: a change that became the latest of its entry, or a removed entry."""
    event = memory.shown(record, names)
    if event is None and (stale := memory.stale_of(record)) is not None:
        return Event(stale.chain, stale.tock, stale.path, None)
    return event


def tock_shown(record: Record, names: Container[str]) -> int | None:
    """The tock of what it shows; None: it shows nothing."""
    tock = memory.tock_shown(record, names)
    if tock is None and (stale := memory.stale_of(record)) is not None:
        return stale.tock
    return tock


def _is_position(since: Any) -> bool:
    """Whether it is a valid position, or none."""
    if since is UNSET or since is None:
        return True
    return isinstance(since, list) and list(map(type, since)) == [str, int, int] and since[1] > 0
