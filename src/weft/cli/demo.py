"""`weft demo`: a whole fabric on this machine, from measuring to SQL, in one command.

Seven nodes run as separate processes and measure this very machine. Only the root has the fleet's file; the others
know their name, find it, and are given their places: two collectors, four sensors. The root drains into a lake, and the
Spark pipeline runs over it while it grows. Meanwhile a metric's rate is changed. Every process that dies is started
again (try `kill -9`, also on the root: a collector takes over). At the end all stop in the order of the road, the last
records become rows, and five questions are answered from the tables.
"""

import contextlib
import json
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter
from rich.console import Console
from rich.live import Live

from weft.base.errors import UserError
from weft.base.now import SECOND
from weft.base.settings import span_ns
from weft.cli.answers import QUESTIONS
from weft.cli.asking import order, page_of, try_status
from weft.cli.console import address_of
from weft.cli.demo_view import View
from weft.cli.fleet import Fleet, Member
from weft.cli.kit.console import console as quiet
from weft.cli.kit.exits import DONE, NOT_SO
from weft.shell.blocks import free_blocks

ROOT: Final = "root"
COLLECTORS: Final = ("collector-1", "collector-2")
SENSORS: Final = ("sensor-1", "sensor-2", "sensor-3", "sensor-4")
NODES: Final = (ROOT, *COLLECTORS, *SENSORS)
PIPELINE: Final = "pipeline"
SUMMED: Final = ("rows", "silver", "values", "duplicates", "quarantined")
STEP_S: Final = 0.5
LINE_EVERY_S: Final = 5.0
DRAIN_S: Final = 300.0  # how long the lake may take to drain the last samples, on a busy machine
TOOK: Final = "first-rows"  # a file: how many seconds it took until the first rows were in the tables
END_S: Final = 240.0  # how long its driver may take to end: to finish a batch and to fold, where Spark has just started
CHANGE_AFTER: Final = 0.4  # after this part of the run a rate is changed at the root
CHANGED: Final = "/CONFIG/machines/metric/cpu"
FLEET: Final = """\
# The fleet of the demonstration; look at it with: weft config print fleet.toml
[fleet]
name = "demo"
heartbeat = "500ms"

[metric.cpu]
detail = "CPU"
rate = "1s"

[metric.memory]
detail = "MEMORY"
rate = "1s"

[metric.memory_percent]
detail = "MEMORY_PERCENT"
rate = "5s"

[metric.disk_percent]
detail = "DISK_PERCENT"
rate = "10s"

[metric.disk]
detail = "DISK"
rate = "2s"

[metric.network]
detail = "NETWORK"
rate = "2s"

[metric.load]
detail = "LOAD"
rate = "5s"

[metric.process_cpu]
detail = "PROC_CPU"
rate = "2s"
per = "name"

[metric.process_memory]
detail = "PROC_MEM"
rate = "5s"
per = "name"

# Only processes that use more than 20 MB of memory are sent up.
[[chains.filter]]
name = "large-processes"
kind = "threshold"
types = ["weft.metric"]
dir = "out"
where = {{ name = "process_memory" }}
field = "value"
above = 20e6

[group.machines]
collectors = [{collectors}]
members = ["127.0.0.0/8"]
metrics = ["cpu", "memory", "memory_percent", "disk", "disk_percent", "network", "load", "process_cpu", "process_memory"]
filters = ["large-processes"]
"""
SETTINGS: Final = """\
# A node of the demonstration; start one like it with: weft up {name}.toml
[fleet]
name = "demo"
beacon_port = {beacon_port}

[node]
name = "{name}"
port = {port}
state = "{state}"
{more}
[lake]
path = "{lake}"
"""


