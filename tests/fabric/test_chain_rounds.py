"""Round after round a node or a program is killed or stopped for a while: no message that was taken is lost or doubled."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from tests.fabric import players
from tests.fabric.fabric import Fabric
from tests.fabric.test_chains import UP
from weft.base.chance import Chance
from weft.base.errors import UserError
from weft.base.mail import OUTBOX
from weft.base.records import StreamRecord
from weft.cli.asking import order
from weft.cli.fleet import Member
from weft.shell.journal import JournalReader

TREE = {
    "root": "",
    "collector-1": "root",
    "collector-2": "root",
    "sensor-1": "collector-1",
    "sensor-2": "collector-1",
    "sensor-3": "collector-2",
}
SENSORS = tuple(name for name in TREE if name.startswith("sensor"))
WORKERS = ("sensor-1", "sensor-3", "collector-1", "collector-2", "root")
"""Nodes beside which a program stands in the chains."""
KINDS = ("collector", "works", "sensor", "root", "sends", "pause", "two", "end")
"""Who is hit; `two` at once. `pause`: somebody is stopped for a while; `end`: a node is told to end."""
ROUNDS, NIGHT = 4, 40
"""By default, and with `--soak`."""
KEPT = ("spooled", "local")
UNSURE = ("unreachable", "no-parent")
"""Of what no disk keeps: it may have arrived before the node or its parent died."""
SETTLED_S, QUIET_S = 90.0, 3.0


def script_of(kinds: tuple[str, ...], count: int, chance: Chance) -> Iterator[str]:
    """What happens in each round: every kind as often as the others."""
    deck: list[str] = []
    for _ in range(count):
        if not deck:
            deck = list(kinds)
            chance.shuffle(deck)
        yield deck.pop()


class Heard(NamedTuple):
    """What the programs beside one sensor have sent and heard, by type and number."""

    sent: set[tuple[str, int]]
    heard: dict[tuple[str, int], list[str]]
    strange: list[str]


class Rounds:
    """A fabric with programs beside its nodes."""

    def __init__(self, fabric: Fabric, chance: Chance) -> None:
        self.fabric, self.chance = fabric, chance
        self.said: list[str] = []
        self.seen: list[Any] = []
        self.quiet_since = time.monotonic()
        self.senders = [self.begin("sends", name) for name in SENSORS]
        self.workers = [self.begin("works", name) for name in WORKERS]

    def begin(self, role: str, node: str) -> str:
        """Start a program beside a node."""
        name, place = f"{role}-{node}", self.fabric.place
        script = str(Path(players.__file__))
        words = (script, role, node, str(place / node), str(place / f"{name}.heard"))
        self.fabric.fleet.add(Member(name, words))
        return name

    # Hitting

    def wait(self, span_s: float) -> None:
        ends_at = time.monotonic() + span_s
        self.fabric.until(lambda: time.monotonic() >= ends_at, "time passes")

    def victims(self, kind: str) -> list[str]:
        """Whom a round hits."""
        everybody = [*TREE, *self.senders, *self.workers]
        if kind == "two":
            return self.chance.sample(everybody, 2)
        if kind in ("pause", "end"):
            return [self.chance.choice(everybody if kind == "pause" else list(TREE))]
        return [self.chance.choice([name for name in everybody if name.startswith(kind)])]

    def play(self, kind: str, pause_s: float) -> None:
        """Hit at an instant of the script; sometimes what was hit has come back before the next round."""
        self.wait(self.chance.uniform(0.3, 2.0))
        victims = self.victims(kind)
        is_pause = kind == "pause" or (kind == "two" and self.chance.random() < 0.3)
        self.said.append(f"{time.time():.3f} {'pause' if is_pause else kind} {' '.join(victims)}")
        if is_pause:
            self.pause(victims, pause_s)
        elif kind == "end":
            self.end(victims)
        else:
            for victim in victims:
                self.fabric.kill(victim)
        if self.chance.random() < 0.7:
            self.fabric.until(lambda: all(map(self.lives, victims)), f"{victims} are back")

    def pause(self, victims: list[str], span_s: float) -> None:
        processes = [self.fabric.member(victim).process for victim in victims]
        living = [process for process in processes if process is not None and process.poll() is None]
        for process in living:
            process.send_signal(signal.SIGSTOP)
        self.wait(span_s)
        for process in living:
            process.send_signal(signal.SIGCONT)

    def end(self, victims: list[str]) -> None:
        """In order; whoever wants a node has to start it again."""
        processes = [self.fabric.member(victim).process for victim in victims]
        for process in processes:
            if process is not None and process.poll() is None:
                process.terminate()
        self.fabric.until(lambda: all(each is None or each.poll() is not None for each in processes), "the end")

    def lives(self, name: str) -> bool:
        return bool(self.fabric.status(name)) if name in TREE else self.fabric.member(name).is_running

    # Coming to rest

    def settle(self) -> None:
        """The senders hear all their statuses and end; then nothing is under way anywhere."""
        fabric = self.fabric
        fabric.until(lambda: all(map(self.lives, [*TREE, *self.senders, *self.workers])), "everybody lives")
        for name in self.senders:
            fabric.until(lambda name=name: self.is_told(name), f"{name} has heard all")  # type: ignore[misc]  # bound
        fabric.until(self.rests, "nothing is under way", SETTLED_S)
        shown = {name: at_rest(order(fabric.ports[name], "chains")) for name in TREE}
        assert {name: {} for name in TREE} == shown, self.said
        fabric.fleet.stop(self.workers)

    def rests(self) -> bool:
        """Whether nothing is under way at any node, and nothing has arrived anywhere for a while."""
        try:
            told = [order(self.fabric.ports[name], "chains") for name in TREE]
        except UserError:
            return False
        seen = [(at_rest(each), [chain["accepted"] for chain in each["chains"]]) for each in told]
        if seen != self.seen or any(unrest for unrest, _ in seen):
            self.seen, self.quiet_since = seen, time.monotonic()
        return time.monotonic() - self.quiet_since >= QUIET_S

    def is_told(self, name: str) -> bool:
        member = self.fabric.member(name)
        if member.process is not None and member.is_running and member.wanted:
            member.wanted = False
            member.process.send_signal(signal.SIGTERM)
        return not member.is_running


def at_rest(told: dict[str, Any]) -> dict[str, Any]:
    """What of a node's chains is not zero and should be."""
    links = [(chain, link) for chain in told["chains"] for link in chain["links"]]
    found = {
        **{f"{chain['direction']} {chain['type']}": chain["in_flight"] for chain in told["chains"]},
        **{f"others {direction}": flow["in_flight"] for direction, flow in told["others"].items()},
        "inbox": told["inbox"]["entries"],
        "inbox bytes": told["inbox"]["bytes"],
        "parked": told["parked"],
        **{f"pending {chain['type']} {link['name']}": link.get("pending", 0) for chain, link in links},
        **{f"backlog {chain['type']} {link['name']}": link.get("backlog", 0) for chain, link in links},
    }
    return {what: count for what, count in found.items() if count}


