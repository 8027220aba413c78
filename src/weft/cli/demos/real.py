"""The walk-through with real processes: three nodes, and every program a process beside one of them (DEM-007).

All programs of a row begin at one instant, aggregators half a period later, so that delays of less than that change
nothing. The counts are taken from the JSON that the programs print.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Self

from weft.base.errors import UserError
from weft.cli.asking import try_status
from weft.cli.demos import report
from weft.cli.demos.rows import (
    AGGREGATOR,
    DETECTOR,
    FIRST_PID,
    OK,
    PARENTS,
    RESPONDER,
    REWRITER,
    ROWS,
    Act,
    Outcome,
    Row,
    large_differences,
)
from weft.cli.demos.walkthrough import Judged
from weft.cli.fleet import Fleet, Member
from weft.client.link.finding import endpoint_in
from weft.shell.blocks import free_blocks

BEGINS_IN_S: Final = 0.3  # until every program knows when to begin
READY_S: Final = 30.0
STOP_S: Final = 10.0
LAST_S: Final = 10.0  # for messages that are still on their way when the last detector has ended
STEP_S: Final = 0.05
EARLY: Final = {DETECTOR: 0.0, AGGREGATOR: 0.5}
"""Programs with periods, and by which part of a period each begins before the others: an aggregator ticks at its end."""
SETTINGS: Final = """\
[fleet]
name = "walkthrough-{pid}"
beacon_port = {beacon_port}

[node]
name = "{name}"
level = "{level}"
parent = "{parent}"
port = {port}
state = "{state}"
"""
LEVELS: Final = {"A": "sensor", "B": "collector", "C": "root"}


def real(ticks: int, period_s: float) -> Iterator[Judged]:
    """Play all rows, one after the other, beside the same three nodes."""
    with tempfile.TemporaryDirectory(prefix="weft-") as directory, Nodes(Path(directory)) as nodes:
        for row in ROWS:
            yield played(nodes, row, ticks, period_s)


def played(nodes: "Nodes", row: Row, ticks: int, period_s: float) -> Judged:
    """Play one row, from its first program to its last."""
    with Scene(nodes, row, ticks, period_s) as scene:
        actual = scene.play()
    return Judged(row, actual, large_differences(row.expected(ticks), actual))


class Nodes:
    """Three nodes as processes, ended by `with`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.ports = dict(zip(PARENTS, free_blocks(len(PARENTS), 29_000), strict=True))
        self._fleet = Fleet(place)

    def __enter__(self) -> Self:
        """Wait until each has its parent and a socket for clients."""
        try:
            for name in reversed(PARENTS):
                file = self.place / f"{name}.toml"
                file.write_text(self._settings(name), "utf-8")
                self._fleet.add(Member(name, self.command(name, file), self.ports[name]))
            until(self._are_joined, READY_S, "three nodes that find each other", self._logs)
        except BaseException:
            self._fleet.stop_all()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._fleet.stop_all()

    def state(self, name: str) -> Path:
        """The state directory of a node."""
        return self.place / "state" / name

    def command(self, name: str, file: Path) -> tuple[str, ...]:
        """The arguments of the interpreter that runs the node of this name."""
        assert name in self.ports, name
        return ("-m", "weft.cli.main", "up", str(file))

    def status(self, name: str) -> dict[str, Any]:
        """The status of a node; empty: it does not answer yet."""
        return try_status(self.ports[name]) or {}

    def _settings(self, name: str) -> str:
        return SETTINGS.format(
            pid=os.getpid(),
            beacon_port=self.ports["C"],
            name=name,
            level=LEVELS[name],
            parent=PARENTS[name],
            port=self.ports[name],
            state=self.state(name),
        )

    def _are_joined(self) -> bool:
        return all(self._is_joined(name, parent) for name, parent in PARENTS.items())

    def _is_joined(self, name: str, parent: str) -> bool:
        status = self.status(name)
        link = status.get("cores", {}).get("carrier", {}).get("state")
        return bool(status) and endpoint_in(self.state(name), "chains") is not None and (not parent or link == "OPEN")

    def _logs(self) -> str:
        return "\n".join(f"{path.name}: {path.read_text('utf-8')[-1000:]}" for path in self.place.glob("?.log"))


class Player:
    """One program as a process, and what it has printed so far."""

    def __init__(self, act: Act, number: int, arguments: list[str], place: Path) -> None:
        self.act = act
        self._out, self._log = (place / f"{number}-{act.program}.{end}" for end in ("out", "log"))
        with self._out.open("wb") as out, self._log.open("wb") as log:
            self.process = subprocess.Popen(  # only our own interpreter and arguments
                [sys.executable, "-m", "weft.cli.main", "demo", *arguments, "--json"],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the walk-through, which ends its programs in order
            )

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events of one kind that it has printed so far."""
        lines = self._out.read_bytes().split(b"\n")[:-1]
        return [event for line in lines if (event := json.loads(line))["event"] == name]

    @property
    def has_failed(self) -> bool:
        """Whether it has ended with an error; the program that holds messages may be killed."""
        return not self.act.hold and self.process.poll() not in (None, 0)

    def log(self) -> str:
        """The end of its standard error."""
        return f"{self.act.program} at {self.act.node}: {self._log.read_text('utf-8')[-500:]}"

    def begin(self, at: float) -> None:
        """Tell it when its first period begins."""
        assert self.process.stdin is not None
        with self.process.stdin as words:
            words.write(f"{at:.3f}\n".encode())

    def tell(self, how: signal.Signals) -> None:
        """Send it a signal, if it still runs."""
        if self.process.poll() is None:
            self.process.send_signal(how)

    def end(self) -> None:
        """Wait for its end; kill it if that takes too long."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_S)
        self.tell(signal.SIGKILL)
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()


