"""The planted bugs of messages between programs. Nothing imports this but `canaries.load`."""
# ruff: noqa: ARG001, ARG005  # a bug takes what the right method takes, and ignores it

from bisect import bisect_right
from typing import Any, Final

import weft.node.assembly as assembly_module
import weft.sim.machine as machine_module
from weft.base.effects import Persist
from weft.base.mail import OUTBOX
from weft.base.now import SECOND, Now
from weft.base.records import CoreRecord, StreamRecord
from weft.cores.carrier.identities import Identities, Meeting
from weft.cores.carrier.memory import CORE, KINDS, Met
from weft.cores.carrier.outbox import Outbox
from weft.cores.carrier.parent import Parent
from weft.cores.chains.clientlink import HolderLink
from weft.cores.chains.context import Context
from weft.cores.chains.core import Chains
from weft.cores.chains.engine import Engine
from weft.cores.chains.holding import Holding
from weft.cores.chains.inbox import Inbox
from weft.cores.chains.memory import Remembered, from_record
from weft.cores.chains.readers import Readers
from weft.cores.chains.relay import RelayLink
from weft.cores.chains.session import Session
from weft.cores.chains.sessions import Sessions
from weft.cores.chains.walk import Walker
from weft.node.node import Node
from weft.sim.canaries import canary
from weft.sim.fleetplan import FLEET_MAIL
from weft.wire.carried import is_mail
from weft.wire.clients import StatusItem

MET: Final = next(number for number, kind in KINDS.items() if kind is Met)

# On the way from node to node.


@canary(Parent, "flush", caught_by="mail_wall", within=5, scenario="mail")
def mail_hacked_before_persist(right: Any) -> Any:
    """A message is acknowledged before its record is written."""

    def flush(self: Parent, now: Now) -> None:
        effects = self.context.effects
        begin = len(effects)
        right(self, now)
        fresh = effects[begin:]
        has_mail = any(_is_of_mail(effect) for effect in fresh)
        effects[begin:] = sorted(fresh, key=lambda effect: has_mail and isinstance(effect, Persist))

    return flush


def _is_of_mail(effect: Any) -> bool:
    records = effect.records if isinstance(effect, Persist) else ()
    return any(type(record) is CoreRecord and record.core == CORE and record.kind == MET for record in records)


@canary(Outbox, "begin", caught_by="mail_complete", within=5, scenario=FLEET_MAIL)
def mail_for_one_parent_only(right: Any) -> Any:
    """What one parent has acknowledged goes to no other, although that parent may lose it."""

    def begin(self: Outbox, upto: int) -> None:
        taken = self.__dict__["taken"] = max(self.__dict__.get("taken", 0), self.held)
        right(self, upto)

        def item(index: int, left_out: list[Any], wall: int) -> Any:
            lsn, record, size = self._slots[index]
            if self.sent < taken and is_mail(record):
                self._slots[index] = (lsn, None, size)
            return Outbox._item(self, index, left_out, wall)

        self._item = item  # type: ignore[method-assign]  # the bug

    return begin


@canary(assembly_module.MAKERS, "chains", caught_by="mail_once", within=20, scenario="mail")
def mail_era_kept_over_a_restart(right: Any) -> Any:
    """The messages of a node that starts again are numbered from 1 in the era that it had."""
    eras: dict[bytes, int] = {}

    def chains(start: Any) -> Any:
        made: Chains = right(start)
        made.context.era = eras.setdefault(start.node, start.era)
        return made

    return chains


@canary(Identities, "meet", caught_by="mail_wall", within=20, scenario="mail")
def identities_without_their_era(right: Any) -> Any:
    """The first messages of a node that restarts count as duplicates of its former era, and are lost."""

    def meet(self: Identities, origin: bytes, era: int, sequence: int) -> Meeting:
        highs = self.__dict__.setdefault("highs", {})
        if any(sequence <= high for (node, start), high in highs.items() if node == origin and start != era):
            return Meeting.DUPLICATE
        highs[origin, era] = max(sequence, highs.get((origin, era), 0))
        return Meeting(right(self, origin, era, sequence))

    return meet


