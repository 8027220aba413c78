"""A real MoaT-KV server, as far as others can see it: which changes it takes, how it pings, what it answers.

    n1 = Foreign("n1", cycle_s=2, gap_s=0.4)
    n1.found("hello"); n1.link_up(now)
    n1.hear("update", payload, now); n1.wake(now)       at or after n1.deadline()
    for topic, payload in n1.take(): ...

It is as strict as they are: what would end their process raises `Ended`. It shares no line with what it tests, but for the
bytes of paths.
"""

import random
from collections.abc import Iterable
from typing import Any, Final

import msgpack

from weft.base.now import SECOND, Now
from weft.wire.store.path import pack_path, parse

KEYS: Final[dict[str, set[str]]] = {
    "init": {"t", "node"},
    "ping": {"t", "node", "value", "history"},
    "hist": {"t", "value", "history"},
}
VERS: Final = {"t", "node", "version", "cycle", "gap", "nodes", "splits", "n_hosts", "force_in"}
INFO: Final = {"node", "tick", "tock", "ticks", "missing", "known", "deleted", "have", "node_drop", "reason", "prev"}
UPDATE: Final = {"node", "tick", "tock", "path", "value", "prev", "chain", "at", "by", "ack"}
NODES, SPLITS, HOSTS = 5, 4, 10
GONE: Final = object()
"""In place of a value: deleted."""
Link = tuple[str, int]
Value = list[int] | None


class Ended(AssertionError):
    """A message that a real server does not survive."""


def need(is_so: bool, why: object) -> None:
    if not is_so:
        raise Ended(why)