class Scene:
    """One row while it is played; every process of it is ended by `with`."""

    def __init__(self, nodes: Nodes, row: Row, ticks: int, period_s: float) -> None:
        self._nodes, self._row, self._ticks, self._period_s = nodes, row, ticks, period_s
        self._place = Path(tempfile.mkdtemp(prefix=f"row-{row.number}-", dir=nodes.place))
        self._players: list[Player] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for player in self._players:
            player.tell(signal.SIGINT)
        for player in self._players:
            player.end()

    def play(self) -> Outcome:
        """Play the row, from the first program to the last message."""
        for act in self._row.acts:
            self._start(act)
            if act.program == REWRITER:
                self._ready()  # attach order is the order of the tags
        self._ready()
        begin_at = time.time() + self._period_s + BEGINS_IN_S
        for player in self._players:
            if player.act.program in EARLY:
                player.begin(begin_at - EARLY[player.act.program] * self._period_s)
        if self._row.holder is not None:
            self._kill_the_holder()
        self._until(self._have_detectors_ended, self._ticks * self._period_s + BEGINS_IN_S + READY_S, "all detectors")
        self._wait_for_the_last()
        return self._outcome()

    def _start(self, act: Act) -> None:
        arguments = [act.program, "--node", str(self._nodes.state(act.node)), *self._options(act)]
        if act.program in EARLY:
            arguments += ["--period", f"{round(self._period_s * 1_000)}ms", "--wait-for-begin"]
        self._players.append(Player(act, len(self._players), arguments, self._place))

    def _options(self, act: Act) -> list[str]:
        if act.program == DETECTOR:
            return ["--count", str(act.sends or self._ticks)]
        if act.program == AGGREGATOR:
            return ["--outbound"] if act.is_outbound else []
        if act.program == RESPONDER:
            return ["--dir", act.on, "--access", act.access, "--hold", str(act.hold)]
        return []

    def _ready(self) -> None:
        self._until(lambda: all(player.events("ready") for player in self._players), READY_S, "all programs")

    def _kill_the_holder(self) -> None:
        """Kill the program that holds messages as soon as it has all of them."""
        holder = next(player for player in self._players if player.act.hold)
        span_s = holder.act.hold * self._period_s + READY_S
        self._until(lambda: len(holder.events("message")) >= holder.act.hold, span_s, "messages that are held")
        holder.tell(signal.SIGKILL)

    def _have_detectors_ended(self) -> bool:
        return all(player.process.poll() is not None for player in self._players if player.act.program == DETECTOR)

    def _wait_for_the_last(self) -> None:
        """Wait, bounded, for the messages that are still on their way."""
        expected = self._row.expected(self._ticks).received
        ends_at = time.monotonic() + LAST_S
        while time.monotonic() < ends_at:
            received = self._received()
            if all(len(labels) <= len(received[node]) for node, labels in expected.items()):
                break
            time.sleep(STEP_S)
        time.sleep(self._period_s)  # by then any duplicate has come, too

    def _outcome(self) -> Outcome:
        statuses: dict[str, dict[str, int]] = {}
        for player in self._players:
            if player.act.program == DETECTOR:
                counts = Counter(OK if event["ok"] else event["why"] for event in player.events("sent"))
                statuses[player.act.node] = dict(counts)
        return Outcome(self._received(), statuses)

    def _received(self) -> dict[str, list[str]]:
        pids = {
            f"+{player.process.pid}": f"+{FIRST_PID + number}"
            for number, player in enumerate(p for p in self._players if p.act.program == REWRITER)
        }
        received = {}
        for player in self._players:
            if player.act.program == RESPONDER and not player.act.hold:
                labels = [report.label(event["payload"].encode()) for event in player.events("message")]
                received[player.act.node] = [_renamed(label, pids) for label in labels]
        return received

    def _until(self, holds: Callable[[], bool], span_s: float, what: str) -> None:
        def holds_for_all() -> bool:
            for player in self._players:
                if player.has_failed:
                    raise UserError("unavailable", f"a program has ended\n{player.log()}", "weft chain ls")
            return holds()

        until(holds_for_all, span_s, f"row {self._row.number}: {what}", self._logs)

    def _logs(self) -> str:
        return "\n".join(player.log() for player in self._players)


def _renamed(label: str, pids: dict[str, str]) -> str:
    for pid, name in pids.items():
        label = label.replace(pid, name)
    return label


def until(holds: Callable[[], bool], span_s: float, what: str, logs: Callable[[], str]) -> None:
    """Wait until `holds` is true, for at most `span_s`; else UserError `unavailable` with the processes' errors."""
    ends_at = time.monotonic() + span_s
    while not holds():
        if time.monotonic() > ends_at:
            raise UserError("unavailable", f"not within {span_s:.0f} s: {what}\n{logs()}", "once more, with less load")
        time.sleep(STEP_S)
