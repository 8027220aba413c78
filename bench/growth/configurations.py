"""The configuration core, by keys and by children."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from bench.configuration import NOW, VALUE, portions
from bench.growth.meter import Meter
from weft.base.chance import Chance
from weft.base.effects import Confirm, Confirmed, Connect, Effect, Reply, Send, Source
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.messages import (
    ConfigurationSettings,
    FollowParent,
    ListKeys,
    NoteApplied,
    TakeRoot,
    Write,
    WriteKeys,
)
from weft.wire.envelope import Asked
from weft.wire.replication import TIP, ICanHaz, decode_answer, encode_answer

TOPIC: Final = 10
"""Keys of a topic: what one group's sensors replicate."""
ORDER: Final = 1_000
"""Writes of an order, and keys of a page."""
DEEDS: Final = 100
CHILD_KEYS: Final = 1_000
"""Keys of the root whose children are counted."""
FANOUT: Final = 25
"""Children of a voter."""


def topic_of(number: int) -> str:
    return f"/CONFIG/g{number // TOPIC:06}/"


def key_of(number: int) -> str:
    return f"{topic_of(number)}m{number % TOPIC}"


def settings(keys: int) -> ConfigurationSettings:
    return ConfigurationSettings(keys_max=keys + ORDER, bytes_max=1 << 40)


def empty(keys: int) -> Configuration:
    """A root with room for so many keys."""
    core = Configuration(settings(keys), b"p" * 16, Chance("growth"))
    core.command(TakeRoot(0), NOW)
    core.effects()
    return core


def turn(core: Configuration) -> list[Effect]:
    """As the shell ends each of them."""
    effects = core.effects()
    core.deadline()
    return effects


def write(core: Configuration, keys: Iterable[str], value: bytes = VALUE) -> None:
    core.command(WriteKeys(1, tuple(Write(key, value) for key in keys), ack="local"), NOW)
    turn(core)


def filled(keys: int) -> Configuration:
    core = empty(keys)
    for first in range(0, keys, ORDER):
        write(core, map(key_of, range(first, min(first + ORDER, keys))))
    return core


def keys(count: int, meter: Meter) -> None:
    """A root of n keys of 64 bytes, ten in a topic: set in orders of 1,000, listed in pages, handed over, restored.

    A join is one new key and a snapshot of one topic, a leave deletes that key, and a change writes one key anew.
    """
    with meter.memory("the root"), meter.cpu("n keys set"):
        core = filled(count)
    with meter.cpu("100 changes"):
        for number in range(DEEDS):
            write(core, [key_of(number * count // DEEDS)], b"%064d" % number)
    places = [f"/TOPO/g{number % 7}/{number:032x}" for number in range(DEEDS)]
    _join_and_leave(core, places, count, meter)
    with meter.cpu("n keys listed in pages"):
        assert count == sum(map(len, _pages(core)))
    _hand_over(core, count, meter)
    records = list(enumerate(core.condense(), 1))
    with meter.cpu("n keys restored"):
        again = Configuration(settings(count), b"p" * 16, Chance("growth"))
        again.restore(records, NOW)
    assert len(again.store.pairs) == count


def _join_and_leave(core: Configuration, places: list[str], count: int, meter: Meter) -> None:
    for what, value in (("100 joins", VALUE), ("100 leaves, each before a join", b"")):
        with meter.cpu(what):
            for number, place in enumerate(places):
                write(core, [place], value)
                assert list(portions(core, topic_of(number * count // DEEDS)))


def _pages(core: Configuration) -> Iterator[tuple[Any, ...]]:
    after, is_more = "", True
    while is_more:
        core.command(ListKeys(1, "/CONFIG/", ORDER, after), NOW)
        (listed,) = [effect.answer for effect in turn(core) if isinstance(effect, Reply)]
        yield listed.pairs
        after, is_more = listed.pairs[-1][0], listed.is_more


def _hand_over(core: Configuration, count: int, meter: Meter) -> None:
    """A snapshot from the root to a fresh replica."""
    replica = Configuration(settings(count), b"r" * 16, Chance("growth"))
    replica.command(FollowParent("p:1", ("/CONFIG/",), False), NOW)
    (tag,) = [effect.tag for effect in replica.effects() if isinstance(effect, Connect) and effect.channel == "ask"]
    given, is_more = portions(core, "/CONFIG/"), True
    while is_more:
        with meter.cpu("snapshot of n keys served"):
            frames = [encode_answer(answer) for answer in next(given, ())]
        with meter.cpu("snapshot of n keys adopted"):
            for message in frames:
                replica.receive(decode_answer(message), Source("ask", tag), NOW)
            turn(replica)
        is_more = bool(frames)
    assert len(replica.store.pairs) == count


def children(count: int, meter: Meter) -> None:
    """A root of 1,000 keys with n children, one in 25 a voter: all ask for their topic before any has its answer.

    Then each asks for the tip of its topic, and reports the number that it applies.
    """
    core = filled(CHILD_KEYS)
    peers = [b"child%011d" % number for number in range(count)]
    topics = [topic_of(number % CHILD_KEYS) for number in range(count)]
    with meter.cpu("n snapshots"):
        waiting: list[Effect] = []
        for peer, topic in zip(peers, topics, strict=True):
            core.receive(Asked((b"",), ICanHaz(topic, wants_digest=True)), Source("serve", peer), NOW)
            waiting += turn(core)
        assert count == sum(isinstance(effect, Confirm) for effect in waiting)
        _confirm_all(core, waiting)
    with meter.cpu("n tips"):
        for peer, topic in zip(peers, topics, strict=True):
            core.receive(Asked((b"",), ICanHaz(TIP + topic)), Source("serve", peer), NOW)
            assert any(isinstance(effect, Send) for effect in turn(core))
    tally, voters = core.store.tally, count // FANOUT + 1
    with meter.cpu("n reports"):
        for number, peer in enumerate(peers):
            report = NoteApplied(peer, core.store.number, number % FANOUT == 0, voters, tally.count, tally.digest.hex())
            core.command(report, NOW)
            turn(core)


def _confirm_all(core: Configuration, waiting: list[Effect]) -> None:
    """Until every child has all of its answer."""
    while confirms := [effect for effect in waiting if isinstance(effect, Confirm)]:
        for each in confirms:
            core.command(Confirmed(each.channel, each.peer, each.count, each.token, 0), NOW)
        core.wake(NOW)
        waiting = turn(core)
    assert not core.serving.streams