def heard_in(text: str) -> Heard:
    """What the log of a sender says."""
    told = Heard(set(), {}, [])
    for line in text.splitlines():
        what, *facts = line.split()
        if what == "sent":
            told.sent.add((facts[0], int(facts[1])))
        elif what == "heard":
            told.heard.setdefault((facts[0], int(facts[1])), []).append(facts[2])
        elif what == "strange":
            told.strange.append(line)
    return told


class Row(NamedTuple):
    """A message in the lake, in order of arrival."""

    origin: str
    era: int
    sequence: int
    type: str
    sensor: str
    number: int
    text: str


def rows_in(lake: Path) -> list[Row]:
    rows = []
    for path in sorted((lake / "drain" / "messages").rglob("*.parquet")):
        for each in pq.read_table(path).to_pylist():
            text = each["raw"].decode()
            kind, sensor = each["key"], text.partition(" ")[0]
            rows.append(Row(each["origin"], each["era"], each["sequence"], kind, sensor, players.number_of(text), text))
    return rows


def spooled_in(journal: Path) -> set[tuple[str, int, int, str, int]]:
    """Identities, types and numbers of the mail for the parent that stands in a journal."""
    return {
        (record.origin.hex(), record.era or 0, record.sequence, record.key, players.number_of(record.payload.decode()))
        for _, record in JournalReader(journal).entries()
        if isinstance(record, StreamRecord) and record.stream == OUTBOX
    }


def judge(place: Path) -> list[str]:
    """Everything that is wrong with the messages."""
    rows = rows_in(place / "lake")
    wrong = doubled_in(rows)
    for sensor in SENSORS:
        said = (place / f"sends-{sensor}.heard").read_text("utf-8")
        wrong += wrong_of(sensor, heard_in(said), {(row.type, row.number) for row in rows if row.sensor == sensor})
    mids = {row[:3] for row in rows}
    for name in TREE:
        for *mid, kind, number in sorted(spooled_in(place / name / "journal")):
            if tuple(mid) not in mids and not may_be_dropped(kind, number):
                wrong.append(f"kept by {name}, not in the lake: {mid} {kind} {number}")
    return [*wrong, *out_of_order(rows)]


def doubled_in(rows: list[Row]) -> list[str]:
    """What came twice: the same message, or one that was sent once as two.

    What no disk keeps is sent again by whoever has not heard of it, when the node has forgotten that it was sent.
    """
    mids = Counter((row.origin, row.era, row.sequence) for row in rows)
    numbers = Counter((row.sensor, row.type, row.number) for row in rows if row.type != "app.loose")
    wrong = [f"twice by identity: {mid}" for mid, count in mids.items() if count > 1]
    return wrong + [f"{count} times: {each}" for each, count in numbers.items() if count > 1]


