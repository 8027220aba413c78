"""`weft demo`: a whole fabric on this machine, from measuring to SQL, in one command.

One root, two collectors and four sensors run as separate processes and measure this very machine; the root drains
into a lake, and the Spark pipeline runs over it while it grows. Whatever dies (try `kill -9`) is started again. At
the end all stop in the order of the road, the lake is completed, and five questions are answered from its tables.
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
from weft.cli.asking import try_status
from weft.cli.demo_view import View
from weft.cli.fleet import Fleet, Member, free_blocks

PARENTS: Final = {
    "root": "",
    "collector-1": "root",
    "collector-2": "root",
    "sensor-1": "collector-1",
    "sensor-2": "collector-1",
    "sensor-3": "collector-2",
    "sensor-4": "collector-2",
}
SENSORS: Final = tuple(name for name in PARENTS if name.startswith("sensor"))
COLLECTORS: Final = tuple(name for name in PARENTS if name.startswith("collector"))
PIPELINE: Final = "pipeline"
SUMMED: Final = ("rows", "silver", "values", "duplicates", "quarantined")
STEP_S: Final = 0.5
LINE_EVERY_S: Final = 5.0
DRAIN_S: Final = 30.0  # how long the lake may take to swallow the last samples
SETTINGS: Final = """\
# A node of the demonstration; start one like it with: weft up {name}.toml
[fleet]
name = "demo"
beacon_port = {beacon_port}

[node]
name = "{name}"
level = "{level}"
parent = "{parent}"
port = {port}
state = "{state}"

[metric.cpu]
detail = "CPU"
rate = "1s"

[metric.memory]
detail = "MEMORY"
rate = "1s"

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

# Small processes are not worth carrying: only who holds more than 20 MB goes up.
[[chains.filter]]
name = "large-processes"
kind = "threshold"
types = ["weft.metric"]
dir = "out"
where = {{ name = "process_memory" }}
field = "value"
above = 20e6

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
    place = directory or Path("var") / time.strftime("demo-%Y%m%d-%H%M%S")
    place.mkdir(parents=True, exist_ok=True)
    shown = Demonstration(place.resolve(), _seconds(run_for), Console(stderr=json_out))
    return shown.run(as_json=json_out)


def _seconds(text: str) -> float:
    span = span_ns(text)
    if not span:
        raise UserError("usage", f"--for {text!r} is not a time", "weft demo --for 60s")
    return span / SECOND


class Demonstration:
    """One run: started, shown, stopped, asked."""

    def __init__(self, place: Path, span_s: float, console: Console) -> None:
        self.place, self.console = place, console
        self.lake = place / "lake"
        self.fleet = Fleet(place)
        self.view = View(time.monotonic() + span_s)
        self.progress = Progress(place / f"{PIPELINE}.out")
        self._is_interrupted = False

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
        ports = dict(zip(PARENTS, free_blocks(len(PARENTS)), strict=True))
        for name, parent in PARENTS.items():
            text = SETTINGS.format(
                name=name,
                level=name.partition("-")[0],
                parent=parent,
                port=ports[name],
                beacon_port=ports["root"],
                state=self.place / "state" / name,
                lake=self.lake,
            )
            file = self.place / f"{name}.toml"
            file.write_text(text, "utf-8")
            self.fleet.add(Member(name, ("-m", "weft.cli.main", "up", str(file)), ports[name]))
        self.fleet.add(Member(PIPELINE, ("-m", "weft.cli.main", "lake", "run", "--lake", str(self.lake), "--json")))
        self.console.print(f"states, logs and lake are in [bold]{self.place}[/bold]")
        self.console.print(
            f"the root's port is {ports['root']}: weft status --port {ports['root']}; kill -9 whom you like\n"
        )

    def _show(self) -> None:
        with Live(console=self.console, refresh_per_second=4, transient=False) as live:
            line_at = 0.0
            while time.monotonic() < self.view.ends_at and not self._is_interrupted:
                self.fleet.watch()
                self.view.news.extend(self.fleet.news)
                self.fleet.news.clear()
                statuses = self._statuses()
                lake = self.progress.read()
                if self.console.is_terminal:
                    live.update(self.view.render(statuses, self.fleet.members, lake))
                elif time.monotonic() >= line_at:
                    line_at = time.monotonic() + LINE_EVERY_S
                    self.console.print(self.view.line(statuses, lake), soft_wrap=True)
                time.sleep(STEP_S)

    def _statuses(self) -> list[dict[str, Any]]:
        asked = (try_status(member.port) for member in self.fleet.members if member.port and member.is_running)
        return [status for status in asked if status]

    def _stop(self) -> None:
        """Along the road of a sample, so that nothing is left on it."""
        self._say("stopping the sensors, then the collectors, then the root")
        self.fleet.stop(SENSORS)
        self.fleet.stop(COLLECTORS)
        self.fleet.stop(["root"])
        from weft.lake.layout import Layout
        from weft.pipeline.progress import waiting

        self._say("letting the tables take up what is left")
        ends_at = time.monotonic() + DRAIN_S
        while waiting(Layout(self.lake)) and time.monotonic() < ends_at and not self._is_interrupted:
            self.fleet.watch()
            time.sleep(STEP_S)
        self.fleet.stop([PIPELINE], DRAIN_S)

    def _answer(self, *, as_json: bool) -> int:
        from weft.cli.tables import show
        from weft.pipeline.sql import Lake

        answers: list[dict[str, Any]] = []
        with Lake(self.lake) as lake:
            for question in QUESTIONS:
                table = lake.query(question.sql)
                answers.append({"question": question.words, "rows": table.to_pylist()})
                if not as_json:
                    self.console.print(f"\n[bold]{question.words}[/bold]")
                    show(table, self.console)
        is_whole, verdict = judged(answers[-1]["rows"])
        if as_json:
            print(json.dumps({"directory": str(self.place), "verdict": verdict, "answers": answers}, default=str))
        self.console.print(f"\n[bold]{verdict}[/bold]")
        self.console.print(f'ask more: weft sql --lake {self.lake} "SELECT …"', soft_wrap=True)
        return 0 if is_whole else 1

    def _say(self, text: str) -> None:
        self.console.print(f"[dim]{text}[/dim]")


def judged(completeness: Sequence[dict[str, Any]]) -> tuple[bool, str]:
    """Whether every node's samples are in the tables, each once, and how to say so."""
    absent = sorted(set(PARENTS) - {row["node"] for row in completeness})
    missing = sum(row["missing"] + row["lost"] for row in completeness)
    if absent:
        return False, f"nothing has arrived from {', '.join(absent)}"
    if missing:
        return False, f"{missing:,} samples have not arrived"
    received = sum(row["received"] for row in completeness)
    return True, f"all {received:,} samples that were taken are in the tables, none is missing"


class Progress:
    """What the pipeline prints, a JSON line a batch, read as it grows, and added up."""

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
