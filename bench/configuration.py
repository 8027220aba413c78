"""How fast configuration is decoded and applied, and a snapshot is encoded, on one core; no sockets, no disk.

    python bench/configuration.py [--updates 50000] [--keys 100000]

Values are 64 bytes. Ours: five frames decoded, judged, journaled as a record, applied, told (sensor), forwarded
(collector). The peer in the same run is the least that any child must do: the same five frames, the number unpacked, the
properties through `json`, key and value put into a dict. A snapshot: ours goes from the store through the core's
portions into frames; the peer formats the same frames in a loop over a dict.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator

from weft.base.chance import Chance
from weft.base.effects import Confirm, Confirmed, Connect, Send, Source
from weft.base.now import SECOND, Now
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.messages import ConfigurationSettings, FollowParent, TakeRoot, Write, WriteKeys
from weft.wire.envelope import Answer, Asked
from weft.wire.replication import (
    ICanHaz,
    KThxBai,
    KvPub,
    decode_answer,
    decode_update,
    encode_update,
    seal_answer,
)

NOW = Now(SECOND, SECOND)
VALUE = b"v" * 64
Frames = list[bytes]


def spent(act: Callable[[], object]) -> float:
    begin = time.process_time()
    act()
    return time.process_time() - begin


def replica(topics: tuple[str, ...], *, serves: bool, is_kept: bool) -> tuple[Configuration, Source]:
    """A replica that runs, and where its updates come from."""
    core = Configuration(ConfigurationSettings(is_kept=is_kept), b"r" * 16, Chance("bench"))
    core.command(FollowParent("p:1", topics, serves), NOW)
    tags = {effect.channel: effect.tag for effect in core.effects() if isinstance(effect, Connect)}
    for topic in topics:
        for subtree in (f"/.chains{topic}", topic) if serves else (topic,):
            core.receive(KThxBai(subtree, 0), Source("ask", tags["ask"]), NOW)
    core.effects()
    return core, Source("updates", tags["updates"])


def updates(count: int, keys: int) -> list[Frames]:
    return [encode_update(KvPub(f"/CONFIG/web/metric/m{n % keys}", n + 1, b"u" * 16, VALUE, n)) for n in range(count)]


def follow(frames: list[Frames], core: Configuration, source: Source) -> None:
    for message in frames:
        core.receive(decode_update(message), source, NOW)
        core.effects()


def follow_in_turns(frames: list[Frames], core: Configuration, source: Source) -> None:
    """As a shell that hears a hundred messages in one turn could: effects are asked for once."""
    for at in range(0, len(frames), 100):
        for message in frames[at : at + 100]:
            core.receive(decode_update(message), source, NOW)
        core.effects()


def follow_plainly(frames: list[Frames]) -> None:
    store: dict[str, tuple[int, bytes, bytes]] = {}
    last = 0
    for key, number, uuid, properties, value in frames:
        known = json.loads(properties)
        own = int.from_bytes(number)
        if known["prev"] == last:
            store[key.decode()] = (own, uuid, value)
        last = own


def filled(keys: int) -> Configuration:
    core = Configuration(ConfigurationSettings(is_kept=False), b"p" * 16, Chance("bench"))
    core.command(TakeRoot(0), NOW)
    for at in range(0, keys, 1_000):
        writes = tuple(Write(f"/CONFIG/web/metric/m{n:06}", VALUE) for n in range(at, min(at + 1_000, keys)))
        core.command(WriteKeys(1, writes, ack="local"), NOW)
        core.effects()
    return core


def portions(core: Configuration, subtree: str, *, is_packed: bool = False) -> Iterator[list[Answer]]:
    """A snapshot of a subtree as a child gets it: each portion was sent before the next one comes."""
    ask = ICanHaz(subtree, wants_digest=True, takes_packs=is_packed)
    core.receive(Asked((b"",), ask), Source("serve", b"c"), NOW)
    while True:
        effects = core.effects()
        answers = [effect.message for effect in effects if isinstance(effect, Send) and effect.channel == "serve"]
        if not answers:
            return
        yield answers
        for effect in effects:
            if isinstance(effect, Confirm):
                core.command(Confirmed(effect.channel, effect.peer, effect.count, effect.token, 0), NOW)
        core.wake(NOW)


def serve(core: Configuration, *, is_packed: bool = False) -> list[Frames]:
    """A whole snapshot into frames, through the core."""
    found = portions(core, "/CONFIG/", is_packed=is_packed)
    return [seal_answer(answer) for answers in found for answer in answers]


def adopt(frames: list[Frames], keys: int) -> None:
    """A whole snapshot from frames until users are told."""
    core = Configuration(ConfigurationSettings(), b"r" * 16, Chance("bench"))
    core.command(FollowParent("p:1", ("/CONFIG/",), False), NOW)
    tags = {effect.channel: effect.tag for effect in core.effects() if isinstance(effect, Connect)}
    source = Source("ask", tags["ask"])
    for at in range(0, len(frames), 100):
        for message in frames[at : at + 100]:
            core.receive(decode_answer(message), source, NOW)
        core.effects()
    assert (keys, 0) == (len(core.store.pairs), core.counters.unproved)


def adopt_plainly(frames: list[Frames]) -> None:
    store = {message[1].decode(): (int.from_bytes(message[2]), message[5]) for message in frames}
    assert len(store) == len(frames)


def serve_plainly(store: dict[str, tuple[int, bytes]]) -> None:
    for key in sorted(store):
        number, value = store[key]
        frames = [b"", key.encode(), number.to_bytes(8), b"", b"", value]
        assert frames


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=50_000)
    parser.add_argument("--keys", type=int, default=100_000)
    arguments = parser.parse_args()
    frames = updates(arguments.updates, 1_000)
    plain = min(spent(lambda: follow_plainly(frames)) for _ in range(3))
    print(f"{'what':<46}{'per second':>12}{'ratio':>8}")
    print(f"{'updates: dict and json':<46}{arguments.updates / plain:>12,.0f}{1:>8.2f}")
    sensor = (("/CONFIG/web/",), False)
    collector = (("/",), True)
    rows = {
        "updates: sensor, nothing kept, in turns of 100": (*sensor, False, follow_in_turns),
        "updates: sensor, nothing kept, one by one": (*sensor, False, follow),
        "updates: sensor, journaled, in turns of 100": (*sensor, True, follow_in_turns),
        "updates: collector, journaled, in turns of 100": (*collector, True, follow_in_turns),
    }
    for name, (topics, serves, is_kept, act) in rows.items():
        best = 1e9
        for _ in range(3):
            core, source = replica(topics, serves=serves, is_kept=is_kept)
            best = min(best, spent(lambda core=core, source=source, act=act: act(frames, core, source)))  # type: ignore[misc]  # bound now
            assert core.counters.applied == arguments.updates
        print(f"{name:<46}{arguments.updates / best:>12,.0f}{plain / best:>8.2f}")
    root = filled(arguments.keys)
    store = {pair.key: (pair.number, pair.value) for pair in root.store.pairs.values()}
    plain = min(spent(lambda: serve_plainly(store)) for _ in range(3))
    singly, packed = serve(root), serve(root, is_packed=True)
    assert arguments.keys + 1 == len(singly)
    plain_taken = min(spent(lambda: adopt_plainly(singly)) for _ in range(3))
    print(f"{'snapshot: loop over a dict':<46}{arguments.keys / plain:>12,.0f}{1:>8.2f}")
    for name, is_packed in (("KVSYNC", False), ("KVPACK", True)):
        ours = min(spent(lambda is_packed=is_packed: serve(root, is_packed=is_packed)) for _ in range(3))  # type: ignore[misc]  # bound now
        line = f"snapshot: {name} encoded, through the core"
        print(f"{line:<46}{arguments.keys / ours:>12,.0f}{plain / ours:>8.2f}")
    print(f"{'snapshot: dict from frames':<46}{arguments.keys / plain_taken:>12,.0f}{1:>8.2f}")
    for name, frames_taken in (("KVSYNC", singly), ("KVPACK", packed)):
        ours = min(spent(lambda taken=frames_taken: adopt(taken, arguments.keys)) for _ in range(3))  # type: ignore[misc]  # bound now
        line = f"snapshot: {name} decoded, journaled, adopted"
        print(f"{line:<46}{arguments.keys / ours:>12,.0f}{plain_taken / ours:>8.2f}")


if __name__ == "__main__":
    main()