def demo(
    *,
    run_for: Annotated[str, Parameter(name="--for")] = "60s",
    directory: Path | None = None,
    json_out: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Run a whole fabric on this machine for a while, then answer five questions from its tables.

    Args:
        run_for: how long, e.g. 60s or 5m.
        directory: where states, logs and lake go; default ./var/demo-TIME. An existing one is continued.
        json_out: print the answers as JSON.
    """
    import duckdb  # noqa: F401  # a missing package is reported before seven nodes run
    import pyspark  # noqa: F401  # as above

    place = directory or Path("var") / time.strftime("demo-%Y%m%d-%H%M%S")
    place.mkdir(parents=True, exist_ok=True)
    shown = Demonstration(place.resolve(), _seconds(run_for), quiet(stderr=json_out, soft_wrap=False, highlight=True))
    return shown.run(as_json=json_out)


def _seconds(text: str) -> float:
    span = span_ns(text)
    if not span:
        raise UserError("usage", f"--for {text!r} is not a time", "weft demo --for 60s")
    return span / SECOND


class Demonstration:
    """One run of the demonstration, from its start to the answers."""

    def __init__(self, place: Path, span_s: float, console: Console) -> None:
        self.place, self.console = place, console
        self.lake = place / "lake"
        self.fleet = Fleet(place)
        self.view = View(time.monotonic() + span_s)
        self.progress = Progress(place / f"{PIPELINE}.out")
        self.first_rows = FirstRows(place, time.monotonic())
        self.ports: dict[str, int] = {}
        self._is_interrupted = False
        self._is_cut = False
        """Whether the driver of the tables was killed before it had folded them."""

    def run(self, *, as_json: bool) -> int:
        """The whole demonstration; 0 when the lake holds every sample that was taken."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._interrupt)
        try:
            self._start()
            self._show()
            self._stop()
        finally:
            self.fleet.stop_all()
        return self._answer(as_json=as_json)

    def _interrupt(self, *_: object) -> None:
        if self._is_interrupted:
            raise KeyboardInterrupt
        self._is_interrupted = True

    def _start(self) -> None:
        ports = self.ports = dict(zip(NODES, free_blocks(len(NODES)), strict=True))
        for file, text in texts(self.place, ports).items():
            (self.place / file).write_text(text, "utf-8")
        for name in NODES:
            self.fleet.add(Member(name, ("-m", "weft.cli.main", "up", str(self.place / f"{name}.toml")), ports[name]))
        self.fleet.add(Member(PIPELINE, ("-m", "weft.cli.main", "lake", "run", "--lake", str(self.lake), "--json")))
        self.console.print(f"states, logs and lake are in [bold]{self.place}[/bold]")
        self.console.print(f"console at [bold]{address_of(ports[ROOT])}[/bold]", soft_wrap=True)
        self.console.print(
            f"the root's port is {ports[ROOT]}: weft status --port {ports[ROOT]}; kill -9 whom you like, the root, too\n"
        )

    def _show(self) -> None:
        change_at = time.monotonic() + CHANGE_AFTER * (self.view.ends_at - time.monotonic())
        change = Change(self.ports)
        with Live(console=self.console, refresh_per_second=4, transient=False) as live:
            line_at = 0.0
            while time.monotonic() < self.view.ends_at and not self._is_interrupted:
                self.fleet.watch()
                self.view.news.extend(self.fleet.news)
                self.fleet.news.clear()
                statuses = self._statuses()
                self._look(statuses)
                if time.monotonic() >= change_at and not change.is_done:
                    self._tell(change.step(statuses))
                lake = self.progress.read()
                self.view.waiting = self.first_rows.look(time.monotonic(), has_rows=bool(lake))
                if self.console.is_terminal:
                    live.update(self.view.render(statuses, self.fleet.members, lake))
                elif time.monotonic() >= line_at:
                    line_at = time.monotonic() + LINE_EVERY_S
                    self.console.print(self.view.line(statuses, lake), soft_wrap=True)
                time.sleep(STEP_S)

    def _look(self, statuses: Sequence[dict[str, Any]]) -> None:
        """Read what the root's console shows of the machines; while there is no root, the view keeps what it has."""
        root = next((status["port"] for status in statuses if status["level"] == "root"), None)
        if root is not None:
            with contextlib.suppress(UserError):
                self.view.screen.take(page_of(root, "console/state.json"))

    def _tell(self, news: str) -> None:
        if news:
            self.view.news.append(news)
            if not self.console.is_terminal:
                self.console.print(news, soft_wrap=True)

    def _statuses(self) -> list[dict[str, Any]]:
        asked = (try_status(member.port) for member in self.fleet.members if member.port and member.is_running)
        return [status for status in asked if status]

    def _stop(self) -> None:
        """In the order in which a sample travels, so that none is left on the way."""
        self._say("stopping the sensors, then the collectors, then the root")
        self.fleet.stop(SENSORS)
        self.fleet.stop(COLLECTORS)
        self.fleet.stop([ROOT])
        from weft.lake.layout import Layout
        from weft.pipeline.progress import waiting

        self._say("waiting until the tables have the rest")
        ends_at = time.monotonic() + DRAIN_S
        while waiting(Layout(self.lake)) and time.monotonic() < ends_at and not self._is_interrupted:
            self.fleet.watch()
            time.sleep(STEP_S)
        self._is_cut = bool(self.fleet.stop([PIPELINE], END_S))

    def _answer(self, *, as_json: bool) -> int:
        from weft.cli.tables import show
        from weft.lake.layout import Layout
        from weft.pipeline.progress import waiting
        from weft.pipeline.sql import Lake

        answers: list[dict[str, Any]] = []
        with Lake(self.lake) as lake:
            for question in QUESTIONS:
                table = lake.query(question.sql)
                answers.append({"question": question.words, "rows": table.to_pylist()})
                if not as_json:
                    self.console.print(f"\n[bold]{question.words}[/bold]")
                    show(table, self.console)
        is_whole, verdict = judged(answers[-1]["rows"], waiting(Layout(self.lake)), is_cut=self._is_cut)
        if as_json:
            print(json.dumps({"directory": str(self.place), "verdict": verdict, "answers": answers}, default=str))
        self.console.print(f"\n[bold]{verdict}[/bold]")
        self.console.print(f'ask more: weft sql --lake {self.lake} "SELECT …"', soft_wrap=True)
        return DONE if is_whole else NOT_SO

    def _say(self, text: str) -> None:
        self.console.print(f"[dim]{text}[/dim]")


def texts(place: Path, ports: dict[str, int]) -> dict[str, str]:
    """The files of the demonstration by name: the fleet's, and one for each node. Only the root's names the fleet's."""
    collectors = ", ".join(f'"127.0.0.1:{ports[name]}"' for name in COLLECTORS)
    files = {"fleet.toml": FLEET.format(collectors=collectors)}
    for name in NODES:
        files[f"{name}.toml"] = SETTINGS.format(
            name=name,
            more=f'level = "root"\nconfig = "{place / "fleet.toml"}"\n' if name == ROOT else "",
            port=ports[name],
            beacon_port=ports[ROOT],
            state=place / "state" / name,
            lake=place / "lake",
        )
    return files


class Change:
    """A metric's rate, changed at the root while everything runs, and followed until every node has it."""

    def __init__(self, ports: dict[str, int]) -> None:
        self.ports = ports
        self.is_done = False
        self._number = 0
        self._asked_at = 0.0

    def step(self, statuses: Sequence[dict[str, Any]]) -> str:
        """Ask the present root for it once, then watch which nodes run it; returns what to print, if anything."""
        if not self._number:
            root = next((status["name"] for status in statuses if status["level"] == "root"), "")
            return self._ask(root) if root else ""
        running = [status["name"] for status in statuses if runs(status) >= self._number]
        if len(running) < len(NODES):
            return ""
        self.is_done = True
        took = time.monotonic() - self._asked_at
        return f"all {len(running)} nodes measure cpu every 500 ms now; seen {took:.1f} s after the root was asked"

    def _ask(self, root: str) -> str:
        try:
            answer = order(self.ports[root], "set", key=CHANGED, value={"detail": "CPU", "rate": "500ms"})
        except UserError:
            return ""  # a root is being elected, or has just died: the next look asks again
        self._number, self._asked_at = answer["number"], time.monotonic()
        return f"{root} was asked: {CHANGED} every 500 ms; it is number {self._number} of the configuration"


def runs(status: dict[str, Any]) -> int:
    """The number of the configuration that a node runs; 0 while it has none."""
    return int(status["cores"].get("configuration", {}).get("number") or 0)


def judged(completeness: Sequence[dict[str, Any]], left: int, *, is_cut: bool = False) -> tuple[bool, str]:
    """Whether every node's samples are in the tables, each once, and how to say so.

    `left`: segments that are not taken yet. `is_cut`: the driver was killed before it had counted what is in the tables.
    """
    if left:
        return False, f"{left:,} segments are not in the tables yet: weft lake run adds them"
    if is_cut or not completeness:
        return False, "what is in the tables was not counted in time: weft lake run --once does, with the lake below"
    absent = sorted(set(NODES) - {row["node"] for row in completeness})
    missing = sum(row["missing"] + row["lost"] for row in completeness)
    if absent:
        return False, f"nothing has arrived from {', '.join(absent)}"
    if missing:
        return False, f"{missing:,} samples have not arrived"
    received = sum(row["received"] for row in completeness)
    return True, f"all {received:,} samples that were taken are in the tables, none is missing"


class FirstRows:
    """How long Spark takes until the first rows are in the tables, compared with the last demonstration here."""

    def __init__(self, place: Path, began_s: float) -> None:
        self.file = place / TOOK
        self.began_s = began_s
        self.last_s: int | None = None
        files = sorted(place.parent.glob(f"*/{TOOK}"), key=lambda file: file.stat().st_mtime)
        with contextlib.suppress(IndexError, OSError, ValueError):
            self.last_s = int(files[-1].read_text("utf-8"))
        self._is_noted = False

    def look(self, now_s: float, *, has_rows: bool) -> str:
        """The text to show while people wait; saves the time when the first rows are there."""
        took_s = round(now_s - self.began_s)
        if has_rows and not self._is_noted:
            self._is_noted = True
            self.file.write_text(f"{took_s}\n", "utf-8")
        last = (
            "the first rows can take a minute"
            if self.last_s is None
            else f"the last time its first rows took {self.last_s} s"
        )
        return f"Spark has been starting for {took_s} s; {last}"


class Progress:
    """The sums of what the pipeline prints: one JSON line a batch, in a file that is read as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = 0
        self._sums = dict.fromkeys(SUMMED, 0)
        self._latest: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        """Rows so far, and the last batch; empty before the first."""
        with contextlib.suppress(FileNotFoundError), self.path.open("rb") as file:
            file.seek(self._at)
            for line in file:
                if line.endswith(b"\n"):
                    self._at += len(line)
                    self._take(line)
        return self._latest

    def _take(self, line: bytes) -> None:
        batch = json.loads(line)
        if batch.get("job", "samples") != "samples":
            return
        for name in SUMMED:
            self._sums[name] += batch[name]
        age = batch["freshness_ms"]
        freshness = f"{age / 1000:.1f} s" if age is not None else "-"
        self._latest = {
            **self._sums,
            "missing": batch["missing"],
            "batches": batch["batch"] + 1,
            "freshness": freshness,
        }


def main(arguments: Sequence[str]) -> int:
    """For `python -m weft.cli.demo`."""
    return demo(run_for=arguments[0] if arguments else "60s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
