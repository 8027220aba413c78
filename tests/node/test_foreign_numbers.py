"""Numbers of others that only grow: who jumps too far is refused and counted, and nothing has changed (FLD-011).

One table over the cores. A row plays one number of one kind, and gives back what was refused and what the core then holds.
The epochs of roots, which a whole fleet has to agree about, are in tests/topology/test_wrong_roots.py.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.carrier.test_children import A, Play, sample
from tests.document.rig import B
from tests.document.test_times import asking
from tests.store.rig import chain, change
from tests.store.test_mesh import End
from weft.base.chance import Chance
from weft.base.effects import Source
from weft.base.errors import PeerError
from weft.base.now import SECOND, Now
from weft.base.ranges import RangeSet
from weft.cores.carrier.messages import ChildRefused
from weft.cores.store.bus import MQTT
from weft.cores.store.core import Store
from weft.cores.store.mesh import HEARD
from weft.cores.store.messages import LinkUp, StoreSettings
from weft.wire.document.messages import Time
from weft.wire.store import bus as codec
from weft.wire.store.mesh import Hello
from weft.wire.store.messages import Info, Ping, Publication, Update

TODAY = 1_795_000_000_000_000
"""Microseconds: what an era, and so a boot, is of a node that has a clock."""
Seen = tuple[list[str], Any]
"""Which refusals were counted, and what is held."""


def era(first: int, second: int) -> Seen:
    """A child of which something is held is greeted again."""
    play = Play()
    play.greet(b"1", era=first)
    play.hop(b"1", 1, sample(1, era=first), era=first)
    play.greet(b"2", era=second)
    link = play.machine.core.parent.links.of_node(A)
    told = [event.why for event in play.told(ChildRefused)]
    assert told == [code for code in play.machine.core.counters.refused if code == "era-jump"]
    return told, link.era if link else None


def beginning(first: int, second: int) -> Seen:
    """A child of which so many numbers are held says that all up to another one are safe."""
    play = Play()
    play.greet(b"1")
    play.hop(b"1", 1, *[sample(number) for number in range(1, first + 1)])
    play.greet(b"2", first=second + 1, next=second + 1)
    link = play.machine.core.parent.links.of_node(A)
    told = [event.why for event in play.told(ChildRefused)]
    assert told == [code for code in play.machine.core.counters.refused if code == "first-jump"]
    return told, link.upto if link else None


def boot(first: int, second: int) -> Seen:
    """A store node that is known by its start of before says hello on the mesh."""
    end = End("a", 1)
    refused = []
    for routing_id, said in ((b"1", first), (b"2", second)):
        hello = Hello(fabric="lab", node="b", boot=said, endpoint="10.0.0.2:27500")
        try:
            end.mesh.hear_call(hello, Source(HEARD, routing_id), Now(SECOND, SECOND))
        except PeerError as error:
            refused.append(error.code)
    return refused, max(caller.boot for caller in end.mesh.callers.values())


def info(**said: Any) -> Info:
    return Info(node="c", tick=0, tock=5, **said)


TOLD_OF: dict[str, Callable[[int], tuple[str, Any]]] = {
    "update": lambda tick: ("update", Update(change(f"b:{tick}", 5, "p", 1))),
    "chain": lambda tick: ("update", Update(change("c:1", 5, "p", 1, f"b:{tick}"))),
    "ping": lambda tick: ("wping", Ping(chain(f"c:1 b:{tick}"), 5)),
    "sender": lambda tick: ("info", Info(node="b", tick=tick, tock=5)),
    "ticks": lambda tick: ("info", info(ticks={"b": tick})),
    "known": lambda tick: ("info", info(known={"b": RangeSet([(tick, tick)])})),
    "deleted": lambda tick: ("info", info(deleted={"b": RangeSet([(tick, tick)])})),
}
"""All that somebody may say so that a change of `b` of that number is there."""


def ticks(how: str) -> Callable[[int, int], Seen]:
    """A store that has its place hears of changes of `b`."""

    def play(first: int, second: int) -> Seen:
        store = Store(StoreSettings(name="a"), Chance("a"))
        store.restore([], Now(0, 0))
        store.command(LinkUp("mqtt"), Now(0, 0))
        store.context.takes_any_tock = False
        for tick, way in ((first, "update"), (second, how)):
            topic, message = TOLD_OF[way](tick)
            source = Source(MQTT, topic.encode())
            store.receive(Publication(topic, codec.encode(message)), source, Now(SECOND, SECOND))
        codes = [code for kind, code in store.context.counters if kind == "malformed"]
        return codes, store.replica.book.top("b")

    return play


ROWS: list[tuple[str, Callable[[int, int], Seen], str, int, int]] = [
    ("era", era, "era-jump", TODAY, 288_230_376_151_711_744),
    ("era-after-1970", era, "era-jump", 7, 288_230_376_151_711_744),
    ("beginning", beginning, "first-jump", 7, 1_099_511_627_776),
    ("boot", boot, "boot-jump", TODAY, 288_230_376_151_711_744),
    *((f"tick-in-{how}", ticks(how), "tick-jump", 7, 4_294_967_296) for how in TOLD_OF),
]
"""Kind, player, refusal, the number that is known, and how far the next may be above it."""


@pytest.mark.proves("FLD-011", part="eras, boots, ticks and the beginnings of children grow by bounded steps")
@pytest.mark.parametrize("play, code, known, step", [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_whoever_jumped_to_the_end_locked_the_real_one_out(
    play: Callable[[int, int], Seen], code: str, known: int, step: int
) -> None:
    assert ([code], known) == play(known, 1 << 62)
    assert ([code], known) == play(known, known + step + 1)
    assert ([], known + step) == play(known, known + step)


@pytest.mark.parametrize("number", [1 << 62, 288_230_376_151_711_745])
def test_of_who_is_not_known_no_era_and_no_boot_of_the_far_end_is_taken(number: int) -> None:
    play = Play()
    assert "bad-hello" == play.greet(b"1", era=number).why
    end = End("a", 1)
    with pytest.raises(PeerError, match="boot-jump"):
        end.mesh.hear_call(Hello(fabric="lab", node="b", boot=number), Source(HEARD, b"1"), Now(SECOND, SECOND))
    assert {} == end.mesh.callers


def test_a_node_without_a_clock_began_in_1970_and_is_taken_when_it_knows_the_time() -> None:
    assert ([], TODAY) == era(5_000, TODAY)
    assert ([], TODAY) == boot(5_000, TODAY)


def test_a_document_took_its_time_from_a_peer_of_the_year_9999() -> None:
    rig = asking()
    before = rig.session_time
    rig.hear(B, Time(253_402_300_799.0))
    assert (before, True) == (rig.session_time, rig.mesh.is_virgin)
    rig.hear(B, Time(before + 1_000.0))
    assert (before + 1_000, False) == (round(rig.session_time), rig.mesh.is_virgin)


def test_whoever_only_says_to_be_an_older_start_takes_no_orders_away() -> None:
    end = End("a", 9)
    hello = Hello(fabric="lab", node="a", boot=1, endpoint="10.0.0.66:27500")
    end.mesh.hear_call(hello, Source(HEARD, b"1"), Now(SECOND, SECOND))
    assert "" == end.context.read_only
    assert "10.0.0.66:27500" in end.mesh.peers, "it is asked, where it says that it is"