def wrong_of(sensor: str, told: Heard, there: set[tuple[str, int]]) -> Iterator[str]:
    """What a sender was told, and what is there."""
    yield from (f"{sensor}: {line}" for line in told.strange)
    yield from (f"{sensor}: {each} is there and was never sent" for each in sorted(there - told.sent))
    for (kind, number), whys in told.heard.items():
        is_there = (kind, number) in there
        if len(whys) > 1:
            yield f"{sensor}: {kind} {number} heard {whys}"
        if whys[0] in (*KEPT, "delivered") and not is_there and not may_be_dropped(kind, number):
            yield f"{sensor}: {kind} {number} heard {whys[0]} and is not in the lake"
        if whys[0] not in (*KEPT, "delivered", *UNSURE) and is_there:
            yield f"{sensor}: {kind} {number} heard {whys[0]} and is in the lake"
        if whys[0] not in (*ALLOWED.get(kind, KEPT), "closing"):
            yield f"{sensor}: {kind} {number} heard {whys[0]}"


ALLOWED = {
    "app.drop": (*KEPT, "deleted"),
    "app.loose": ("delivered", *UNSURE),
    "app.wait": ("delivered", "spooled"),
}
"""What senders may hear, by type; `spooled` of one that asked for more: its node has started anew meanwhile."""


def may_be_dropped(kind: str, number: int) -> bool:
    """Whether a collector's or the root's program takes it out, if it stands there."""
    return kind == "app.loose" or (kind == "app.drop" and number % players.TENTH == players.DROPPED["in"])


def out_of_order(rows: list[Row]) -> Iterator[str]:
    last: dict[tuple[str, int, str], int] = {}
    for row in rows:
        key = row.origin, row.era, row.type
        if row.type in players.ORDERED and row.number < last.get(key, 0):
            yield f"{row.sensor} {row.type}: {row.number} (sequence {row.sequence}) after {last[key]}, era {row.era}"
        last[key] = row.number


@pytest.mark.prove("rounds of kills")
@pytest.mark.proves("CHN-015", "CHN-016", "CHN-019", "CHN-030", "CHN-033", "CHN-034", "CHN-035", "CHN-036", "CHN-042")
def test_whoever_dies_or_sleeps_no_message_is_lost_or_doubled(tmp_path: Path, *, soak: bool) -> None:
    chance = Chance(os.environ.get("WEFT_SEED", "chain rounds"))
    with Fabric(tmp_path, TREE, UP) as fabric:
        fabric.measure_on(1)
        rounds = Rounds(fabric, chance)
        fabric.until(lambda: all((tmp_path / f"{name}.heard").exists() for name in rounds.workers), "all programs run")
        for kind in script_of(KINDS, NIGHT if soak else ROUNDS, chance):
            rounds.play(kind, chance.uniform(2, 8 if soak else 3))
        rounds.settle()
        fabric.stop()
        made, (drained, doubled) = fabric.made(), fabric.drained()
        assert [] == judge(tmp_path), rounds.said
        assert 0 == doubled
        assert {} == {str(origin): list(missing) for origin, missing in made - drained}


def test_the_judge_finds_what_is_lost_doubled_untrue_or_out_of_order() -> None:
    row = Row("0a", 1, 1, "app.mark", "sensor-1", 4, "")
    assert ["sensor-1 app.mark: 3 (sequence 2) after 4, era 1"] == list(
        out_of_order([row, row._replace(sequence=2, number=3), row._replace(era=2, number=1)])
    )
    said = "sent app.mark 1\nheard app.mark 1 spooled\nsent app.mark 2\nheard app.mark 2 deleted\nstrange 1\n"
    sent = {("app.mark", 1), ("app.mark", 2)}
    heard = {("app.mark", 1): ["spooled"], ("app.mark", 2): ["deleted"]}
    told = heard_in(said)
    assert Heard(sent, heard, ["strange 1"]) == told
    assert [
        "sensor-1: strange 1",
        "sensor-1: ('app.mark', 3) is there and was never sent",
        "sensor-1: app.mark 1 heard spooled and is not in the lake",
        "sensor-1: app.mark 2 heard deleted and is in the lake",
        "sensor-1: app.mark 2 heard deleted",
    ] == list(wrong_of("sensor-1", told, {("app.mark", 2), ("app.mark", 3)}))
    assert ["sensor-1: app.mark 1 heard ['spooled', 'local']"] == list(
        wrong_of(
            "sensor-1", heard_in(said.partition("sent app.mark 2")[0] + "heard app.mark 1 local"), {("app.mark", 1)}
        )
    )
    assert ["2 times: ('sensor-1', 'app.mark', 4)"] == doubled_in([row, row._replace(sequence=2)])
    assert ["twice by identity: ('0a', 1, 1)", "2 times: ('sensor-1', 'app.mark', 4)"] == doubled_in([row, row])
