"""Round after round the broker is killed or stopped for a while, and services die or say goodbye: who lives is listed."""

import asyncio
import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq
import pytest

from tests.fabric.catalogjudge import (
    INTERVAL_MS,
    LIVENESS,
    SLACK_S,
    WHOLE_S,
    Away,
    Entries,
    Life,
    Row,
    awake,
    number_of,
    wrong_answers,
    wrong_dead,
    wrong_ends,
    wrong_indexes,
    wrong_list,
    wrong_mirror,
    wrong_watch,
)
from tests.fabric.catalogplayers import judged, name_of
from tests.fabric.fabric import Fabric
from tests.fabric.test_chain_rounds import script_of
from weft.base.chance import Chance
from weft.catalog import CatalogError, Change, Client, Entry
from weft.shell.blocks import BLOCK, free_blocks

TABLE = f"""
[catalog]
port = {{port}}
beacon_port = {{beacon_port}}
beacon_to = ["127.255.255.255"]
beacon = "0.5s"
liveness = {LIVENESS}
"""
CROWD = (("library", 20), ("plain", 90), ("plain", 90))
MORE = (("library", 40), ("library", 40), *(("plain", 115) for _ in range(8)))
"""Processes of services, by default and with `--soak`."""
CLIENTS, MANY = (10, 20), (100, 100)
"""REQ clients, and milliseconds between two questions of each: by default, and with `--soak`."""
KINDS = ("end", "pause", "kill", "die")
NIGHTLY = (*KINDS, "both", "asleep")
"""What a round does: the broker is killed, or stopped for longer than a silence may last; a process of services is killed, or
told to end; broker and services are killed together; services are killed while the broker stands still. When the broker is
stopped, half of the services are, too, as on a machine that sleeps: no beats of theirs wait for it."""
NIGHT = 20
"""Rounds with `--soak`, in any order; by default each kind comes once. At the end a death is waited for: whoever else would be
called dead is called so by then."""


class Eye(threading.Thread):
    """Somebody who asks and watches the broker, in a thread of its own."""

    def __init__(self, broker: str) -> None:
        super().__init__(daemon=True)
        self.broker = broker
        self.seen: list[Change] = []
        self.faults: list[str] = []
        self.loop = asyncio.new_event_loop()
        self.opened = threading.Event()

    def run(self) -> None:
        self.loop.run_until_complete(self._watch())
        self.loop.close()

    async def _watch(self) -> None:
        self.ended = asyncio.Event()
        async with Client(self.broker) as self.client:
            self.watch = self.client.watch()
            noting = self.loop.create_task(self._note())
            self.opened.set()
            await self.ended.wait()
            self.watch.close()
            await noting

    async def _note(self) -> None:
        try:
            async for change in self.watch:
                self.seen.append(change)
        except CatalogError as error:
            self.faults.append(f"the watch ended: {error!r}")

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.ended.set)
        self.join(10)

    def listed(self) -> set[str] | None:
        """None: the broker does not answer."""
        return set(found) if (found := self._asked(self.client.list())) is not None else None

    def unheard(self) -> int:
        """How many are believed to live, and have given no sign since the broker came back; -1: it does not answer."""
        rows = self._asked(self.client.liveness())
        return -1 if rows is None else sum(row["restored"] and row["state"] != "inactive" for row in rows)

    def both(self) -> tuple[Entries, Entries] | None:
        """What was told to the watcher, and what the broker has."""

        async def look() -> tuple[Entries, Entries]:
            held = {(entry.name, entry.instance): entry for entry in await self.client.query()}
            return dict(self.watch.entries), held

        found: tuple[Entries, Entries] | None = self._asked(look())
        return found

    def _asked(self, asked: Coroutine[Any, Any, Any]) -> Any:
        """None: there is no answer."""
        with contextlib.suppress(CatalogError):
            return asyncio.run_coroutine_threadsafe(asked, self.loop).result(30)
        return None


