"""How a node gets its place: it answers a root's call, or asks a root, and takes the assignment (TOP-005..012)."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from weft.base.errors import PeerError
from weft.base.now import Now
from weft.cores.kit.timers import earliest
from weft.cores.topology import limits
from weft.cores.topology.assignment import parse_assignment, root_named
from weft.cores.topology.context import Context, topics_of
from weft.cores.topology.memory import Place, Root, Starts
from weft.cores.topology.messages import Announcement, Control, PlaceLost, Wtf
from weft.cores.topology.states import MEMBER_TABLE, Hears, Standing
from weft.wire.replication import BUSY, NO_GROUP, NOT_READY, NOT_ROOT, STALE_EPOCH, UNKNOWN_NODE

ASKED_MAX: Final = 64  # endpoints whose answers are still accepted: the last ones asked
TIMEOUT: Final = -1
"""Stands for a missing answer, in place of a code of WTF."""
PAUSES: Final = {
    TIMEOUT: limits.TIMEOUT_PAUSE,
    BUSY: limits.BUSY_PAUSE,
    NOT_READY: limits.BUSY_PAUSE,
}


class Heard(NamedTuple):
    """The input of a row of the table: which node to ask, and what was answered."""

    endpoint: str
    epoch: int = -1
    """Epoch of the root there; -1: not known."""
    place: Place | None = None
    root: bytes = b""
    code: int = 0


class Member:
    """The part of a node that gets a place; `on_place` is called with every assignment."""

    def __init__(self, context: Context, on_place: Callable[[Now], None]) -> None:
        self.context = context
        self.standing = Standing.BASE
        self.asked: dict[str, None] = {}
        self.target = Heard("")
        self.pause_code = 0
        self._on_place = on_place
        self._answer_at: int | None = None
        self._retry_at: int | None = None
        self._tries = self._referrals = self._join = 0
        self._stopped_epoch = -1
        self._is_untold = False

    def start(self, now: Now) -> None:
        """Use the old place at once and ask for confirmation; without one, ask where the file says."""
        context = self.context
        context.remember(Starts(context.starts.count + 1))
        if context.place.parent:
            self.standing = Standing.JOINED
            context.tell_place(context.place, topics_of(context.place))
            self._on_place(now)
            self._turn(Hears.CALL, Heard(context.place.root, context.place.epoch), now)
        elif context.root.endpoint and context.root.endpoint != context.endpoint:
            self._turn(Hears.CALL, Heard(context.root.endpoint, context.root.epoch), now)
        elif context.settings.join:
            self._turn(Hears.CALL, Heard(context.settings.join[0]), now)

    def stop(self) -> None:
        """Stop asking: this node leads, and any later assignment counts as new."""
        self._is_untold = True
        self._answer_at = self._retry_at = None
        self.standing = Standing.BASE

    def submit(self, endpoint: str, epoch: int, now: Now) -> None:
        """Follow that root: this node led before, or is the first to hear of it."""
        self._turn(Hears.CALL if self.standing is not Standing.CALLED else Hears.BETTER, Heard(endpoint, epoch), now)

    def recheck(self, endpoint: str, epoch: int, now: Now) -> None:
        """Ask that root for our place again, unless the question is under way."""
        is_asking = self._answer_at is not None or self._retry_at is not None
        if self.standing is Standing.JOINED and not (is_asking and self.target.epoch >= epoch):
            self._turn(Hears.CALL, Heard(endpoint, epoch), now)

    # Input

    def hint(self, endpoint: str, now: Now) -> None:
        """A root's beacon: a node to ask, if none is known (TOP-006)."""
        if self.standing is Standing.BASE and self._retry_at is None and self._stopped_epoch < 0:
            self._turn(Hears.CALL, Heard(endpoint), now)

    def hear(self, call: Announcement, now: Now) -> None:
        """A MARCO or GROUP."""
        heard = Heard(call.endpoint, whole(call.content.get("epoch")))
        if self.standing is Standing.JOINED:
            on = self._judge(call, heard.epoch)
            if on is not None:
                self._turn(on, heard, now)
        elif self.standing is Standing.CALLED:
            if heard.epoch > self.target.epoch and heard.endpoint != self.target.endpoint:
                self._turn(Hears.BETTER, heard, now)
        elif not self._is_deaf_to(call, heard.epoch):
            self._turn(Hears.CALL, heard, now)

    def _is_deaf_to(self, call: Announcement, epoch: int) -> bool:
        """Whether a node that pauses, or was told to stop, ignores this call."""
        if call.content.get("why") in ("start", "reassign"):
            return False
        if call.content.get("why") == "stop" or epoch <= self._stopped_epoch:
            return True
        is_same = call.endpoint == self.target.endpoint and epoch <= self.target.epoch
        return self._retry_at is not None and is_same and not call.group and self.pause_code != TIMEOUT

    def _judge(self, call: Announcement, epoch: int) -> Hears | None:
        own, content = self.context.place, call.content
        if call.group:
            return Hears.CALL if call.group == own.group and epoch >= own.epoch else None
        if call.endpoint == own.root:
            known = self.context.root.node
            is_other = bool(known) and call.uuid != known  # the root lost its disk, or it stops the group (TOP-003)
            return Hears.CALL if is_other or epoch > own.epoch or content.get("why") == "stop" else None
        is_silent = self.context.parent_is == "silent"
        if epoch < own.epoch and is_silent and self.context.is_of_record(call.uuid):
            return Hears.CALL  # the followed root is silent, and our configuration never named it as root
        if epoch != own.epoch:
            return Hears.BETTER if epoch > own.epoch else Hears.STALE
        is_free = is_silent or (own.is_acting and not content.get("acting"))
        return Hears.CALL if is_free else None

    def answered(self, message: Control | Wtf, peer: str, now: Now) -> None:
        """An answer of a node that was asked; PeerError for any other node, and for an impossible assignment."""
        if peer not in self.asked:
            raise PeerError("unasked", peer)
        if isinstance(message, Wtf):
            self._refused(message, peer, now)
        elif message.command == "assignment":
            if message.uuid != self.context.node:
                raise PeerError("not-for-us", message.endpoint)
            place, root = parse_assignment(message.properties)
            self.context.check_epoch(place.epoch)
            is_home = self.context.parent_is == "silent" and self.context.is_of_record(root)
            if place.epoch < self.context.root.epoch and not is_home:
                raise PeerError("stale-epoch", f"{place.epoch} of {peer}")
            self._turn(Hears.ASSIGNED, Heard(peer, place.epoch, place, root), now)
        elif message.command == "stop":
            self._turn(Hears.STOPPED, Heard(peer, self.target.epoch), now)
        elif message.command == "keepcalm":
            self._answer_at = None

    def _refused(self, wtf: Wtf, peer: str, now: Now) -> None:
        other = root_named(wtf)
        is_way = wtf.code in (NOT_ROOT, STALE_EPOCH) and other not in ("", self.context.endpoint, peer)
        if is_way and self._referrals < limits.REFERRALS_MAX:
            self._turn(Hears.REFERRED, Heard(other), now)
        else:
            is_gone = wtf.code in (UNKNOWN_NODE, NO_GROUP)
            self._turn(Hears.UNKNOWN if is_gone else Hears.REFUSED, Heard(peer, code=wtf.code), now)

    # Time

    def deadline(self) -> int | None:
        return earliest(self._answer_at, self._retry_at)

    def wake(self, now: Now) -> None:
        """The answer did not come, or a pause is over."""
        if self._answer_at is not None and now.mono >= self._answer_at:
            self._answer_at = None
            self._turn(Hears.NOTHING, self.target._replace(code=TIMEOUT), now)
        elif self._retry_at is not None and now.mono >= self._retry_at:
            self._retry_at = None
            self._turn(Hears.CALL, self._next_target(), now)

    def _next_target(self) -> Heard:
        """The node to ask after a pause; after a missing answer, another one."""
        join = self.context.settings.join
        if self.standing is Standing.BASE and self.pause_code == TIMEOUT and join:
            self._join += 1
            return Heard(join[self._join % len(join)])
        return self.target

    # Actions of a member

    def _turn(self, on: Hears, heard: Heard, now: Now) -> None:
        step = MEMBER_TABLE.get((self.standing, on))
        if step is not None:
            self.standing = step.then
            getattr(self, step.do)(heard, now)

    def polo(self, heard: Heard, now: Now) -> None:
        """Send a POLO with our identity and what we have (TOP-007)."""
        context = self.context
        self._referrals = 0
        self._ask(heard, now)
        context.say(heard.endpoint, "polo", self.portrait(now))

    def portrait(self, now: Now) -> dict[str, Any]:
        """The description of this node for a root."""
        context = self.context
        return {
            "fleet": context.settings.fleet,
            "protocol": limits.PROTOCOL,
            "incarnation": context.starts.count,
            "name": context.settings.name,
            "labels": context.settings.labels,
            "level": context.settings.level,
            "dialects": ["strict"],
            "holds": context.holds,
            **context.shown,
            "is_full": context.holds_all,
            "uptime_ms": context.uptime_ms(now),
        }

    def _ask(self, heard: Heard, now: Now) -> None:
        self.target, self._retry_at = heard, None
        self._answer_at = now.mono + limits.ANSWER_NS
        self.note_asked(heard.endpoint)

    def note_asked(self, endpoint: str) -> None:
        """Accept answers of this endpoint."""
        self.asked.pop(endpoint, None)
        self.asked[endpoint] = None
        if len(self.asked) > ASKED_MAX:
            del self.asked[next(iter(self.asked))]

    def ask_there(self, heard: Heard, now: Now) -> None:
        """The asked node named the root: ask that (TOP-006)."""
        referrals = self._referrals + 1
        self.polo(heard, now)
        self._referrals = referrals

    def take_place(self, heard: Heard, now: Now) -> None:
        """Take the assigned place; if it is the present one, that is only a confirmation (TOP-012)."""
        context, place = self.context, heard.place
        assert place is not None, "an assignment was parsed before"
        self._answer_at = self._retry_at = None
        self._tries, self.pause_code, self._stopped_epoch = 0, 0, -1
        is_news, moved = self._is_untold or place != context.place, place.parent != context.place.parent
        root = context.root if place.is_acting else Root(place.epoch, heard.root, place.root)
        context.remember(root, place)
        if moved:
            context.parent_is = "heard"
        if is_news:
            self._is_untold = False
            context.tell_place(place, topics_of(place))
        self._on_place(now)

    def leave_place(self, heard: Heard, now: Now) -> None:
        """The root stops this node: wait until a root starts."""
        self._lose("stopped")
        self.rest(heard, now)

    def rest(self, heard: Heard, now: Now) -> None:
        """Wait until a root starts."""
        self._answer_at = self._retry_at = None
        self._stopped_epoch = max(heard.epoch, self.context.root.epoch, 0)

    def lose_place(self, heard: Heard, now: Now) -> None:
        """The root does not know us: ask again as a new node (REC-002)."""
        self._lose("unknown")
        self._tries, self.pause_code = 0, TIMEOUT
        self.target = heard
        self._answer_at, self._retry_at = None, now.mono

    def reset(self) -> None:
        """Forget the place and the nodes to ask: a person says that the root was a wrong one."""
        self._answer_at = self._retry_at = None
        self._stopped_epoch, self.target, self.pause_code = -1, Heard(""), 0
        self.standing = Standing.BASE
        if self.context.place.parent:
            self._lose("reset")

    def _lose(self, why: str) -> None:
        self.context.remember(Place())
        self.context.tell(PlaceLost(why))

    def back_off(self, heard: Heard, now: Now) -> None:
        """Ask again after a growing pause, without end."""
        self._tries = self._tries + 1 if heard.code == self.pause_code else 1
        self.pause_code, self._answer_at = heard.code, None
        pause = PAUSES.get(heard.code, limits.REFUSED_PAUSE)
        self._retry_at = now.mono + pause.pause_ns(self.context.chance, self._tries - 1)

    def ask_later(self, heard: Heard, now: Now) -> None:
        """The same, while the node has a place and works on."""
        self.back_off(heard, now)

    def warn(self, heard: Heard, now: Now) -> None:
        """Tell an outdated root which node leads now (TOP-007, REC-015)."""
        place = self.context.place
        text = f"epoch {place.epoch} is led by {place.root}"
        self.context.say_wtf(heard.endpoint, Wtf(STALE_EPOCH, text))


def whole(value: object, default: int = 0) -> int:
    """A whole number from a peer's message, else the default."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default
