"""The service's connection to its broker (CAT-023): it registers, beats, and registers again."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from weft.base.chance import Chance
from weft.base.effects import Effect, SendFailed, Source
from weft.base.now import MILLISECOND, Now
from weft.base.records import CoreRecord, Entry
from weft.cores.kit.outbox import Outbox
from weft.cores.kit.timers import earliest
from weft.cores.service import approvals, limits
from weft.cores.service.beating import Beating
from weft.cores.service.brokers import Brokers, Voice
from weft.cores.service.messages import (
    BEACONS,
    BEATS,
    BROKER,
    MONITOR,
    Denied,
    Dropped,
    Lost,
    PathChanged,
    Registered,
    ServiceSettings,
    Start,
    Stop,
    Update,
    Updated,
)
from weft.cores.service.states import TABLE, On, State
from weft.cores.service.taps import Taps
from weft.cores.service.updating import Updates
from weft.wire.catalog import beats, times
from weft.wire.catalog.messages import (
    APPROVED,
    AWK,
    DENIED,
    DENIED_TOO,
    DISCONNECT,
    HEARTBEAT,
    REGISTRATION,
    TAP,
    UPDATE,
    Beacon,
    Beat,
    Beats,
    Message,
)

PASSING: Final = frozenset({"name-taken", "limit"})
"""Refusals that may pass with time (CAT-023)."""
WHYS: Final = {On.GOODBYE: "told", On.SILENCE: "silent", On.RESTARTED: "restarted", On.LOST: "lost"}


class Service:
    """One instance of a service, and its one connection to one broker."""

    name = "service"

    def __init__(self, settings: ServiceSettings, chance: Chance) -> None:
        self.settings = settings
        self.state = State.STOPPED
        self.instance = settings.id
        """Its id at the broker; empty: not known yet."""
        self.record: dict[str, Any] = {"heartbeat": settings.interval_ms, **settings.record}
        """The registered record, with every acknowledged change; without name and id."""
        self._chance = chance
        self._outbox = Outbox()
        self._brokers = Brokers(settings)
        self.taps = Taps(settings.name, self._outbox)
        """Copies of messages, for brokers that ask for them."""
        self._beating = Beating(chance, settings.beacon_ns)
        self._updates = Updates()
        self._tag = 0
        self._act_at: int | None = None
        """When to connect, or to stop waiting for an answer."""
        self._retries = 0
        self._seq = 0
        self._beat_key = b""
        self._is_exact = False
        """Whether the broker answers every beat."""

    # The seven verbs

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """A service persists nothing: every registration carries everything."""

    def condense(self) -> Iterable[CoreRecord]:
        return ()

    def receive(self, message: Message | Beacon | Beats, source: Source, now: Now) -> None:
        """A message of the broker; one that is not expected changes nothing."""
        before = self._beating.over_tcp
        if source.channel == BEACONS and isinstance(message, Beacon):
            self._hear_beacon(message, source.peer.decode("ascii", "replace"), now)
        elif source.channel == BEATS and isinstance(message, Beats):
            self._hear_beats(message, now)
        elif source.channel == MONITOR and isinstance(message, Message):
            self.taps.hear_monitor(message, source.peer, now)
        elif source.channel == BROKER and isinstance(message, Message) and self._is_connected(source):
            self._hear_broker(message, now)
        self._tell_path(before)

    def command(self, order: Start | Update | Stop | Lost | SendFailed, now: Now) -> None:
        """An order of the program. If it could not be sent, that is noticed when no answer comes, or counted."""
        if isinstance(order, Start):
            self._turn(On.STARTED, None, now)
        elif isinstance(order, Stop):
            self._turn(On.STOPPED, None, now)
        elif isinstance(order, Update):
            self._note_update(order, now)
        elif isinstance(order, Lost) and order.tag == self.tag and not self._is_exact:
            self._turn(On.LOST, None, now)
        elif isinstance(order, SendFailed):
            self.taps.failed(order)

    def wake(self, now: Now) -> None:
        """Connect, give up, or beat, as due."""
        self.taps.wake(now)
        if self.state is State.UP:
            self._look_after(now)
        elif self._act_at is not None and now.mono >= self._act_at:
            if self.state is State.REGISTERING:
                self._turn(On.SILENCE, None, now)
            elif self._brokers.choose(now):
                self._turn(On.FOUND, None, now)

    def deadline(self) -> int | None:
        if self.state is State.UP:
            return earliest(self._beating.due_at, self._updates.due_at, self.taps.deadline())
        return self._act_at

    def effects(self) -> list[Effect]:
        return self._outbox.take()

    @property
    def tag(self) -> bytes:
        """Tag of the current connection: messages over an older one are ignored."""
        return b"%d" % self._tag

    # Messages

    def _hear_beacon(self, beacon: Beacon, ip: str, now: Now) -> None:
        voice = self._brokers.hear(beacon, ip, now)
        if voice in (Voice.OURS, Voice.BACK):
            self._beating.hear(now)
            if voice is Voice.BACK:
                self._turn(On.RETURNED, None, now)
        elif voice is Voice.RESTARTED:
            self._turn(On.RESTARTED, None, now)
        elif voice is Voice.OTHER and self.state is State.IDLE and self._brokers.choose(now):
            self._turn(On.FOUND, None, now)

    def _hear_beats(self, heard: Beats, now: Now) -> None:
        if any(line.word == AWK and line.name == self.settings.name for line in heard.lines):
            self._beating.hear(now)

    def _is_connected(self, source: Source) -> bool:
        """Whether it came over the current connection."""
        return source.peer == self.tag and self.state in (State.REGISTERING, State.UP)

    def _hear_broker(self, message: Message, now: Now) -> None:
        self._beating.hear_answer(now)
        if (hear := _HEARS.get(message.command)) is not None:
            hear(self, message, now)

    def _hear_approval(self, message: Message, now: Now) -> None:
        self._turn(On.APPROVED, message, now)

    def _hear_denial(self, message: Message, now: Now) -> None:
        why = approvals.refusal(message)
        if self.state is State.REGISTERING:
            self._turn(On.PUT_OFF if why.code in PASSING else On.REFUSED, message, now)
        elif why.code == "not-registered":  # the broker has forgotten us; the change is sent again later
            self._turn(On.GOODBYE, message, now)
        elif self._updates.is_under_way:
            self._answer(self._updates.end(), Denied(why.code, why.text, why.fields))
            self._say_update(now)

    def _hear_goodbye(self, message: Message, now: Now) -> None:
        self._turn(On.GOODBYE, message, now)

    def _hear_heartbeat(self, message: Message, now: Now) -> None:
        """The broker misses our datagrams, or receives them again (BEA-018); both are acknowledged (BEA-019)."""
        self._say(AWK, now)
        if self.state is not State.UP:
            return
        if message.body[2:3] == (b"udp",):
            self._beating.release()
        else:
            self._beating.ask(now)

    def _hear_acknowledgement(self, message: Message, now: Now) -> None:
        done = self._updates.acknowledge()
        if done is None:
            return
        self.record.update(done.changes)
        for key in [key for key, value in done.changes.items() if value is None]:
            del self.record[key]
        if "heartbeat" in done.changes:
            self._beating.hurry(self._interval_ms * MILLISECOND, now)
        self._answer(done, Updated())
        self._say_update(now)

    def _hear_tap(self, message: Message, now: Now) -> None:
        if self.state is State.UP:
            self.taps.hear(message, self._brokers.endpoint, self.instance, now)

    # Actions of the table

    def seek(self, _: Message | None, now: Now) -> None:
        """Connect as soon as a broker is known."""
        self._act_at = now.mono if self._brokers.choose(now) else None

    def register(self, _: Message | None, now: Now) -> None:
        """Send the whole registration on a new socket."""
        self._tag += 1
        self._updates.begin()
        record = {"name": self.settings.name, **self.record}
        if self.settings.id:
            record["id"] = self.settings.id
        if not self._brokers.is_heard(now, limits.BEACONS_LOST_MAX * self.settings.beacon_ns):
            record["beacon"] = False  # then the broker answers our datagrams (BEA-020)
        self._outbox.connect(BROKER, self._brokers.endpoint, self.tag)
        self._say(REGISTRATION, now, msgspec.json.encode(record))
        self._act_at = now.mono + limits.ANSWER_NS

    def take_up(self, message: Message, now: Now) -> None:
        """The broker has approved: beat as agreed from now on."""
        agreed = approvals.approval(message, self._interval_ms)
        self._brokers.approve(agreed.epoch, agreed.hb)
        self.instance = agreed.instance or self.settings.id
        self._beat_key, self._is_exact = agreed.beat_key, agreed.is_broker
        self._act_at, self._retries = None, 0
        interval_ns = agreed.interval_ms * MILLISECOND
        has_port = self._brokers.hb > 0
        self._beating.begin(interval_ns, agreed.liveness, now, is_exact=agreed.is_broker, has_port=has_port)
        self._outbox.tell(Registered(self._brokers.endpoint, self.instance, self._brokers.epoch, agreed.interval_ms))
        self._say_update(now)

    def put_off(self, message: Message, now: Now) -> None:
        """Refused for now."""
        self._tell_denied(message, is_final=False)
        self._let_go(now)
        self._back_off(now)

    def give_up(self, message: Message, now: Now) -> None:
        """Refused for good: a person has to change the record or the broker."""
        self._tell_denied(message, is_final=True)
        self._let_go(now)
        self._act_at = None
        self._answer_all("not-registered", "the service was refused meanwhile")

    def try_later(self, message: Message | None, now: Now) -> None:
        """No usable answer: try the next broker, if there are several."""
        if message is None:
            self._brokers.turn(now)
        self._let_go(now)
        self._back_off(now)

    def come_back(self, _: Message | None, now: Now) -> None:
        """Reconnect on a new socket, at a random instant within an interval, as all of the fleet reconnects (BEA-021)."""
        self._let_go(now)
        interval_ns = self._beating.interval_ns or self._interval_ms * MILLISECOND
        self._act_at = now.mono + round(self._chance.random() * min(interval_ns, limits.RETURN_NS_MAX))

    def hasten(self, _: Message | None, now: Now) -> None:
        """The broker is back: do not wait long."""
        waits_until, self._retries = self._act_at, 0
        self.come_back(None, now)
        if waits_until is not None and self._act_at is not None:
            self._act_at = min(self._act_at, waits_until)

    def part(self, _: Message | None, now: Now) -> None:
        """Say goodbye on the connection."""
        self._say(DISCONNECT, now, *self._who)
        self.end(None, now)

    def leave(self, _: Message | None, now: Now) -> None:
        """Say goodbye without a connection."""
        if self.instance:
            self._say_beat(DISCONNECT, now)
        self.end(None, now)

    def end(self, _: Message | None, now: Now) -> None:
        """Nothing more."""
        self._let_go(now)
        self._act_at = None
        self._answer_all("closed", "the service was stopped meanwhile")

    # While connected

    def _look_after(self, now: Now) -> None:
        deadline = self.deadline()
        if deadline is not None and now.mono - deadline > limits.PAUSE_NS:
            self._beating.excuse(now.mono - deadline)
        before = self._beating.over_tcp
        if self._beating.is_silent(now):
            self._turn(On.SILENCE, None, now)
        elif self._updates.due_at is not None and now.mono >= self._updates.due_at:
            self._miss_update(now)
        else:
            self._beating.listen(now)
            if self._beating.is_due(now):
                self._beat(now)
        self._tell_path(before)

    def _beat(self, now: Now) -> None:
        if self._brokers.hb:
            self._say_beat(HEARTBEAT, now)
        if self._beating.over_tcp and not self._updates.is_under_way:
            self._updates.owe()
            self._say(HEARTBEAT, now, *self._who)

    def _note_update(self, order: Update, now: Now) -> None:
        if self.state in (State.STOPPED, State.DENIED):
            self._answer(order, Denied("not-registered", "the service does not run"))
        elif self._updates.is_full:
            self._answer(order, Denied("limit", f"{limits.UPDATES_MAX:,} changes wait already"))
        else:
            self._updates.waiting.append(order)
            if self.state is State.UP:
                self._say_update(now)

    def _say_update(self, now: Now) -> None:
        update = self._updates.take_next(now, is_exact=self._is_exact)
        if update is not None:
            who = {"name": self.settings.name, **({"id": self.instance} if self._is_exact else {})}
            self._say(UPDATE, now, msgspec.json.encode({**who, **update.changes}))

    def _miss_update(self, now: Now) -> None:
        """A change was not answered: send it again on a new connection, but not for ever."""
        if self._updates.is_hopeless:
            self._answer(self._updates.end(), Denied("unanswered", "the broker does not answer it"))
            self._say_update(now)
        else:
            self._turn(On.SILENCE, None, now)

    # Parts of messages

    @property
    def _interval_ms(self) -> int:
        """The interval I in ms, as the record requests it."""
        asked = self.record.get("heartbeat")
        return asked if type(asked) is int and asked > 0 else limits.INTERVAL_MS

    @property
    def _who(self) -> tuple[bytes, ...]:
        name = self.settings.name.encode()
        return (name, self.instance.encode()) if self.instance else (name,)

    def _turn(self, on: On, message: Message | None, now: Now) -> None:
        cell = TABLE.get((self.state, on))
        if cell is None:
            return
        if self.state is State.UP and on in WHYS:
            self._outbox.tell(Dropped(WHYS[on]))
        self.state = cell.then
        getattr(self, cell.do)(message, now)

    def _let_go(self, now: Now) -> None:
        self._outbox.disconnect(BROKER)
        self._updates.begin()
        self.taps.end("registered anew" if self.state is not State.STOPPED else "stopped", now)

    def _back_off(self, now: Now) -> None:
        self._act_at = now.mono + limits.RETRY.pause_ns(self._chance, self._retries)
        self._retries += 1

    def _say(self, command: bytes, now: Now, *body: bytes) -> None:
        time = times.write("f64le" if self._brokers.is_f64 else "f32le", _wall(now))
        self._outbox.send(BROKER, b"", Message(command, time, body))

    def _say_beat(self, word: bytes, now: Now) -> None:
        if not self._brokers.hb:
            return
        self._seq += 1
        beat = Beat(word, self.settings.name, _wall(now), self.instance or None, self._seq)
        if self._beat_key:
            beat = beats.sign(beat, self._beat_key)
        self._outbox.send(BEATS, self._brokers.beats_at.encode(), beat)

    def _answer(self, order: Update, answer: Updated | Denied) -> None:
        self._outbox.reply(order.ticket, answer)

    def _answer_all(self, code: str, text: str) -> None:
        """Answer all waiting changes: they will not be made."""
        while self._updates.waiting:
            self._answer(self._updates.end(), Denied(code, text))

    def _tell_denied(self, message: Message, *, is_final: bool) -> None:
        why = approvals.refusal(message)
        self._outbox.tell(Denied(why.code, why.text, why.fields, is_final))

    def _tell_path(self, before: bool) -> None:  # noqa: FBT001  # from here only
        if self.state is State.UP and self._brokers.hb and before != self._beating.over_tcp:
            self._outbox.tell(PathChanged(self._beating.over_tcp))


def _wall(now: Now) -> float:
    """Unix seconds, for display (CAT-012)."""
    return now.wall // MILLISECOND / 1_000


_HEARS: Final[dict[bytes, Callable[[Service, Message, Now], None]]] = {
    APPROVED: Service._hear_approval,
    DENIED: Service._hear_denial,
    DENIED_TOO: Service._hear_denial,
    DISCONNECT: Service._hear_goodbye,
    HEARTBEAT: Service._hear_heartbeat,
    AWK: Service._hear_acknowledgement,
    TAP: Service._hear_tap,
}