class Group:
    """A process of services, that may be started again after its end; and all its lives."""

    def __init__(self, kind: str, numbers: range, out: Path) -> None:
        self.kind, self.numbers, self.out = kind, numbers, out
        self.process: subprocess.Popen[bytes] | None = None
        self.lives: list[Life] = []
        self._ready_at = 0.0

    @property
    def is_running(self) -> bool:
        return self.process is not None

    @property
    def is_ready(self) -> bool:
        """Whether a broker has approved all of them."""
        if self.process is not None and not self._ready_at:
            assert self.process.poll() is None, self.out.read_text("utf-8")
            self._ready_at = time.time() if "ready" in self._words() else 0.0
        return bool(self._ready_at)

    def start(self, *words: str) -> None:
        self.out.unlink(missing_ok=True)
        self._ready_at = 0.0
        self.process = run_player(self.kind, str(self.numbers.start), str(len(self.numbers)), *words, str(self.out))

    def hit(self, how: str) -> None:
        """`killed`, or told to say goodbye and `ended`."""
        assert self.process is not None
        hit_at = time.time()
        self.process.send_signal(signal.SIGKILL if how == "killed" else signal.SIGTERM)
        self.process.wait(30)
        self._note(hit_at, time.time(), how)
        self.process = None

    def close(self) -> None:
        """The test is over."""
        if self.process is not None:
            self._note(float("inf"), float("inf"), "")
            self.process.kill()
            self.process.wait()
            self.process = None

    def _note(self, hit_at: float, ended_at: float, how: str) -> None:
        lines = [line.split() for line in self.out.read_text("utf-8").splitlines() if line.startswith("late")]
        stood = tuple((float(since), float(until)) for _, since, until in lines)
        self.lives.append(Life(self.numbers, self._ready_at, hit_at, ended_at, how, stood))

    def _words(self) -> list[str]:
        return self.out.read_text("utf-8").splitlines() if self.out.exists() else []