@canary(Identities, "meet", caught_by="mail_once", within=20, scenario="mail")
def identities_forgotten(right: Any) -> Any:
    """A message that arrives again by another stream counts as new."""

    def meet(self: Identities, origin: bytes, era: int, sequence: int) -> Meeting:
        right(self, origin, era, sequence)
        return Meeting.NEW

    return meet


@canary(machine_module, "build_node", caught_by="mail_complete", within=40, scenario="mail")
def produced_in_a_second_record(right: Any) -> Any:
    """The arrival of a message is written at once, but what `forward` made of it half a second later."""

    def build_node(settings: Any, node: bytes, era: int, seed: str, **more: Any) -> Node:
        made: Node = right(settings, node, era, seed, **more)
        _delay_what_is_made(made)
        return made

    return build_node


def _delay_what_is_made(node: Node) -> None:
    chains: Any = node.cores["chains"]
    carrier: Any = node.cores["carrier"]
    screen, wake, deadline = chains.screen, chains.wake, chains.deadline
    made: list[tuple[int, Any]] = []

    def slow_screen(record: StreamRecord, now: Now) -> list[Any]:
        records = list(screen(record, now))
        late = [one for one in records if type(one) is StreamRecord and one.stream == OUTBOX]
        made.extend([(now.mono + SECOND // 2, one) for one in late])
        return [one for one in records if one not in late]

    def slow_wake(now: Now) -> None:
        wake(now)
        while made and made[0][0] <= now.mono:
            chains.context.keep(made.pop(0)[1])

    def slow_deadline() -> int | None:
        dues = [due for due in (deadline(), made[0][0] if made else None) if due is not None]
        return min(dues, default=None)

    carrier.screen, chains.wake, chains.deadline = slow_screen, slow_wake, slow_deadline


@canary(Context, "keep", caught_by="mail_order", within=20, scenario="mail")
def newest_first_into_the_outbox(right: Any) -> Any:
    """The messages of one turn are kept in reverse order."""

    def keep(self: Context, *records: Any) -> None:
        right(self, *records)
        fresh = len(self.records) - len(records)
        self.records = [*records, *self.records[:fresh]]

    return keep


# In the chains.


@canary(Holding, "_release", caught_by="mail_complete", within=40, scenario="chains")
def released_message_vanishes_with_the_last_link(right: Any) -> Any:
    """A message that a dead client held at the last link of its chain is lost, as there is no next link."""

    def release(self: Holding, link: HolderLink, held: Any, why: str, now: Now) -> None:
        if why == "client-lost" and link.policy == "open" and not held.is_copy:
            self._road.end(held.parcel, "deleted")
        else:
            right(self, link, held, why, now)

    return release


@canary(Holding, "resolve", caught_by="conserved", within=40, scenario="chains")
def backlog_not_refilled_after_drop(right: Any) -> Any:
    """A deleted message makes no room at its link."""

    def resolve(self: Holding, link: HolderLink, held: Any, now: Now) -> bool:
        if held.answer.how != "drop":
            return bool(right(self, link, held, now))
        self._apply(link, link.take(held.parcel.id), now)
        return False

    return resolve


@canary(Walker, "resume", caught_by="chain_order", within=20, scenario="chains")
def next_link_by_its_old_number(right: Any) -> Any:
    """A message goes on at the place in line that was the next when the node knew fewer links."""
    lengths: dict[tuple[str, str], int] = {}

    def resume(self: Walker, parcel: Any, after: Any, now: Now) -> None:
        chain = self._roster.chain(parcel.direction, parcel.type)
        count = lengths.setdefault((parcel.direction, parcel.type), len(chain.links))
        behind = max(0, bisect_right(chain.keys, after) - max(0, len(chain.links) - count))
        right(self, parcel, chain.keys[behind - 1] if behind else (-1, 0, 0, 0), now)

    return resume


@canary(Engine, "_answer", caught_by="mail_once", within=40, scenario="chains")
def answer_not_checked_against_the_holder(right: Any) -> Any:
    """Whoever names a message that another program holds may decide what becomes of it."""

    def answer(self: Engine, session: Session, about: Any, message: Any, now: Now) -> None:
        how, _, number = about
        holder = next((link for link in self._holders if number in link.pending and not link.confirms), None)
        if holder is not None and how == "next":
            right(self, holder.session, (how, holder.reg, number), message, now)
        else:
            right(self, session, about, message, now)

    return answer


@canary(Inbox, "restore", caught_by="mail_complete", within=40, scenario="chains")
def inbox_forgotten_over_a_restart(right: Any) -> Any:
    """Messages that waited at a link when the node ended are not restored."""
    return lambda self, record: None


@canary(RelayLink, "take", caught_by="mail_once", within=40, scenario="chains")
def handed_over_again_after_a_restart(right: Any) -> Any:
    """Messages that wait for the journal's link when a root ends are journaled again when it starts."""

    def take(self: RelayLink, parcel: Any, now: Now) -> Any:
        parcel.is_handed = False
        return right(self, parcel, now)

    return take


@canary(Session, "_item", caught_by="offered_once", within=40, scenario="chains")
def offered_again_unsaid(right: Any) -> Any:
    """A message that is offered again is not marked as such."""
    return lambda self, parcel, *, is_again: right(self, parcel, is_again=False)


@canary(Readers, "_send_away", caught_by="readers_served", within=40, scenario="readers")
def reader_that_is_away_has_no_turn(right: Any) -> Any:
    """Messages that arrive while a reader, or its node, is away pass the chain without that reader."""
    return lambda self, reader, key, now: None


@canary(Chains, "_recall", caught_by="converged", within=40, scenario="readers")
def readers_forgotten_over_a_restart(right: Any) -> Any:
    """Readers are remembered as long as their node runs."""

    def recall(self: Chains, record: CoreRecord, now: Now) -> None:
        if not isinstance(from_record(record), Remembered):
            right(self, record, now)

    return recall


@canary(Context, "give_up", caught_by="readers_served", within=200, scenario="readers")
def given_up_without_a_word(right: Any) -> Any:
    """Messages that waited for a reader which stayed away too long are dropped, and no event names them."""
    return lambda self, reader, why, parcel: None


@canary(Holding, "_settle", caught_by="conserved", within=40, scenario="readers")
def copies_end_uncounted(right: Any) -> Any:
    """A reader's copy that ends other than by confirmation is not counted."""

    def settle(self: Holding, parcel: Any, why: str) -> None:
        if why == "delivered":
            right(self, parcel, why)
        else:
            self._road.settle(parcel)

    return settle


# What senders hear.


@canary(machine_module, "build_node", caught_by="one_status", within=5, scenario="mail")
def status_again_at_hack(right: Any) -> Any:
    """A sender gets `spooled` twice: when its message is kept, and when the parent has it."""

    def build_node(settings: Any, node: bytes, era: int, seed: str, **more: Any) -> Node:
        made: Node = right(settings, node, era, seed, **more)
        _say_again(made)
        return made

    return build_node


def _say_again(node: Node) -> None:
    chains: Any = node.cores["chains"]
    carrier: Any = node.cores["carrier"]
    receive = carrier.receive

    def hear(message: Any, source: Any, now: Now) -> None:
        held = carrier.outbox.held
        receive(message, source, now)
        for session in chains.sessions if carrier.outbox.held > held else ():
            known = chains.tags._known.get(session.id, {})
            for tag, what in list(known.items())[-1:]:
                session.post.status(StatusItem(tag=tag, ok=True, why=getattr(what, "why", "spooled")))

    carrier.receive = hear


@canary(Sessions, "_lose", caught_by="mail_once", within=40, scenario="mail")
def tags_forgotten_at_reconnect(right: Any) -> Any:
    """The tags of a session end with it: a send that is repeated in the next one is sent twice."""

    def lose(self: Sessions, session: Session, why: str, now: Now, *, bye: bool = False) -> None:
        right(self, session, why, now, bye=bye)
        tags: Any = self._engine.sending._tags  # type: ignore[attr-defined]  # an attribute of the real engine
        tags._known.pop(session.id, None)

    return lose


@canary(Chains, "_recount", caught_by="converged", within=40, scenario="mail")
def tags_forgotten_at_a_restart(right: Any) -> Any:
    """A start does not restore the tags of the messages in its outbox."""

    def recount(self: Chains, record: StreamRecord) -> None:
        record.attributes.pop("by", None)
        right(self, record)

    return recount
