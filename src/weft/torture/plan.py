"""The faults of a run and their times: drawn from one seed, written as JSON, and replayed or cut down by hand.

A plan contains all choices: runs with the same plan have the same faults at the same instants. The processes are not
deterministic, so it may take several runs of a plan to repeat a failure.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from weft.base.chance import Chance
from weft.base.errors import UserError
from weft.torture import limits

ROOT: Final = "root"
COLLECTORS: Final = ("collector-1", "collector-2")
SENSORS: Final = ("sensor-1", "sensor-2", "sensor-3", "sensor-4", "sensor-5")
BELOW: Final = (*COLLECTORS, *SENSORS)
"""The machines that joined by an invitation."""
NODES: Final = (ROOT, *BELOW)
PIPELINE: Final = "pipeline"

KINDS: Final[dict[str, str]] = {
    "kill": "kill -9, and started again",
    "pause": "stands still (SIGSTOP), and goes on",
    "restart-all": "everything is killed at once, and started again",
    "cut": "the cable is pulled",
    "one-way": "what it sends reaches nobody; it hears everybody",
    "blackhole": "the cable carries nothing, and says nothing of it",
    "delay": "the cable delays every frame",
    "slow": "the cable carries 10 kB/s",
    "flip": "the cable flips bits in TCP payloads, with a checksum that fits",
    "reset": "the cable resets TCP connections, while both ends live",
    "rough": "the cable loses frames, carries some twice, and some late",
    "full-disk": "its disk has no room",
    "read-only": "it is killed, and finds its disk read-only when it starts",
    "clone": "a copy of its disk runs on a second machine",
    "lost-disk": "it is killed, its disk is emptied, and it is started again",
    "old-disk": "it is killed, its disk is put back to an older copy, and it is started again",
    "move": "it is killed, and starts at another address; later it comes back to the first",
    "rotate": "it takes another key",
    "revoke": "its keys are revoked; then it is invited again, and joins with others",
    "stranger": "somebody without a key that is known knocks at each of its ports",
}
PROCESSES: Final = ("kill", "pause", "restart-all")
CABLES: Final = ("cut", "one-way", "blackhole", "delay", "slow", "flip", "reset", "rough")
DISKS: Final = ("full-disk", "read-only", "clone")
LOST_DISK: Final = "lost-disk"
OLD_DISK: Final = "old-disk"
REWINDS: Final = (LOST_DISK, OLD_DISK)
"""Faults that are not played in a closed fabric, where a machine with an empty disk has to be invited again."""
MOVE: Final = "move"
"""A fault that is not played in a closed fabric, where an invitation fixes the address of a node."""
KEYS: Final = ("rotate", "revoke")
STRANGER: Final = "stranger"
"""A fault, and the machine from which it comes."""
ALONE: Final = frozenset({"restart-all"})
"""Faults that affect all nodes, so that none is named."""
WEIGHTS: Final = {"kill": 4, "pause": 3}
"""How often a kind occurs in one round through all kinds; once, if it is not listed."""


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One fault: when it begins, in seconds from the first write, which nodes it affects, and how long it lasts."""

    at: Annotated[float, Meta(ge=0, le=limits.SPAN_S_MAX)]
    kind: str
    who: tuple[str, ...] = ()
    span: Annotated[float, Meta(ge=0, le=limits.SPAN_S_MAX)] = 0.0
    amount: float = 0.0
    """Seconds of a delay."""


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All faults of one run, in order."""

    seed: str
    span: Annotated[float, Meta(gt=0, le=limits.SPAN_S_MAX)]
    events: Annotated[tuple[Event, ...], Meta(max_length=limits.EVENTS_MAX)]
    older: tuple[str, ...] = ()
    """Nodes that run the older version, if there is one."""


def possible(*, has_room: bool, is_closed: bool) -> tuple[str, ...]:
    """The kinds of faults that are possible, with or without a room, in a closed or open fabric."""
    kinds = (*PROCESSES, *CABLES, *DISKS) if has_room else PROCESSES
    keys = (*KEYS, STRANGER) if has_room else KEYS
    moves = (MOVE,) if has_room else ()
    return (*kinds, *keys) if is_closed else (*kinds, *moves, *REWINDS)


def draw(seed: str, span_s: float, kinds: tuple[str, ...], *, has_pipeline: bool = True) -> Plan:
    """The plan of a seed; the same seed, span and kinds give the same plan."""
    when, who, what = (Chance(f"{seed}/torture/{purpose}") for purpose in ("when", "who", "what"))
    victims = (*NODES, PIPELINE) if has_pipeline else NODES
    events: list[Event] = []
    deck: list[str] = []
    at = limits.FIRST_FAULT_S
    while kinds and at < span_s:
        if not deck:
            deck = [kind for kind in kinds for _ in range(WEIGHTS.get(kind, 1))]
            what.shuffle(deck)
        events.append(_event(deck.pop(), round(at, 2), victims, who, what))
        at += when.uniform(0.3, 2.0) * limits.MEAN_GAP_S
    if span_s >= limits.LONG_S:
        _revoke_both(seed, events)
    older = tuple(sorted(Chance(f"{seed}/torture/older").sample(NODES, len(NODES) // 2)))
    return Plan(seed, span_s, tuple(events), older)


def _event(kind: str, at: float, victims: tuple[str, ...], who: Chance, what: Chance) -> Event:
    span = round(what.uniform(*limits.FAULT_S), 2)
    amount = round(what.uniform(*limits.DELAY_S), 3)
    names = () if kind in ALONE else _victims(kind, victims, who)
    if kind in ("kill", "restart-all", LOST_DISK):
        span = round(what.uniform(*limits.RESTART_S), 2)
    return Event(at, kind, names, span, amount if kind == "delay" else 0.0)


def _revoke_both(seed: str, events: list[Event]) -> None:
    """Let one of the revocations affect both collectors at once: all who vote beside the first root are gone for a while."""
    if places := [place for place, event in enumerate(events) if event.kind == "revoke"]:
        place = Chance(f"{seed}/torture/both").choice(places)
        events[place] = msgspec.structs.replace(events[place], who=COLLECTORS)


def _victims(kind: str, victims: tuple[str, ...], who: Chance) -> tuple[str, ...]:
    """The affected nodes: mostly one, sometimes two at once."""
    choice = {"kill": victims, "pause": victims, "revoke": BELOW, MOVE: SENSORS, LOST_DISK: BELOW, OLD_DISK: BELOW}.get(
        kind, NODES
    )
    count = 2 if kind not in (*DISKS, *KEYS, *REWINDS, MOVE) and who.random() < 0.2 else 1
    return tuple(sorted(who.sample(choice, count)))


def write(plan: Plan) -> bytes:
    """The plan as JSON, a line per event, so that a person can cut it down."""
    whole = msgspec.json.encode(plan)
    return msgspec.json.format(whole, indent=1) + b"\n"


def read(data: bytes) -> Plan:
    """The plan in a file that `write` has made; UserError `bad-plan`."""
    try:
        plan = msgspec.json.decode(data, type=Plan)
    except msgspec.DecodeError as error:
        raise UserError("usage", f"this is no plan: {error}", "weft torture --print-plan") from None
    for event in plan.events:
        unknown = [name for name in event.who if name not in (*NODES, PIPELINE)]
        if event.kind not in KINDS or unknown or (not event.who and event.kind not in ALONE):
            raise UserError(
                "usage", f"this is no fault: {event}", f"kinds: {', '.join(KINDS)}; nodes: {', '.join(NODES)}"
            )
    return msgspec.structs.replace(plan, events=tuple(sorted(plan.events, key=lambda event: event.at)))