def run_player(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.fabric.catalogplayers", *words])


class Rounds(Fabric):
    """A broker, its services and clients, and what is done to them."""

    def __init__(self, place: Path, chance: Chance, *, soak: bool) -> None:
        super().__init__(place, {"root": ""})
        self.chance = chance
        self.port = free_blocks(1, self.ports["root"] + BLOCK)[0]
        self.groups: list[Group] = []
        first = 0
        for number, (kind, count) in enumerate(MORE if soak else CROWD):
            self.groups.append(Group(kind, range(first, first + count), place / f"group-{number}.out"))
            first += count
        self.clients, self.names = MANY if soak else CLIENTS, first
        self.asks = place / "asks.out"
        self.aways: list[Away] = []
        self.said: list[str] = []
        self.eye = Eye(self.broker)

    def __enter__(self) -> Self:
        super().__enter__()
        for group in self.groups:
            self.begin(group)
        self.until(lambda: bool(self.catalog()), "the broker serves")
        self.eye.start()
        assert self.eye.opened.wait(30)
        self.until(lambda: all(group.is_ready for group in self.groups), "all services are approved")
        count, period_ms = self.clients
        self.asking = run_player("asks", str(count), str(self.names), self.broker, str(period_ms), str(self.asks))
        return self

    def __exit__(self, *_: object) -> None:
        for group in self.groups:
            group.close()
        if hasattr(self, "asking"):
            self.asking.kill()
            self.asking.wait()
        super().__exit__(*_)

    @property
    def broker(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def lives(self) -> list[Life]:
        """As far as somebody else than the broker stood still while it did not."""
        return [awake(life, self.aways) for group in self.groups for life in group.lives]

    def settings(self, name: str, port: int, state: Path) -> str:
        table = TABLE.format(port=self.port, beacon_port=self.port + BLOCK - 1)
        nothing_else, _, rest = super().settings(name, port, state).partition("[metric.cpu]")
        return nothing_else + rest[rest.index("[lake]") :] + table

    def catalog(self) -> dict[str, Any]:
        return dict(self.status("root").get("cores", {}).get("catalog", {}))

    def begin(self, group: Group) -> None:
        group.start(self.broker, str(self.port + BLOCK - 1), str(INTERVAL_MS))

    # Hitting

    def wait(self, span_s: float) -> None:
        ends_at = time.monotonic() + span_s
        self.until(lambda: time.monotonic() >= ends_at, "time passes")

    def play(self, kind: str) -> None:
        """Start who was hit before, hit, and wait until all is as it should be."""
        for group in self.groups:
            if not group.is_running:
                self.begin(group)
        victim = self.chance.choice([group for group in self.groups if group.is_ready])
        began = time.monotonic()
        if kind in ("kill", "both"):
            self.kill_broker(victim if kind == "both" else None)
        elif kind in ("pause", "asleep"):
            self.pause_broker(WHOLE_S + self.chance.uniform(0.3, 1), victim, is_killed=kind == "asleep")
        else:
            victim.hit("killed" if kind == "die" else "ended")
        self.settle(kind)
        self.said.append(f"{kind} {time.monotonic() - began:.1f} s")

    def kill_broker(self, victim: Group | None) -> None:
        before, hit_at = self.catalog()["epoch"], time.time()
        member = self.member("root")
        member.wanted = False
        self.kill("root")
        self.start("root")
        if victim is not None:
            victim.hit("killed")
        self.until(lambda: self.catalog().get("epoch", before) != before, "the broker is back")
        self.aways.append(Away(hit_at, time.time(), "killed"))

    def pause_broker(self, span_s: float, victim: Group, *, is_killed: bool) -> None:
        broker, hit_at = self.member("root").process, time.time()
        if is_killed:
            victim.hit("killed")
        running = [group.process for group in self.groups if group.process is not None]
        asleep = [broker, *running[::2]]
        for process in asleep:
            assert process is not None
            process.send_signal(signal.SIGSTOP)
        try:
            self.wait(span_s)
        finally:
            for process in asleep:
                assert process is not None
                process.send_signal(signal.SIGCONT)
                self.wait(0.2 if process is broker else 0)  # it must not find their beats when it looks at its timers
        self.aways.append(Away(hit_at, time.time(), "stopped"))

    # Coming to rest

    def settle(self, kind: str) -> None:
        """The list is who lives, each has given a sign of life, and the watcher has the same."""
        self.until(lambda: all(group.is_ready for group in self.groups if group.is_running), f"{kind}: approved")
        self.until(lambda: self.eye.listed() == self.living, f"{kind}: the list is who lives")
        self.until(lambda: self.eye.unheard() == 0, f"{kind}: all who live have said so")
        self.until(self.is_mirrored, f"{kind}: the watcher has seen it")

    @property
    def living(self) -> set[str]:
        return {name_of(number) for group in self.groups if group.is_running for number in group.numbers}

    def is_mirrored(self) -> bool:
        both = self.eye.both()
        return both is not None and not list(wrong_mirror(*both))

    def end(self) -> list[dict[str, Any]]:
        """Clients, services and node; what the clients said."""
        self.asking.terminate()
        self.asking.wait(30)
        self.until(self.is_drained, "all changes are in the lake")
        self.eye.end()
        self.stop()
        for group in self.groups:
            group.close()
        return [json.loads(line) for line in self.asks.read_text("utf-8").splitlines() if line.startswith("{")]

    # What the lake has

    def is_drained(self) -> bool:
        """Whether it has all changes of the present start."""
        now = self.catalog()
        return bool(now["index"] == len([row for row in self.rows() if row.epoch == now["epoch"]]))

    def rows(self) -> list[Row]:
        """All changes in the lake's segments, in order."""
        files = sorted((self.lake / "drain" / "catalog").rglob("*.parquet"))
        return sorted(_row(row) for path in files for row in pq.read_table(path).to_pylist())


def _row(row: dict[str, Any]) -> Row:
    said = dict(row["attributes"])
    at = row["at_ns"] // 1_000 / 1_000_000
    return Row(row["era"], row["sequence"], said["op"], row["key"], at, said["reason"], said["epoch"])


@pytest.mark.prove("rounds of kills")
@pytest.mark.proves("CAT-040", "CAT-043", "CAT-050", "CAT-051", "BEA-015", "BEA-021", "BEA-022")
def test_whatever_becomes_of_the_broker_who_lives_is_listed_and_who_died_is_not(tmp_path: Path, *, soak: bool) -> None:
    chance = Chance(os.environ.get("WEFT_SEED", "catalog rounds"))
    with Rounds(tmp_path, chance, soak=soak) as rounds:
        rounds.settle("begin")
        for kind in [*script_of(NIGHTLY, NIGHT, chance), "die"] if soak else KINDS:
            rounds.play(kind)
        listed = rounds.eye.listed()
        assert listed is not None
        notes = rounds.end()
        rows, lives = rounds.rows(), rounds.lives
        (tmp_path / "summary").write_text(summary(rounds, rows, notes), "utf-8")
        wrong = [*rounds.eye.faults, *wrong_ends(rows, lives), *wrong_dead(rows, lives, rounds.aways)]
        wrong += [*wrong_list(listed, lives), *wrong_answers(notes, lives)]
        wrong += [*wrong_indexes(rows), *wrong_watch(rounds.eye.seen, rows)]
        assert [] == wrong, rounds.said
        assert notes[-1]["answers"] > 0
        assert {"suspect", "inactive", "register"} <= {change.op for change in rounds.eye.seen}


def summary(rounds: Rounds, rows: list[Row], notes: list[dict[str, Any]]) -> str:
    """How much was tried, and what came of it."""
    ops = Counter(row.op for row in rows)
    late = [
        row.at - life.ended_at
        for life in rounds.lives
        if life.how == "killed"
        for row in rows
        if row.op == "inactive" and number_of(row) in life.numbers and 0 <= row.at - life.hit_at < 3 * WHOLE_S
    ]
    stood = sum(len(life.stood) for life in rounds.lives)
    return "\n".join(
        (
            f"{len(rounds.said)} rounds of {rounds.names} services: {', '.join(rounds.said)}",
            f"away: {', '.join(f'{away.how} {away.back_at - away.hit_at:.1f} s' for away in rounds.aways)}",
            f"{len({row.era for row in rows})} starts, {len(rows)} changes: {dict(ops)}",
            f"{len(late)} deaths told {min(late, default=0):.2f} to {max(late, default=0):.2f} s after them",
            f"{notes[-1]}, {sum(note.get('said') == 'away' for note in notes)} answers `inactive`",
            f"{stood} times a process of services stood still itself",
        )
    )


# The judge, judged


def row(index: int, op: str, at: float, reason: str = "", era: int = 1) -> Row:
    return Row(era, index, op, "s1", at, reason, f"e{era}")


ALIVE = Life(range(2), ready_at=10.0)
KILLED = Life(range(1, 2), ready_at=10.0, hit_at=20.0, ended_at=20.1, how="killed")


def test_the_judge_finds_who_was_called_dead_and_lived() -> None:
    told = [row(1, "inactive", 30.0, reason="silent")]
    assert ["s1 lived, and was told to be inactive (silent) at 30.000"] == list(wrong_ends(told, [ALIVE]))
    assert ["s1 lived, and was told to be remove (reaped) at 30.000"] == list(
        wrong_ends([row(1, "remove", 30.0, reason="reaped")], [ALIVE])
    )
    assert [] == list(wrong_ends([row(1, "suspect", 30.0)], [ALIVE])), "asked is not called dead"
    assert [] == list(wrong_ends(told, [KILLED])), "it was dead"
    assert [] == list(wrong_ends(told, [ALIVE._replace(stood=((26.0, 29.5),))])), "it stood still itself"
    asleep = awake(ALIVE._replace(stood=((26.0, 29.5),)), [Away(25.9, 29.4, "stopped")])
    assert 1 == len(list(wrong_ends(told, [asleep]))), "it slept with the broker"
    assert 1 == len(list(wrong_ends(told, [KILLED, ALIVE._replace(ready_at=25.0)]))), "it was back"


def test_the_judge_finds_zombies_and_who_was_not_let_go() -> None:
    due = KILLED.ended_at + WHOLE_S + SLACK_S
    assert ["s1 was killed at 20.000, and nobody was told"] == list(wrong_dead([], [KILLED], []))
    assert [f"s1 was killed at 20.000, and was a zombie until {due + 1:.3f}"] == list(
        wrong_dead([row(1, "inactive", due + 1, reason="silent")], [KILLED], [])
    )
    assert [] == list(wrong_dead([row(1, "inactive", due - 1, reason="silent")], [KILLED], []))
    away = Away(21.0, 26.0, "stopped")
    assert [] == list(wrong_dead([row(1, "inactive", due + 1, reason="silent")], [KILLED], [away]))
    before = Away(11.0, 16.0, "stopped")
    assert 1 == len(list(wrong_dead([row(1, "inactive", due + 1, reason="silent")], [KILLED], [before])))
    ended = KILLED._replace(how="ended")
    assert [] == list(wrong_dead([row(1, "inactive", 20.2, reason="left")], [ended], []))
    assert ["s1 said goodbye, and was called silent"] == list(
        wrong_dead([row(1, "inactive", 24.0, reason="silent")], [ended], [])
    )
    assert ["s1 is dead, and listed", "s0 lives, and is not listed"] == list(
        wrong_list({"s1"}, [ALIVE._replace(numbers=range(1)), KILLED])
    )


def test_the_judge_finds_holes_and_what_was_told_before_it_was_durable() -> None:
    rows = [row(1, "register", 10.0), row(2, "suspect", 12.0), row(3, "active", 12.5), row(1, "suspect", 30.0, era=2)]
    assert [] == list(wrong_indexes(rows))
    assert ["changes [2] of start 1 are not in the lake"] == list(wrong_indexes([*rows[:1], *rows[2:]]))
    assert ["change 2 of start 1 is in the lake 2 times"] == list(wrong_indexes([*rows, rows[1]]))
    assert ["epochs of starts: {'e1': {1, 2}}"] == list(wrong_indexes([each._replace(epoch="e1") for each in rows]))
    seen = [Change(each.op, each.name, each.name, None, each.sequence, each.at) for each in rows]
    assert [] == list(wrong_watch(seen, rows))
    assert ["suspect s1 was told as 1 at 30.0, and is not in the lake"] == list(wrong_watch(seen, rows[:3]))


def test_the_judge_finds_answers_of_others_and_a_mirror_that_is_blind() -> None:
    said = {"number": 1, "asked": 15.0, "answered": 15.1, "said": "away"}
    assert ["s1 lived and was not found at 15.100"] == list(wrong_answers([said, {"answers": 9}], [ALIVE]))
    assert [] == list(wrong_answers([said], [ALIVE._replace(ready_at=15.05)])), "it was not approved yet"
    frames = [b"o_O", struct.pack("<f", time.time()), b'{"s1": {"metadata": {"number": "1"}}}']
    assert "found" == judged(1, frames)
    foreign = judged(2, frames)
    assert ["a client asked for s1 and got of another: {'s1'"] == [
        each[:47] for each in wrong_answers([said | {"said": foreign}], [KILLED])
    ]
    assert "away" == judged(1, [*frames[:2], b'{"Error": "", "service": "s1", "warning": "inactive"}'])
    assert "of another" == judged(2, [*frames[:2], b'{"Error": "", "service": "s1", "warning": "inactive"}'])[:10]
    assert ["frames", "frames", "time b", "body b"] == [
        judged(1, wrong)[:6]
        for wrong in (frames[:2], [b"u.u", *frames[1:]], [b"o_O", bytes(4), frames[2]], [*frames[:2], b"{"])
    ]
    held = {("s1", "s1"): Entry(name="s1", facts={"state": "active"})}
    assert [] == list(wrong_mirror(dict(held), held))
    assert 1 == len(list(wrong_mirror({}, held)))
    assert 1 == len(list(wrong_mirror({("s1", "s1"): Entry(name="s1", facts={"state": "suspect"})}, held)))
