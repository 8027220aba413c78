"""One run: start, write, play faults, end them, wait, judge (FLD-040)."""

import json
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import zmq

from weft.torture import judge, limits
from weft.torture.book import Book
from weft.torture.bridged import Caller, Far, Tapper
from weft.torture.clients import (
    Away,
    Client,
    Configuration,
    Documents,
    Machine,
    Messages,
    Reader,
    Service,
    Stored,
    ask,
)
from weft.torture.files import BROKER, DOCUMENTS, FAR, STORES, broker_port
from weft.torture.keys import leaks
from weft.torture.lookers import Register, Watcher
from weft.torture.plan import COLLECTORS, NODES, PIPELINE, ROOT, SENSORS, STRANGER, Event, Plan
from weft.torture.room import step_into
from weft.torture.strangers import Stranger
from weft.torture.world import World, frames, keep_states

LEADERS: Final = (ROOT, *COLLECTORS)
SERVED: Final = ("sensor-1", "sensor-3", "sensor-5")
BEHIND_FAR: Final = ("sensor-2", "sensor-4")
CALLERS: Final = ("sensor-1", "sensor-5")
MISSED: Final = (OSError, zmq.ZMQError, EOFError, Away)


class Outcome(NamedTuple):
    """The result of a run."""

    plan: Plan
    wrong: list[str]
    """Empty: every promise was kept."""
    story: list[str]
    figures: dict[str, Any]
    directory: Path


class Desk(threading.Thread):
    """A thread on one machine that runs the queries it is given."""

    def __init__(self, at: Machine) -> None:
        super().__init__(name=f"desk at {at.name}", daemon=True)
        self.at = at
        self._asked: queue.Queue[tuple[Callable[..., Any], tuple[Any, ...], queue.Queue[Any]] | None] = queue.Queue()

    def run(self) -> None:
        """Until `end`."""
        step_into(self.at.namespace)
        context: zmq.Context[Any] = zmq.Context()
        while (asked := self._asked.get()) is not None:
            look, more, answer = asked
            try:
                answer.put(look(self.at, context, *more))
            except Exception as error:  # noqa: BLE001  # the caller examines it
                answer.put(error)
        context.destroy(0)

    def ask(self, look: Callable[..., Any], *more: Any) -> Any:
        """The result of a query; None: the node is away."""
        answer: queue.Queue[Any] = queue.Queue()
        self._asked.put((look, more, answer))
        result = answer.get(timeout=limits.SETTLE_S)
        if isinstance(result, MISSED):
            return None
        if isinstance(result, Exception):
            raise result
        return result

    def end(self) -> None:
        self._asked.put(None)
        self.join(5)


def status_of(at: Machine, _: Any) -> dict[str, Any]:
    """The status of a node."""
    status, answer = ask(at, "/status", patience_s=3.0)
    if status != 200:
        raise Away(at.name)
    return dict(answer)


def clients_of(machines: dict[str, Machine], book: Book, seed: str) -> Iterator[Client]:
    """All clients of a run."""
    for kind, names in (
        (Configuration, LEADERS), (Messages, SENSORS), (Reader, NODES), (Documents, DOCUMENTS),
        (Watcher, STORES), (Register, LEADERS),
    ):  # fmt: skip
        for name in names:
            yield kind(machines[name], book, seed)
    for name in STORES:
        yield Stored(machines[name], book, seed, STORES)
    broker, far = machines[BROKER], machines[FAR]
    near = f"{broker.inside}:{broker_port(broker)}"
    for name in SERVED:
        yield Service(_beside(broker, machines[name]), book, seed, near)
    yield Tapper(broker, book, seed, broker_port(broker))
    behind = f"{far.inside}:{broker_port(far)}"
    services = [Far(_beside(far, machines[name]), book, seed, behind) for name in BEHIND_FAR]
    yield from services
    for name in CALLERS:
        yield Caller(_beside(broker, machines[name]), book, seed, near, services)


def _beside(broker: Machine, at: Machine) -> Machine:
    """Where a plain program runs: on the broker's machine if the broker has keys, because then it hears only that one."""
    return at._replace(namespace=broker.namespace) if broker.is_closed else at


Trees = dict[str, list[dict[str, Any]]]
"""The rows of the tree of each root."""


def trees_of(statuses: Mapping[str, dict[str, Any] | None]) -> Trees:
    """Who is a root, by what the nodes say. In need any node may become one."""
    return {name: status["tree"] for name, status in statuses.items() if status and status.get("level") == "root"}