def unpacked(payload: bytes) -> Any:
    """One object, and nothing behind it."""
    try:
        return msgpack.unpackb(payload, ext_hook=msgpack.ExtType, strict_map_key=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise Ended(f"{error}: {payload.hex()}") from error


def chain_of(said: Any) -> list[Link]:
    links: list[Link] = []
    while said is not None:
        need(isinstance(said, dict) and isinstance(said.get("node"), str), said)
        need(isinstance(said.get("tick"), int) and said["tick"] >= 0, said)
        links.append((said["node"], said["tick"]))
        said = said.get("prev")
    return links


def map_of(links: list[Link]) -> dict[str, Any] | None:
    return {"node": links[0][0], "tick": links[0][1], "prev": map_of(links[1:])} if links else None


def path_of(said: Any) -> bytes:
    """A path's identity: its packed elements."""
    if isinstance(said, list):
        return b"".join(map(msgpack.packb, said))
    need(isinstance(said, msgpack.ExtType) and said.code == 3, said)
    return bytes(said.data)


def ticks_of(ranges: Any) -> set[int]:
    found: set[int] = set()
    for item in ranges:
        need(isinstance(item, int) or (isinstance(item, list) and len(item) == 2), item)
        found |= {item} if isinstance(item, int) else set(range(*item))
    return found


def ranges_of(ticks: Iterable[int]) -> list[Any]:
    parts: list[list[int]] = []
    for tick in sorted(ticks):
        if parts and parts[-1][1] == tick:
            parts[-1][1] += 1
        else:
            parts.append([tick, tick + 1])
    return [first if last == first + 1 else [first, last] for first, last in parts]


class Kept:
    """An entry."""

    def __init__(self, links: list[Link], tock: int, value: Any) -> None:
        self.links, self.tock, self.value = links, tock, value

    def covers(self, link: Link) -> bool:
        return any(node == link[0] and tick >= link[1] for node, tick in self.links)


class Turns:
    """One actor of such a server: the topic `ping` or `del`."""

    def __init__(self, server: "Foreign", topic: str, version: int, cycle: float, gap: float) -> None:
        self.server, self.topic, self.version = server, topic, version
        self.cycle, self.gap = round(cycle * SECOND), round(gap * SECOND)
        self.list: list[str] = []
        self.values: dict[str, Value] = {}
        self.due: dict[str, int] = {}
        self.lost: dict[str, Any] | None = None
        self.inits = 0
        self.tags: list[int] = []
        self.full = 0

    @property
    def value(self) -> Value:
        if self.topic == "del":
            return [self.tags[0], self.tags[-1]] if self.tags else None
        return [self.server.tock, self.server.tick] if self.server.is_ready else None

    @property
    def is_passive(self) -> bool:
        return self.topic == "del" and self.server.name not in self.server.deleters

    def start(self, now: Now) -> None:
        name = self.server.name
        self.say({"t": "init", "node": name})
        cycle, gap = self.cycle / SECOND, self.gap / SECOND
        self.say(
            {"t": "vers", "node": name, "version": self.version, "cycle": cycle, "gap": gap, "nodes": NODES}
            | {"splits": SPLITS, "n_hosts": HOSTS, "force_in": False}
        )
        if not self.is_passive:
            self.ping(now)

    def say(self, said: dict[str, Any]) -> None:
        self.server.out.append((self.topic, msgpack.packb(said)))

    def hear(self, said: Any, now: Now) -> None:
        need(isinstance(said, dict) and "t" in said, said)
        kind = said["t"]
        if kind == "vers":
            need(set(said) >= VERS and said["cycle"] >= 3 * said["gap"], said)
        else:
            need(kind in KEYS and set(said) == KEYS[kind], said)
        if kind == "init" and said["node"] == self.server.name:
            self.inits += 1
            need(self.inits <= 1, "two of one name")
        if kind in ("ping", "hist"):
            self.check(said)
            self.hear_ping(said, now)

    def check(self, said: dict[str, Any]) -> None:
        value, history = said["value"], said["history"]
        need(isinstance(history, list) and 1 <= len(history) <= SPLITS, said)
        need(all(isinstance(name, str) for name in history) and len(set(history)) == len(history), said)
        need("node" not in said or said["node"] == history[0], said)
        need(value is None or (isinstance(value, list) and list(map(type, value)) == [int, int]), said)

    def hear_ping(self, said: dict[str, Any], now: Now) -> None:
        node, value, history, is_hist = said["history"][0], said["value"], said["history"], said["t"] == "hist"
        if node == self.server.name:
            return
        self.values[node] = value
        if value is not None and self.topic == "ping":
            self.server.note(node, value[1], value[0])
            self.server.good(node, now)
        if self.lost is not None and self.lost["history"][0] == node and not is_hist:
            self.lost = None
            self.due.pop("hist", None)
        if self.list[:1] != [node]:
            self.compare(node, value, history, now, is_hist)
        elif not is_hist:
            self.go_on(now)
        self.count(is_hist)
        if self.is_passive and value is not None and self.full > len(self.server.deleters) > 0:
            self.server.purge(value[0])

    def compare(self, node: str, value: Value, history: list[str], now: Now, is_hist: bool) -> None:
        old = list(self.list)
        if history[1:2] == old[:1]:
            if not is_hist:
                self.push(node)
                self.go_on(now)
            return
        best = self.values.get(old[0]) if old else None
        if not old or (value or []) > (best or []) or (value == best and node < old[0]):
            self.list = history[:NODES]
            self.go_on(now)
        if history[1:2] != old[1:2] and self.value is not None and self.server.name in old:
            place = old.index(self.server.name)
            delay = round(self.gap * (1 - 0.5**place))
            self.lost = {"t": "hist", "value": best, "history": old[:SPLITS]}
            self.due["hist"] = now.mono + delay
            if self.topic == "ping":
                self.server.recover(now, self.cycle, place)

    def push(self, name: str) -> None:
        old = self.list
        rest = [each for each in old if each != name]
        drops = (name in old and old[-1] != name) or (name not in old and len(old) >= NODES)
        self.list = [name, *(rest[:-1] if drops else rest)]

    def go_on(self, now: Now) -> None:
        self.due.pop("tag", None)
        if self.is_passive:
            return
        chance, size = self.server.chance, len(self.list)
        ready = [index for index, name in enumerate(self.list) if self.values.get(name) is not None]
        if self.value is None and ready and 2 * ready[0] >= size > 1:
            gaps = 2 + chance.random() / 3
        elif self.server.name in self.list:
            place = self.list.index(self.server.name)
            gaps = 1 - 0.5 ** (size + 2 - place) if place else 2.0
        else:
            most = max(len(self.values), HOSTS)
            is_early = chance.random() * most * ((NODES - size) or most) < 1
            gaps = chance.random() / 3 if is_early else 1.5 + chance.random() / 2
        self.due["ping"] = now.mono + self.cycle + round(self.gap * gaps)

    def ping(self, now: Now) -> None:
        if self.is_passive:
            return
        self.push(self.server.name)
        value = self.values[self.server.name] = self.value
        self.say({"t": "ping", "node": self.server.name, "value": value, "history": self.list[:SPLITS]})
        self.go_on(now)
        self.count(False)
        self.due["tag"] = now.mono + self.gap

    def count(self, is_hist: bool) -> None:
        if not is_hist:
            self.full = self.full + 1 if set(self.server.deleters) <= set(self.list) else 0

    def tag(self, now: Now) -> None:
        names = self.server.deleters
        if self.topic == "ping":
            if self.value is not None:
                self.server.ask(only_if=True)
        elif names and set(names) <= set(self.list):
            self.tags = [*self.tags[-3:], self.server.tock]
            if self.full > len(names):
                self.server.purge(self.tags[0])

    def hist(self, now: Now) -> None:
        if self.lost is not None:
            self.say(self.lost)
            self.lost = None

    def wake(self, now: Now) -> None:
        for what in [what for what, at in self.due.items() if at <= now.mono]:
            if self.due.pop(what, None) is not None:
                {"ping": self.ping, "tag": self.tag, "hist": self.hist}[what](now)


class Foreign:
    """One server. `now` is handed in; what it says is taken."""

    def __init__(self, name: str, cycle_s: float = 10.0, gap_s: float = 2.0, seed: object = 0, links: int = 5) -> None:
        self.name, self.chance, self.links_max = name, random.Random(f"{name}/{seed}"), links
        self.tick = self.tock = 0
        self.is_ready = False
        self.out: list[tuple[str, bytes]] = []
        self.entries: dict[bytes, Kept] = {}
        self.tops: dict[str, int] = {}
        self.seen: dict[str, set[int]] = {}
        self.deleted: dict[str, set[int]] = {}
        self.buried: dict[bytes, int] = {}
        self.wanted: dict[str, set[int]] = {}
        self.answer_at: int | None = None
        self.due: dict[str, int] = {}
        self.on_good: Any = None
        """Called with the name of a server with data while this one has none: fill it and set `is_ready`."""
        self.turns = {"ping": Turns(self, "ping", 0, cycle_s, gap_s), "del": Turns(self, "del", 1, cycle_s, gap_s)}
        self.cycle = round(cycle_s * SECOND)

    # What people do

    def found(self, value: Any) -> None:
        self.is_ready = True
        self.write(":", value)

    def write(self, path: str, value: Any = GONE) -> Kept:
        """A change of its own; without a value it deletes."""
        key = pack_path(parse(path))
        old = self.entries.get(key)
        below = [link for link in old.links if link[0] != self.name] if old else []
        self.tick += 1
        self.tock += 1
        kept = Kept([(self.name, self.tick), *below][: self.links_max], self.tock, value)
        self.put(key, kept)
        self.say_update(key, kept)
        return kept

    def value(self, path: str) -> Any:
        kept = self.entries.get(pack_path(parse(path)))
        return GONE if kept is None else kept.value

    @property
    def deleters(self) -> list[str]:
        kept = self.entries.get(pack_path((None, "actor", "del")))
        return list(kept.value["nodes"]) if kept is not None and kept.value is not GONE else []

    def missing(self) -> dict[str, set[int]]:
        lacks = {node: set(range(1, top + 1)) - self.seen.get(node, set()) for node, top in self.tops.items()}
        return {node: ticks for node, ticks in lacks.items() if ticks}

    def copy_to(self, other: "Foreign") -> None:
        """A download."""
        for key, kept in self.entries.items():
            other.take_change(key, Kept(list(kept.links), kept.tock, kept.value))
        for node, ticks in self.seen.items():
            other.seen.setdefault(node, set()).update(ticks)
            other.note(node, max(ticks, default=0), self.tock)
        other.is_ready = True

    # What is heard

    def link_up(self, now: Now) -> None:
        for turns in reversed(self.turns.values()):
            turns.start(now)

    def hear(self, topic: str, payload: bytes, now: Now) -> None:
        said = unpacked(payload)
        if topic in self.turns:
            self.turns[topic].hear(said, now)
        elif topic == "update":
            self.hear_update(said)
        elif topic == "info":
            self.hear_info(said, now)

    def hear_update(self, said: Any) -> None:
        need(isinstance(said, dict) and set(said) <= UPDATE, said)
        need({"node", "tick", "tock", "path"} <= set(said), said)
        links = chain_of(said.get("chain") or said)
        need(len({node for node, _ in links}) == len(links) and all(tick > 0 for _, tick in links), said)
        if said["node"] == self.name and "chain" not in said:
            return
        self.note(said["node"], said["tick"], said["tock"])
        self.take_change(path_of(said["path"]), Kept(links, said["tock"], said.get("value", GONE)))

    def take_change(self, key: bytes, new: Kept) -> None:
        """Their rule: the later arrival of equals, and any write over a deletion that does not know it."""
        for node, tick in new.links:
            self.note(node, tick, new.tock)
            self.seen.setdefault(node, set()).add(tick)
        old = self.entries.get(key)
        if old is not None:
            if old.links[0] == new.links[0] or old.covers(new.links[0]):
                return
            if old.value is not GONE and not new.covers(old.links[0]) and new.tock < old.tock:
                return
        self.put(key, new)

    def put(self, key: bytes, kept: Kept) -> None:
        self.entries[key] = kept
        self.buried.pop(key, None)
        if kept.value is GONE:
            self.buried[key] = self.tock
        for node, tick in kept.links:
            self.seen.setdefault(node, set()).add(tick)
            self.tops[node] = max(self.tops.get(node, 0), tick)

    def note(self, node: str, tick: int, tock: int) -> None:
        self.tock = max(self.tock, tock)
        if node and tick:
            self.tops[node] = max(self.tops.get(node, 0), tick)

    def hear_info(self, said: Any, now: Now) -> None:
        need(isinstance(said, dict) and set(said) <= INFO and {"node", "tick", "tock"} <= set(said), said)
        if said["node"] == self.name:
            return
        self.note(said["node"], said["tick"], said["tock"])
        for node, tick in said.get("ticks", {}).items():
            self.note(node, tick or 0, 0)
        for node, ranges in said.get("known", {}).items():
            self.seen.setdefault(node, set()).update(ticks_of(ranges))
            self.note(node, max(ticks_of(ranges), default=0), 0)
        for node, ranges in said.get("deleted", {}).items():
            self.forget(node, ticks_of(ranges))
        for node, ranges in said.get("missing", {}).items():
            self.wanted.setdefault(node, set()).update(ticks_of(ranges))
            if self.answer_at is None:
                self.answer_at = now.mono + round(self.cycle * (1 + self.chance.random() / 3))

    def forget(self, node: str, ticks: set[int]) -> None:
        """An entry goes if its chain has such a tick: the danger of naming links of live entries."""
        self.seen.setdefault(node, set()).update(ticks)
        self.deleted.setdefault(node, set()).update(ticks)
        for key, kept in list(self.entries.items()):
            if any(name == node and tick in ticks for name, tick in kept.links):
                del self.entries[key]
                self.buried.pop(key, None)

    def purge(self, before: int) -> None:
        for key, tock in list(self.buried.items()):
            if tock < before:
                for node, tick in self.entries[key].links:
                    self.deleted.setdefault(node, set()).add(tick)
                del self.entries[key], self.buried[key]

    def good(self, node: str, now: Now) -> None:
        if not self.is_ready and self.on_good is not None:
            self.on_good(node)

    # What is said

    def say(self, topic: str, said: dict[str, Any]) -> None:
        self.out.append((topic, msgpack.packb(said)))

    def say_update(self, key: bytes, kept: Kept, resend: bool = False) -> None:
        said: dict[str, Any] = {"path": msgpack.ExtType(3, key), "tock": kept.tock}
        if kept.value is not GONE:
            said["value"] = kept.value
        if resend:
            chain = map_of(kept.links[:2])
            if chain is not None and len(kept.links) > 2:
                (chain["prev"] or {}).pop("prev")
            said |= {"chain": chain, "node": self.name, "tick": self.tick}
        else:
            said |= map_of(kept.links) or {}
        self.say("update", said)

    def say_info(self, **said: Any) -> None:
        self.tock += 1
        self.say("info", {"node": self.name, "tick": self.tick, "tock": self.tock, **said})

    def ask(self, only_if: bool = False) -> None:
        lacks = self.missing()
        if lacks or not only_if:
            self.say_info(missing={node: ranges_of(ticks) for node, ticks in lacks.items()})

    def recover(self, now: Now, clock: int, place: int) -> None:
        self.due.setdefault("ticks", now.mono + round(clock * (1 - 0.5**place)))
        self.due.setdefault("missing", now.mono + round(clock * (1 - 0.5 ** (place + 1))))

    def answer(self) -> None:
        """Heads with two links, then what is known to be replaced."""
        known: dict[str, list[Any]] = {}
        gone: dict[str, list[Any]] = {}
        wanted, self.wanted, self.answer_at = self.wanted, {}, None
        heads = {kept.links[0]: key for key, kept in self.entries.items()}
        for node, ticks in wanted.items():
            deleted = ticks & self.deleted.get(node, set())
            seen = (ticks & self.seen.get(node, set())) - deleted
            for tick in sorted(seen):
                if (node, tick) in heads:
                    self.say_update(heads[node, tick], self.entries[heads[node, tick]], resend=True)
            if left := {tick for tick in seen if (node, tick) not in heads}:
                known[node] = ranges_of(left)
            if deleted:
                gone[node] = ranges_of(deleted)
        self.say_info(known=known, deleted=gone)

    def state(self) -> dict[str, Any]:
        """`get_state` with `nodes` and `missing`."""
        missing = {node: ranges_of(ticks) for node, ticks in self.missing().items()}
        return {"nodes": dict(self.tops), "missing": missing, "tock": self.tock}

    def check_deleted(self, nodes: dict[str, Any]) -> None:
        """Whatever heads no entry here is called deleted to everybody, also what was never heard of."""
        heads = {kept.links[0] for kept in self.entries.values()}
        gone = {node: [tick for tick in ticks_of(said) if (node, tick) not in heads] for node, said in nodes.items()}
        deleted = {node: ranges_of(ticks) for node, ticks in gone.items() if ticks}
        if deleted:
            self.say("info", {"node": "", "tick": 0, "tock": self.tock, "deleted": deleted})

    def take(self) -> list[tuple[str, bytes]]:
        out, self.out = self.out, []
        return out

    # Time

    def wake(self, now: Now) -> None:
        for turns in self.turns.values():
            turns.wake(now)
        if self.answer_at is not None and self.answer_at <= now.mono:
            self.answer()
        for what in [what for what, at in self.due.items() if at <= now.mono]:
            del self.due[what]
            if what == "ticks":
                self.say_info(ticks=dict(self.tops))
            else:
                self.ask()

    def deadline(self) -> int | None:
        dues = [*self.due.values(), *(at for turns in self.turns.values() for at in turns.due.values())]
        return min([*dues, *([self.answer_at] if self.answer_at is not None else [])], default=None)
