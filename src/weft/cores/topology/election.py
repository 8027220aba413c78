"""Which node is root: by file, by journal, or by the votes of first-level collectors (REC-010..017)."""

from typing import Any, NamedTuple

from weft.base.now import Now
from weft.cores.kit.timers import earliest
from weft.cores.topology import limits
from weft.cores.topology.announcing import Announcer
from weft.cores.topology.context import Context
from weft.cores.topology.member import whole
from weft.cores.topology.memory import Place, Promised, Root
from weft.cores.topology.messages import Announcement, Control, ElectionCalled, RootLeft, RootTaken
from weft.cores.topology.states import ELECTION_TABLE, Event, Role
from weft.wire.discovery import GRANTED, IWIN, REFUSED, WUTUP
from weft.wire.replication import EPOCH_MAX, epoch_of, number_of

Rank = tuple[int, bytes]
"""What a node has, epoch above counter, then its UUID (REC-010)."""


class ReplicaState(NamedTuple):
    """What a full replica has: its number, and the digest of its pairs in hex."""

    number: int
    digest: str


class Cue(NamedTuple):
    """The input of a row of the table."""

    endpoint: str = ""
    node: bytes = b""
    election: str = ""
    propose: int = 0
    why: str = ""


class Election:
    """One node's part in the election. The registry does the work of a root."""

    def __init__(self, context: Context, announcer: Announcer) -> None:
        self.context, self.announcer = context, announcer
        self.role = Role.FOLLOW
        self.due_at: int | None = None
        self.election = ""
        self.propose = 0
        self.attempt = 0
        self.granted: dict[bytes, None] = {}
        self._repeats: list[int] = []
        self._wins: list[int] = []
        self._bid_at: int | None = None
        self._victory: dict[str, Any] = {}
        self._donors: dict[str, ReplicaState] = {}
        """Full replicas heard while this root waits, with what they have (REC-016)."""
        self._fetched: ReplicaState | None = None
        """What the replica had whose store was asked for last."""
        self._is_compared = False
        """At least one replica was heard."""
        self._seen = 0
        """The highest number that any heard node has."""

    # Who may vote

    def voters(self) -> dict[bytes, str]:
        """Voters by UUID with their endpoints: first-level collectors, the root of record, and this node."""
        context = self.context
        found = context.atlas.voters()
        known = context.atlas.root
        if known is not None and known.epoch >= context.root.epoch:
            found[known.node] = known.endpoint
        elif context.root.node:
            found[context.root.node] = context.root.endpoint
        found[context.node] = context.endpoint
        return found

    @property
    def is_voter(self) -> bool:
        """Whether this node may vote: it is directly below the root and has the whole configuration."""
        place = self.context.place
        is_placed = place.parent != "" and place.level == "branch" and place.tier == 1
        return is_placed and not self.context.atlas.is_diverged

    @property
    def is_quiet(self) -> bool:
        """Whether the root has not been heard for D/2."""
        context = self.context
        return self.role is Role.ACTING or context.place.is_acting or context.parent_is != "heard"

    @property
    def rank(self) -> Rank:
        return self.context.atlas.number, self.context.node

    # Input

    def begin_root(self, now: Now) -> None:
        """This node is root by its file or journal."""
        self._turn(Event.BORN, Cue(), now)

    def placed(self, now: Now) -> None:
        """This node has a place below an acting root, or a new root: it no longer calls for votes."""
        if self.role in (Role.CALLING, Role.WAITING) and self.context.parent_is == "heard":
            self._turn(Event.HEARD, Cue(), now)

    def outranks(self, holds: object, node: bytes) -> bool:
        """Whether this node ranks above another one that acts."""
        return self.rank > (_number(holds), node)

    def parent_is(self, state: str, now: Now) -> None:
        """The root, if it is the parent, is heard, quiet or silent."""
        if state == "heard" and not self.context.place.is_acting:
            self._turn(Event.HEARD, Cue(), now)
        elif self.is_voter and self.context.settings.calls and not self.context.atlas.is_partial:
            self.announcer.connect(self.voters().values(), now)  # connected early, so that the first call is not lost
            if state == "silent":
                self._turn(Event.SILENT, Cue(), now)

    def hear(self, call: Announcement, now: Now) -> None:
        """A node calls for votes."""
        holds = call.content.get("holds")
        propose = whole(call.content.get("propose"))
        if call.uuid == self.context.node or not (self.is_voter or self.context.leads):
            return
        cue = Cue(call.endpoint, call.uuid, str(call.content.get("election", ""))[:64], propose)
        rank = (_number(holds), call.uuid)
        promised = self.context.promised
        is_free = promised.epoch < propose or promised == Promised(propose, call.uuid)
        is_free = is_free and len(self.context.candidates.promises) < limits.CANDIDATES_MAX
        if self.role in (Role.ROOT, Role.STARTING) or not self.is_quiet:
            self._turn(Event.DENIED, cue._replace(why="alive"), now)
        elif rank[0] == self.rank[0] and str(call.content.get("digest", "")) != self.context.atlas.digest.hex():
            self._turn(Event.DENIED, cue._replace(why="diverged"), now)
        elif rank < self.rank and self.context.atlas.is_partial:
            self._turn(Event.DENIED, cue._replace(why="partial"), now)
        elif rank < self.rank:
            self._turn(Event.WORSE, cue, now)
        elif is_free and self.context.root.epoch < propose <= EPOCH_MAX:
            self._turn(Event.BETTER, cue, now)
        else:
            self._turn(Event.DENIED, cue._replace(why="promised"), now)

    def hear_answer(self, message: Control, now: Now) -> None:
        """A vote granted or refused, or `yo`; only for the current call."""
        properties = message.properties
        if properties.get("election") != self.election or self.role not in (Role.CALLING, Role.ACTING):
            return
        if message.command == GRANTED:
            is_current = whole(properties.get("propose")) == self.propose and message.uuid in self.voters()
            if is_current and self._is_shown(properties):
                self.granted[message.uuid] = None
                if self._has_majority():
                    self._turn(Event.MAJORITY, Cue(), now)
        elif message.command == "yo":
            self._turn(Event.YO, Cue(), now)
        elif properties.get("why") == "promised":
            self.context.check_epoch(whole(properties.get("promised")))
            self._turn(Event.PROMISED, Cue(propose=min(whole(properties.get("promised")), EPOCH_MAX - 1)), now)
        elif properties.get("why") == "alive":
            self._turn(Event.ALIVE, Cue(), now)

    def _is_shown(self, vote: dict[str, Any]) -> bool:
        """Whether a voter has less than this node, or has shown the same digest at the same number (FLD-003)."""
        digest = self.context.atlas.digest.hex()
        if not digest:
            return True
        number, shown = _number(vote.get("holds")), vote.get("digest")
        return isinstance(shown, str) and (number < self.rank[0] or (number == self.rank[0] and shown == digest))

    def is_above(self, cue: Cue) -> bool:
        """Whether this node has to give way to a root of epoch `cue.propose`, if there is one."""
        own = self.context.root.epoch
        if cue.why == "acting":
            return self.role is Role.ACTING and cue.propose >= own
        return bool(cue.endpoint) and (cue.propose > own or (cue.propose == own and self.role is Role.ACTING))

    def crowned(self, cue: Cue, now: Now) -> None:
        """A root of that epoch exists."""
        self._turn(Event.CROWNED, cue, now)

    def _has_majority(self) -> bool:
        promised = self.context.promised
        own = promised.epoch < self.propose or promised == Promised(self.propose, self.context.node)
        return own and len(self.granted) + 1 >= quorum(len(self.voters()))

    # Time

    def deadline(self) -> int | None:
        return earliest(self.due_at, self._bid_at, *self._repeats[:1], *self._wins[:1])

    def wake(self, now: Now) -> None:
        """Repeat messages that may have been lost; call again, or stop waiting."""
        if self._repeats and self._repeats[0] <= now.mono:
            self._repeats = [at for at in self._repeats if at > now.mono]
            self._say_wutup()
        if self._wins and self._wins[0] <= now.mono:
            self._wins = [at for at in self._wins if at > now.mono]
            self.announcer.say(self.context.announcement(IWIN, self._victory))
        if self._bid_at is not None and self._bid_at <= now.mono:
            self._bid_at = None
            self._turn(Event.DUE, Cue(why="bid"), now)
        elif self.due_at is not None and self.due_at <= now.mono:
            self.due_at = None
            self._turn(self._outcome(), Cue(), now)

    def _outcome(self) -> Event:
        """The input when time is over."""
        if self.role is Role.STARTING:
            return self._outcome_of_waiting()
        is_last = self.role in (Role.CALLING, Role.ACTING) and self.attempt >= limits.ELECTION_TRIES
        if not is_last:
            return Event.DUE
        voters = len(self.voters())
        return Event.ALONE if self.context.settings.quorum == "alone" and voters <= 2 else Event.EXHAUSTED

    def _outcome_of_waiting(self) -> Event:
        """Whether a starting root has to take over another node's store, or to wait longer (REC-016, JRN-023)."""
        if self._donors and self._is_better(max(self._donors.values())):
            return Event.BEHIND
        has_taken = self._fetched is None or not self._is_better(self._fetched)
        is_sure = len(self.voters()) == 1 or (self._is_compared and has_taken)
        return Event.DUE if is_sure or not self.context.is_damaged else Event.UNSURE

    def _is_better(self, held: ReplicaState) -> bool:
        """Whether a replica has more than this root.

        Or the same number with other pairs, while records are lost here.
        """
        if held.number != self.rank[0]:
            return held.number > self.rank[0]
        return self.context.is_damaged and held.digest != self.context.atlas.digest.hex()

    @property
    def _is_doubtful(self) -> bool:
        """Whether a starting root may lack something that it once had."""
        return self.context.root.epoch < 0 or self.context.is_damaged

    def accept_loss(self, now: Now) -> None:
        """A person accepts the loss: what is here is in force."""
        self.context.is_damaged = False
        if self.role is Role.STARTING:
            self.due_at = now.mono

    def _turn(self, on: Event, cue: Cue, now: Now) -> None:
        turn = ELECTION_TABLE.get((self.role, on))
        if turn is not None:
            self.role = turn.then
            getattr(self, turn.do)(cue, now)

    # Actions of candidates

    def call(self, cue: Cue, now: Now) -> None:
        """Ask the voters, in an epoch that no node has used as far as known here."""
        context = self.context
        self._reset()
        self.attempt += 1
        self.propose = max(context.root.epoch, context.promised.epoch, cue.propose, 0) + 1
        if self.propose > EPOCH_MAX:
            return
        self.election = _as_uuid(context.chance.randbytes(16))
        self.announcer.connect(self.voters().values(), now)
        context.tell(ElectionCalled(self.propose, self.attempt))
        self._say_wutup()
        self._repeats = [now.mono + quarter * context.election_ns // 4 for quarter in limits.WUTUP_REPEATS[1:]]
        self.due_at = now.mono + context.election_ns
        if self._has_majority():
            self._turn(Event.MAJORITY, cue, now)

    def _say_wutup(self) -> None:
        content = {
            "fleet": self.context.settings.fleet,
            "election": self.election,
            "propose": self.propose,
            "holds": self.context.holds,
            **self.context.shown,
        }
        self.announcer.say(self.context.announcement(WUTUP, content))

    def _reset(self) -> None:
        self.due_at = self._bid_at = None
        self._repeats = []
        self.granted = {}

    def call_on(self, cue: Cue, now: Now) -> None:
        """Nothing to do: a call is under way."""

    def wait(self, cue: Cue, now: Now) -> None:
        """A node of higher rank exists: give it time (REC-010)."""
        self._reset()
        self.attempt = 0
        self.due_at = now.mono + limits.WAIT_ELECTIONS * self.context.election_ns

    def raise_bid(self, cue: Cue, now: Now) -> None:
        """A voter has promised a higher epoch: call again above it, slightly later than other candidates."""
        context = self.context
        if self._bid_at is None:
            self._bid_at = now.mono + context.election_ns * context.chance.randrange(1, 5) // 4
        if cue.propose > context.promised.epoch:
            context.remember(Promised(cue.propose))

    def win(self, cue: Cue, now: Now) -> None:
        """A majority has promised: there is a root of this epoch now, and no other (REC-011, REC-012)."""
        context = self.context
        votes, voters = len(self.granted) + 1, len(self.voters())
        self._victory = {
            "fleet": context.settings.fleet,
            "election": self.election,
            "epoch": self.propose,
            "holds": context.holds,
            "votes": votes,
            "of": voters,
        }
        root = Root(self.propose, context.node, context.endpoint, context.settings.name)
        context.remember(Promised(self.propose, context.node), root)
        self.announcer.say(context.announcement(IWIN, self._victory))
        self._wins = [now.mono + limits.MARCO_GAP_NS * tenth for tenth in limits.IWIN_REPEATS[1:]]
        self._take(RootTaken(self.propose, False, votes, voters))

    def act(self, cue: Cue, now: Now) -> None:
        """No majority: serve what is known, write nothing, and keep calling (REC-014)."""
        context = self.context
        votes = len(self.granted) + 1
        self.rest(cue, now)
        context.is_acting = True
        context.tell(RootTaken(max(context.root.epoch, 0), True, votes, len(self.voters())))

    def rest(self, cue: Cue, now: Now) -> None:
        """There is still no majority."""
        self._reset()
        self.attempt = 0
        self.due_at = now.mono + limits.ACTING_BEATS * self.context.beat_ns

    def calm(self, cue: Cue, now: Now) -> None:
        """There is no reason to call, or none at present."""
        if self.role is Role.ACTING:
            self.rest(cue, now)
            return
        self._reset()
        self.attempt = 0
        self.announcer.hang_up()

    # Actions of voters

    def vote(self, cue: Cue, now: Now) -> None:
        """Promise durably, and only then send the vote (REC-011)."""
        context = self.context
        if self.role is Role.FOLLOW:
            self._reset()
        context.promise(cue.propose, cue.node)
        shown = {"holds": context.holds, **context.shown} if context.shown else {}
        context.say(cue.endpoint, GRANTED, {"election": cue.election, "propose": cue.propose, **shown})

    def say_yo(self, cue: Cue, now: Now) -> None:
        """Answer that this node has the higher rank."""
        self.context.say(cue.endpoint, "yo", {"election": cue.election})

    def outbid(self, cue: Cue, now: Now) -> None:
        """Answer that this node has the higher rank, and call for votes."""
        self.say_yo(cue, now)
        if self.due_at is None or not self._repeats:
            self.attempt = 0
            self.call(Cue(), now)

    def refuse_vote(self, cue: Cue, now: Now) -> None:
        """Refuse the vote, with the reason."""
        properties: dict[str, Any] = {"election": cue.election, "why": cue.why}
        if cue.why == "promised":
            properties["promised"] = max(self.context.promised.epoch, self.context.root.epoch, 0)
        self.context.say(cue.endpoint, REFUSED, properties)

    # Actions of roots

    def begin(self, cue: Cue, now: Now) -> None:
        """Wait for nodes that know more.

        A root without its disk, or with a part of it lost, waits 2 H, 10 s at most (REC-016, JRN-023); any other only
        if there are voters who could tell it.
        """
        context = self.context
        if not context.settings.calls:
            self.due_at = now.mono
        elif self._is_doubtful:
            self.announcer.connect(self.voters().values(), now)
            self.due_at = now.mono + min(context.settings.start_beats * context.beat_ns, limits.START_NS_MAX)
        elif len(self.voters()) > 1:
            self.due_at = now.mono + context.election_ns
        else:
            self.due_at = now.mono

    def note_holds(self, polo: Control, now: Now) -> None:
        """Note what a node has that answers a root without its disk (REC-016)."""
        number = _number(polo.properties.get("holds"))
        if self._is_doubtful:
            self._seen = max(self._seen, number)
            if polo.properties.get("is_full") is True and len(self._donors) < limits.NODES_MAX:
                self._donors[polo.endpoint] = ReplicaState(number, str(polo.properties.get("digest", "")))
                self._is_compared = True

    def fetch(self, cue: Cue, now: Now) -> None:
        """Fetch the store of the node that has most, within a time limit; then of the next (REC-016)."""
        donor = max(self._donors, key=lambda endpoint: self._donors[endpoint])
        self._fetched = self._donors.pop(donor)
        place = Place(parent=donor, root=self.context.endpoint, level="branch", tier=1, epoch=epoch_of(self._seen))
        self.context.tell_place(place, ("/",))
        self.due_at = now.mono + limits.SNAPSHOT_NS

    def has_learnt(self, now: Now) -> None:
        """The store has grown: a root that waited for it may begin."""
        is_taken = self._fetched is not None or not self.context.is_damaged
        if self.role is Role.STARTING and is_taken and 0 < self._seen <= self.rank[0]:
            self.due_at = now.mono

    def ascend(self, cue: Cue, now: Now) -> None:
        """Become root by file or journal."""
        context = self.context
        self._reset()
        epoch = max(context.root.epoch, 0)
        if context.is_damaged or (context.root.epoch < 0 and self._seen > 0):  # numbers of the last epoch may be lost
            epoch = max(epoch, epoch_of(self._seen), context.promised.epoch) + 1
        context.is_damaged = False
        self._donors, self._seen, self._fetched = {}, 0, None
        root = Root(epoch, context.node, context.endpoint, context.settings.name)
        context.remember(root, Promised(max(epoch, context.promised.epoch), context.promised.node))
        self._take(RootTaken(epoch, False, 1, len(self.voters())))

    def _take(self, taken: RootTaken) -> None:
        self._reset()
        self.attempt = 0
        self.context.is_root, self.context.is_acting = True, False
        self.context.tell(taken)

    def submit(self, cue: Cue, now: Now) -> None:
        """A root of a higher epoch exists: stop writing at once, and follow it (REC-015)."""
        self._give_way(cue, led=self.context.leads)

    def give_up(self, cue: Cue, now: Now) -> None:
        """The same, before this root by file or journal has begun to lead."""
        self._give_way(cue, led=True)

    def _give_way(self, cue: Cue, *, led: bool) -> None:
        context = self.context
        self._reset()
        self._wins = []
        self.attempt = 0
        self.announcer.hang_up()
        context.is_root = context.is_acting = False
        if led and cue.why != "acting":
            context.remember(Root(cue.propose, cue.node, cue.endpoint))
        if led:
            context.tell(RootLeft(cue.propose, cue.endpoint))


def quorum(voters: int) -> int:
    """A majority (REC-010).

    >>> [quorum(count) for count in (1, 2, 3, 4, 5)]
    [1, 2, 2, 3, 3]
    """
    return voters // 2 + 1


def _number(holds: object) -> int:
    if isinstance(holds, list | tuple) and len(holds) == 2:
        return number_of(whole(holds[0]), whole(holds[1]))
    return 0


def _as_uuid(raw: bytes) -> str:
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