def leaves_in(trees: Trees) -> set[str]:
    """The nodes that stand in a tree with nobody below them."""
    placed = {(str(row.get("name")), row.get("level")) for tree in trees.values() for row in tree}
    inner = {name for name, level in placed if level != "leaf"} | trees.keys()
    return {name for name, _ in placed} - inner


def upwards(trees: Trees) -> tuple[tuple[str, ...], ...]:
    """All nodes in the order of the road: leaves, then those with others below them, then roots.

    Without a tree, by their roles.
    """
    leaves = leaves_in(trees) or set(SENSORS)
    below = tuple(name for name in NODES if name in leaves)
    return below, tuple(name for name in NODES if name not in leaves and name not in trees), tuple(trees)


class Run:
    """Plays one plan. `say` is called with progress messages."""

    def __init__(self, world: World, plan: Plan, say: Callable[[str], None]) -> None:
        self.world, self.plan, self.say = world, plan, say
        self.book = Book(world.place / "history.jsonl")
        self.desks = {name: Desk(world.machines[name]) for name in NODES}
        self.clients = [*clients_of(world.machines, self.book, plan.seed)]
        self.played: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.at_rest = judge.taken_in([])
        self.replicas: dict[str, dict[str, dict[str, Any]]] = {}
        self.is_interrupted = False
        self.placed: dict[str, list[str]] = {}
        """The nodes in the tree of each root, at the end."""
        has_stranger = world.operator is not None and STRANGER in world.machines
        world.rewinder.report(self.book, world.say, lambda name: self.desks[name].ask(status_of))
        self.stranger = Stranger(world.machines, world.knocked_at, self.book) if has_stranger else None

    def go(self) -> Outcome:
        """Run the plan from the start of the processes to the verdict."""
        try:
            self._begin()
            self._hurt()
            self._settle()
            self._knock()
            self._end()
        finally:
            for client in self.clients:
                client.is_over.set()
            for desk in self.desks.values():
                desk.end()
            self.world.close()
        self._judge()
        self.book.close()
        if self.wrong:
            keep_states(self.world)
        return Outcome(self.plan, self.wrong, self.world.story, self._figures(), self.world.place)

    # Playing

    def _begin(self) -> None:
        self.world.start()
        for desk in self.desks.values():
            desk.start()
        self.say(f"{len(self.world.processes)} processes start in {self.world.place}")
        late = self._until(self._unready, limits.JOIN_S)
        if late:
            self.wrong.append(f"not ready within {limits.JOIN_S:.0f} s: {late}")
            return
        readers = [client for client in self.clients if isinstance(client, Reader)]
        for reader in readers:
            reader.start()
        if self._until(lambda: "" if all(reader.stands for reader in readers) else "readers", limits.JOIN_S):
            self.wrong.append("the readers do not stand in the chains")
        for client in self.clients:
            if client not in readers:
                client.start()
        if self.stranger is not None:
            self.stranger.start()
        self.world.say("all have their places; clients begin")

    def _unready(self) -> str:
        """Nodes that have no place yet."""
        for name in NODES:
            status = self.desks[name].ask(status_of)
            cores = status["cores"] if status else {}
            carrier, configuration = cores.get("carrier", {}), cores.get("configuration", {})
            is_placed = status and (status.get("level") == "root" or carrier.get("state") == "OPEN")
            if not is_placed or not configuration.get("number"):
                return f"{name} has no place"
            if name in STORES and not cores.get("store", {}).get("serves"):
                return f"the store of {name} does not serve"
        return ""

    def _until(self, unmet: Callable[[], str], patience_s: float) -> str:
        """Wait, with a limit, until nothing is unmet; returns what still is."""
        ends_at = time.monotonic() + patience_s
        while (what := unmet()) and time.monotonic() < ends_at and not self.is_interrupted:
            self.world.watch()
            time.sleep(limits.LOOK_S)  # tidy: other processes send no signal; bounded above
        return what

    def _hurt(self) -> None:
        """Play the plan: start each fault at its instant, and end it after its span or at the end of the run."""
        if self.wrong:
            return
        began = time.monotonic()
        acts = sorted(self._acts(), key=lambda act: act[0])
        while (acts or time.monotonic() - began < self.plan.span) and not self.is_interrupted:
            now = time.monotonic() - began
            while acts and acts[0][0] <= now:
                _, is_begin, event = acts.pop(0)
                self._act(event, is_begin=is_begin)
            self.world.watch()
            time.sleep(min(limits.LOOK_S, max(0.0, acts[0][0] - now)) if acts else limits.LOOK_S)  # tidy: as above
        ahead = [event for _, is_begin, event in acts if is_begin]
        for event in [event for _, is_begin, event in acts if not is_begin and event not in ahead]:
            self._act(event, is_begin=False)

    def _acts(self) -> Iterator[tuple[float, bool, Event]]:
        for event in self.plan.events:
            is_there = set(event.who) <= set(self.world.processes)  # a plan with a pipeline may be played without one
            if is_there and event.kind in self.world.kinds() and event.at < self.plan.span:
                yield event.at, True, event
                yield min(event.at + event.span, self.plan.span), False, event

    def _act(self, event: Event, *, is_begin: bool) -> None:
        if is_begin:
            self.played[event.kind] += 1
            self.world.play(event)
            self.say(self.world.story[-1])
        else:
            self.world.undo(event)

    # Coming to rest

    def _settle(self) -> None:
        """Clients stop writing; wait until everything that must become equal is equal."""
        self.world.heal()
        self.book.note("", "info", "healed")
        if self.wrong:
            return
        for client in self.clients:
            client.rest()
        self.say("healed; waiting until all replicas are equal")
        began = time.monotonic()
        late = self._until(self._unequal, limits.SETTLE_S)
        self.say(late or "at rest")
        self.world.say(f"at rest after {time.monotonic() - began:.1f} s" if not late else f"never at rest: {late}")
        if late:
            self.wrong.append(f"at rest: not within {limits.SETTLE_S:.0f} s after the healing: {late}")

    def _unequal(self) -> str:
        """What is not equal, or not answered, yet."""
        operator = self.world.operator
        if late := self._unready() or (operator.waits_for if operator is not None else ""):
            return late
        if waiting := [each for each in self.clients if isinstance(each, Messages) and not each.is_answered()]:
            return f"{waiting[0].name} waits for {len(waiting[0].open)} statuses"
        for protocol, (names, look) in judge.REPLICAS.items():
            held = {name: self.desks[name].ask(look) for name in self._holders(protocol, names)}
            away = [name for name in held if held[name] is None]
            if away:
                return f"{protocol}: {', '.join(away)} does not answer"
            self.replicas[protocol] = held
            words = {name: judge.digest(each) for name, each in held.items()}
            if len(set(words.values())) > 1:
                shown = ", ".join(f"{name} {len(held[name])} {word[:8]}" for name, word in words.items())
                return f"{protocol} differs: {shown}"
        return self._unsaid()

    def _holders(self, protocol: str, names: tuple[str, ...]) -> list[str]:
        """The nodes that hold all data now, by the root's tree: a former root may be a leaf, which has only its own topics."""
        if protocol == "keys" and self.world.operator is None:
            return []  # nodes without keys; those of an older version do not know the question
        if protocol not in ("configuration", "registers"):
            return list(names)
        trees = trees_of({name: self.desks[name].ask(status_of) for name in NODES})
        leaves = leaves_in(trees)
        return [name for name in dict.fromkeys((*trees, *names)) if name not in leaves]

    def _unsaid(self) -> str:
        """What is still missing: services in the catalog, or acknowledged messages at readers; empty: nothing."""
        changing = [name for name, curve in self.replicas["keys"].get(ROOT, {}).items() if len(curve) != 1]
        if changing:
            return f"keys: {changing} have more than one"
        if late := self._unlisted():
            return late
        for watcher in self._watchers():
            if watcher.seen != self.replicas["store"][watcher.at.name]:
                return f"store: the {watcher.title} has not seen all of it"
        unseen = {text for text, values in self.book.possible("readers").items() if None not in values} - set(
            self._seen()
        )
        return f"readers: {len(unseen)} not seen: {sorted(unseen)[:3]}" if unseen else ""

    def _unlisted(self) -> str:
        """Services that a broker lists wrongly, its own or those behind its bridge; empty: none."""
        for protocol, brokers in judge.CATALOGS.items():
            possible = self.book.possible(protocol)
            for broker, behind in brokers if possible else ():
                listed = self.desks[broker].ask(judge.catalog_of, sorted(possible), behind)
                if listed is None:
                    return f"{protocol}: the broker at {broker} does not answer"
                self.replicas.setdefault(protocol, {})[broker] = listed
                wrong = [name for name, values in possible.items() if listed.get(name) not in values]
                if wrong:
                    return f"{protocol}: {sorted(wrong)[:5]} is wrong at {broker}"
        return ""

    def _watchers(self) -> list[Watcher]:
        return [client for client in self.clients if isinstance(client, Watcher)]

    def _seen(self) -> Counter[str]:
        seen: Counter[str] = Counter()
        for client in self.clients:
            if isinstance(client, Reader):
                seen.update(dict(client.seen))
        return seen

    def _knock(self) -> None:
        """At rest, check that nobody gets in with a rotated or revoked key, nor with a used token."""
        operator = self.world.operator
        if self.stranger is None or operator is None or self.wrong:
            return
        self.stranger.end()
        self.say("at rest; strangers knock everywhere, with keys of before, too")
        desk, former = Desk(self.world.machines[STRANGER]), operator.lost_keys()
        desk.start()
        for name in NODES:
            desk.ask(self.stranger.knock_once, self.world.machines[name], former)
        desk.end()
        if operator.comes_in_again(STRANGER):
            self.wrong.append("sealed: a token that was used let a second machine in")

    def _end(self) -> None:
        """Stop everything in the order of the road, so that no record is left on the way."""
        for client in self.clients:
            if client.is_alive():
                client.end()
        self.wrong += [client.fault for client in self.clients if client.fault]
        self.at_rest = self._taken()
        if not self.plan.events:
            self.wrong += judge.unrest([self.world.place / f"{name}.log" for name in NODES])
        statuses = {name: self.desks[name].ask(status_of) for name in NODES}
        (self.world.place / "statuses.json").write_text(json.dumps(statuses), "utf-8")
        trees = trees_of(statuses)
        self.placed = {root: [str(row.get("name")) for row in tree] for root, tree in trees.items()}
        for names in upwards(trees):
            for late in self.world.stop(names):
                self.wrong.append(f"{late} did not stop within {limits.STOP_S:.0f} s")
        if PIPELINE in self.world.processes:
            self._drain()

    def _drain(self) -> None:
        """Wait until the tables have the remaining segments."""
        from weft.lake.layout import Layout
        from weft.pipeline.progress import waiting

        self.say("waiting until the tables have the rest")
        late = self._until(
            lambda: f"{left} segments" if (left := waiting(Layout(self.world.lake))) else "", limits.DRAIN_S
        )
        if late:
            self.wrong.append(f"tables: {late} wait after {limits.DRAIN_S:.0f} s")
        self.world.stop((PIPELINE,))

    def _taken(self) -> judge.Taken:
        return judge.taken_in([self.world.machines[name].state / "journal" for name in NODES])

    # Judging

    def _judge(self) -> None:
        self.say("judging")
        judge.note_members(self.book, {name: self.world.machines[name].state for name in NODES}, self.placed)
        judge.note_replicas(self.book, self.replicas)
        judge.note_replicas(self.book, {"store": {each.title: each.seen for each in self._watchers()}})
        self.book.note("readers", "info", "delivered", ["readers", dict(self._seen())])
        self._note_calls()
        judge.note_messages(self.book, self.world.lake)
        judge.note_road(self.book, self.at_rest, self._taken(), self.world.lake)
        self.book.note("", "info", "quiet")
        self.wrong += judge.verdict(self.book.facts)
        self.wrong += self.book.strange + self.world.unexplained + leaks(self.world.operator)
        if PIPELINE in self.world.processes:
            self.wrong += judge.tables_differ(self.world.lake)
        entries = self.book.written("documents")
        for name, process in self.world.processes.items():
            if judge.grows(process.warm, entries if name in DOCUMENTS else ()):
                self.wrong.append(f"memory: {name} grew from {process.warm[0][1] >> 20} MB and goes on growing")

    def _note_calls(self) -> None:
        """Note the calls that the services behind the bridge have served, and report wrong answers."""
        served: Counter[str] = Counter()
        for client in self.clients:
            if isinstance(client, Far):
                served.update(dict(client.served))
        self.book.note("services", "info", "delivered", ["calls", dict(served)])
        wrong = sum(client.misanswered for client in self.clients if isinstance(client, Caller))
        may_be_altered = self.played["flip"] and self.world.operator is None
        if wrong and not may_be_altered:  # what clients, services and brokers say on open links has none
            self.wrong.append(f"calls: {wrong} were answered with what was another's")

    def _figures(self) -> dict[str, Any]:
        memory = {
            name: [size >> 20 for _, size in process.memory[:: max(1, len(process.memory) // 10)]]
            for name, process in self.world.processes.items()
        }
        return {
            "acknowledged": self.book.acknowledged(),
            "faults": dict(sorted(self.played.items())),
            "frames": frames(self.world),
            "memory_megabytes": memory,
            "closed": self.world.operator is not None,
            "keys": dict(sorted(self.world.operator.done.items())) if self.world.operator is not None else {},
            "taps": dict(sum((each.counts for each in self.clients if isinstance(each, Tapper)), Counter[str]())),
            "knocks": self.stranger.knocks if self.stranger is not None else 0,
        }
