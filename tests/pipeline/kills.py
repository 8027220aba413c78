"""Rounds in which everything is killed, and the judge of what is left (PIP-022, section 12.3).

`scene` draws a history of a few nodes: late, doubled, shuffled, unreadable, contradicted, announced lost, never sent. It
is written into journals piece by piece. `Rounds` runs a real recorder per journal and a real driver (in this machine's
JVM, or on a cluster), and sends SIGKILL to one of their processes at a drawn instant. `judge` recomputes from the
journals, in DuckDB and without any code of the pipeline, what the tables must hold, and names every difference.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import psutil
import pyarrow as pa
from deltalake import DeltaTable

from tests.pipeline.ground import CPU, LOAD, MEM, NET, SEEN, lost, single, taken
from weft.base.chance import Chance
from weft.base.records import LostRecord, Record, StreamRecord
from weft.lake.layout import Layout
from weft.shell.files import Files
from weft.shell.journal import Journal, JournalReader
from weft.wire import samples

NODES: Final = tuple(f"{number:032x}" for number in (0xA1, 0xA2, 0xA3, 0xA4, 0xA5))
ROOTS: Final = (b"\xd1" * 16, b"\xd2" * 16)
"""Whose journals they are; each is a drain of its own."""
SERIES: Final = (CPU, MEM, NET, SEEN, LOAD)
BAD: Final = b"\xc1"
WALL: Final = 1_800_000_000_000_000_000
BUDGET: Final = 4 << 30
LOOK_S: Final = 0.1
PATIENCE_S: Final = 300.0
LAST_S: Final = 1800.0
"""How long the last driver may take to what all others have left."""
UNAVAILABLE: Final = 3  # of Spark something is gone; then one starts again
LAST_TRIES: Final = 5
STARTING_S: Final = 150.0
"""How long a driver may take to its first commit, on a machine that has other things to do."""
RECORDER: Final = """
import sys
from pathlib import Path
from weft.cli import drain
from weft.cores.drain.messages import DrainSettings
drain.PATIENT = DrainSettings(rows_max=20_000)
drain.drain(Path(sys.argv[1]), lake=Path(sys.argv[2]))
"""
SETTINGS: Final = """
[lake.spark]
"spark.sql.codegen.wholeStage" = false
"spark.sql.codegen.factoryMode" = "NO_CODEGEN"
"""
"""A driver that is killed soon does not earn back what it compiles."""
DRIVER: Final = "from weft.cli.main import main\nmain()\n"
NO_APP_TRANSACTION: Final = """
from weft.pipeline.delta import Tables
Tables.committed = lambda self, table: -1
"""
"""A driver with this in front does not see what it has committed: the bug that all of this is to find."""

HERE: Final = ("python", "recorder", "java")
"""Who is killed, in turn."""
ON_A_CLUSTER: Final = ("executor", "recorder", "worker", "python", "executor", "java", "worker")

Chunk = tuple[list[Record], ...]
"""What each journal gets at once."""


def scene(chance: Chance, rows: int, chunks: int) -> list[Chunk]:
    """A history of about so many rows, as what is written into the journals, chunk by chunk."""
    weights = [chance.choice((1, 1, 1, 5)) for _ in range(chunks)]
    placed: list[tuple[list[Record], ...]] = [tuple([] for _ in ROOTS) for _ in range(chunks)]
    for node in NODES:
        number, last = 1, rows // len(NODES)
        while number <= last:
            width = chance.randint(40, 600)
            began = _when(chance, weights, number / last)
            _place(chance, placed, began, node, (number, width))
            number += width
    for chunk in placed:
        for records in chunk:
            chance.shuffle(records)
    return placed


def _when(chance: Chance, weights: list[int], share: float) -> int:
    """The chunk in which a part arrives: in its turn, or, one in ten, any time later."""
    upto, whole = 0.0, sum(weights)
    turn = len(weights) - 1
    for place, weight in enumerate(weights):
        upto += weight / whole
        if share <= upto:
            turn = place
            break
    return chance.randint(turn, len(weights) - 1) if chance.random() < 0.1 else turn


def _place(chance: Chance, placed: list[Chunk], began: int, node: str, pair: tuple[int, int]) -> None:
    """One part of a node's numbers, `pair` its first and how many, and what befalls it."""
    first, width = pair
    home = chance.randrange(len(ROOTS))
    kind = chance.random()
    if kind < 0.01:
        return  # never sent, and nobody says so
    if kind < 0.02:
        placed[began][home].append(lost(first, first + width - 1, node))
        return
    rows = [_row(chance, number) for number in range(first, first + width)]
    whole = taken(first, rows, node)
    if kind < 0.04:  # one in the middle cannot be read
        middle = width // 2
        cut = [taken(first, rows[:middle], node), single(first + middle, BAD, node)]
        placed[began][home].extend([*cut, taken(first + middle + 1, rows[middle + 1 :], node)])
        return
    placed[began][home].append(whole)
    if kind < 0.10:  # told to the other root too, then or later
        placed[chance.randint(began, len(placed) - 1)][1 - home].append(whole)
    elif kind < 0.12 and began + 1 < len(placed):  # said again, and otherwise
        other = taken(first, [(series, value + 1, base) for series, value, base in rows[:5]], node)
        placed[chance.randint(began + 1, len(placed) - 1)][home].append(other)


def _row(chance: Chance, number: int) -> tuple[samples.Series, Any, Any]:
    series = SERIES[chance.randrange(len(SERIES))]
    value = number * 10 if chance.random() < 0.98 else chance.randint(0, 50)
    return series, value, number * 7 if series in (CPU, LOAD) else None


class Journals:
    """The journals of the roots, and the recorders that drain them."""

    def __init__(self, place: Path, lake: Path) -> None:
        self.place, self.lake = place, lake
        self.paths = tuple(place / f"root-{number}" for number in range(len(ROOTS)))
        self.recorders: list[subprocess.Popen[bytes]] = []
        lake.mkdir(parents=True)
        (lake / "lake.toml").write_text(SETTINGS, "utf-8")

    def add(self, chunk: Chunk) -> None:
        """Write; nobody drains meanwhile."""
        self.finish()
        for path, root, records in zip(self.paths, ROOTS, chunk, strict=True):
            journal, _ = Journal.open(path, root, Files(), WALL, BUDGET)
            for start in range(0, len(records), 100):
                journal.write(records[start : start + 100], WALL)
            journal.close(WALL)

    def drain(self) -> None:
        """Start a recorder per journal."""
        with (self.place / "recorder.log").open("ab") as log:
            self.recorders = [
                subprocess.Popen(
                    [sys.executable, "-c", RECORDER, str(path), str(self.lake)], stdout=subprocess.DEVNULL, stderr=log
                )
                for path in self.paths
            ]

    def finish(self) -> None:
        for recorder in self.recorders:
            assert 0 == recorder.wait(PATIENCE_S), (self.place / "recorder.log").read_text("utf-8")[-2000:]
        self.recorders = []

    def end(self) -> None:
        """No recorder runs after this."""
        for recorder in self.recorders:
            recorder.kill()
            recorder.wait()
        self.recorders = []

    def kill(self, after_s: float) -> None:
        """Kill the recorders, wherever they are; and let others finish."""
        for recorder in self.recorders:
            with contextlib.suppress(subprocess.TimeoutExpired):
                recorder.wait(after_s)
            recorder.kill()
            recorder.wait()
        self.drain()

    def records(self) -> Iterator[tuple[int, int, Record]]:
        """Journal, lsn and record, of everything that was ever said."""
        for place, path in enumerate(self.paths):
            for lsn, record in JournalReader(path).entries():
                if isinstance(record, StreamRecord | LostRecord):
                    yield place, lsn, record


class Driver:
    """`weft lake run` as a process that is started again when it has ended."""

    def __init__(self, lake: Path, master: str, environment: dict[str, str], bug: str = "") -> None:
        self.lake, self.master, self.environment, self.bug = lake, master, environment, bug
        self.process: subprocess.Popen[bytes] | None = None
        self.ends: list[int] = []
        """Exit codes, and negative signals, of all that have ended."""
        self.sessions: set[int] = set()
        """One for each start: whatever a driver started stays in its session, also when the driver is dead."""

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self, *words: str) -> None:
        """Start one unless it runs."""
        if self.is_running:
            return
        self._note()
        command = ["lake", "run", "--lake", str(self.lake), "--json", "--master", self.master, "--gold-every", "20"]
        with (self.lake.parent / "driver.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", self.bug + DRIVER, *command, *words],
                stdout=log, stderr=log, env=self.environment, start_new_session=True,
            )  # fmt: skip
        self.sessions.add(self.process.pid)

    def itself(self) -> list[psutil.Process]:
        """The driver, unless it has ended."""
        if self.process is None or not self.is_running:
            return []
        with contextlib.suppress(psutil.NoSuchProcess):
            return [psutil.Process(self.process.pid)]
        return []

    def processes(self, *marks: str) -> list[psutil.Process]:
        """Its living descendants whose command line has all of these words."""
        return descendants(self.process, *marks)

    def wait(self, seconds: float) -> None:
        """So long, or until it ends."""
        assert self.process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, seconds))

    def end(self) -> int:
        """Let it finish; its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE_S)
        self._note()
        return code

    def end_by_itself(self) -> int:
        """Its exit code, when it has done what there is."""
        assert self.process is not None
        code = self.process.wait(LAST_S)
        self._note()
        return code

    def kill(self) -> None:
        """Neither a driver nor anything that one of them started runs after this."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        for pid in self.left():
            _end(pid)

    def left(self) -> list[int]:
        """What drivers, also dead ones, started and what still runs."""
        return [pid for pid in psutil.pids() if _session_of(pid) in self.sessions]

    def _note(self) -> None:
        if self.process is not None:
            self.ends.append(self.process.wait())
            self.process = None


def descendants(process: "subprocess.Popen[bytes] | None", *marks: str) -> list[psutil.Process]:
    """Living descendants of a process whose command line has all of these words."""
    children: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        children = psutil.Process(process.pid).children(recursive=True) if process is not None else []
    return [child for child in children if all(mark in line_of(child) for mark in marks)]


def line_of(process: psutil.Process) -> str:
    """The command line of a process, empty when it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _session_of(pid: int) -> int:
    """The session of a process, 0 when it has ended, also when nobody has asked for its exit code."""
    try:
        return 0 if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE else os.getsid(pid)
    except (ProcessLookupError, psutil.Error):
        return 0


def _end(pid: int) -> None:
    """Kill a process that may be nobody's child, and wait until it has ended."""
    with contextlib.suppress(ProcessLookupError), os.fdopen(os.pidfd_open(pid), "rb") as handle:
        signal.pidfd_send_signal(handle.fileno(), signal.SIGKILL)
        select.select([handle], [], [], PATIENCE_S)


class Told(NamedTuple):
    """What the rounds did."""

    kills: Counter[str]
    missed: Counter[str]
    """Who had ended by itself, or had not begun, when its turn to be killed came."""
    ends: Counter[int]
    seconds: float


class Rounds:
    """Kills at drawn instants while a history arrives."""

    def __init__(self, chance: Chance, journals: Journals, driver: Driver, cluster: Any = None) -> None:
        self.chance, self.journals, self.driver, self.cluster = chance, journals, driver, cluster
        self.kills: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.victims: dict[str, Callable[[], list[psutil.Process]]] = {
            "python": driver.itself,
            "java": lambda: driver.processes("org.apache.spark.deploy.SparkSubmit"),
        }
        if cluster is not None:
            self.victims |= {
                "executor": lambda: descendants(cluster, "CoarseGrainedExecutorBackend"),
                "worker": lambda: descendants(cluster, "worker.Worker"),
            }

    def run(self, chunks: list[Chunk], instants: int) -> Told:
        """All chunks, and so many kills among them; the last driver ends by itself when all is in the tables.

        No process that was started here runs after this, however it ends.
        """
        try:
            return self._run(chunks, instants)
        finally:
            self.driver.kill()
            self.journals.end()

    def _run(self, chunks: list[Chunk], instants: int) -> Told:
        began = time.monotonic()
        order = ON_A_CLUSTER if self.cluster is not None else HERE
        for instant in range(max(instants, len(chunks))):
            if instant < len(chunks):
                self.journals.add(chunks[instant])
                self.journals.drain()
            self.driver.start()
            if instant < instants:
                self._strike(order[instant % len(order)])
        self.journals.finish()
        if self.driver.is_running:
            self.driver.end()
        code = UNAVAILABLE
        for _ in range(LAST_TRIES):
            if code == UNAVAILABLE:
                self.driver.start("--once")
                code = self.driver.end_by_itself()
        assert 0 == code, self.log()[-3000:]
        return Told(self.kills, self.missed, Counter(self.driver.ends), time.monotonic() - began)

    def log(self) -> str:
        return (self.driver.lake.parent / "driver.log").read_text("utf-8")

    def _strike(self, victim: str) -> None:
        """Kill one; that it was gone already is part of the story, too."""
        if victim == "recorder":
            self.journals.kill(self.chance.uniform(0.0, 1.5))
            self.kills[victim] += 1
            return
        if self.chance.random() < 0.8:
            self._until_it_works()
        self.driver.wait(self.chance.uniform(0.0, 3.0))
        try:
            self.chance.choice(self.victims[victim]()).send_signal(signal.SIGKILL)
        except (IndexError, psutil.NoSuchProcess):
            self.missed[victim] += 1
            return
        self.driver.wait(LOOK_S if victim in ("executor", "worker") else 10.0)
        self.kills[victim] += 1

    def _until_it_works(self) -> None:
        """Until some table has been committed to anew, if that comes."""
        tables = Layout(self.driver.lake).tables()
        before, ends_at = _commits(tables), time.monotonic() + STARTING_S
        while _commits(tables) == before and time.monotonic() < ends_at and self.driver.process is not None:
            if self.driver.process.poll() is not None:
                return
            self.driver.wait(LOOK_S)


def _commits(tables: Path) -> int:
    """Of all tables together."""
    return sum(1 for _ in tables.glob("*/*/_delta_log/*.json"))


# The judge.

HEARD: Final = pa.schema(
    {
        "journal": pa.int64(), "lsn": pa.int64(), "place": pa.int64(), "origin": pa.string(), "sequence": pa.int64(),
        "name": pa.string(), "kind": pa.string(), "at_ms": pa.int64(), "value": pa.float64(), "base": pa.float64(),
    }
)  # fmt: skip
EXPECTED: Final = """
CREATE TABLE silver AS
    SELECT * FROM heard QUALIFY row_number() OVER (PARTITION BY origin, sequence ORDER BY odd, journal, lsn, place) = 1;
CREATE TABLE refused AS SELECT origin, sequence FROM silver WHERE name IS NULL;
DELETE FROM silver WHERE name IS NULL;
CREATE TABLE known AS
    SELECT *, row_number() OVER (PARTITION BY origin ORDER BY sequence) AS place,
           sum(hollow) OVER (PARTITION BY origin ORDER BY sequence) AS hollows
    FROM (SELECT origin, sequence, 0 AS hollow FROM silver
          UNION ALL SELECT origin, sequence, 1 FROM refused UNION ALL SELECT origin, sequence, 1 FROM announced);
CREATE TABLE pairs AS
    SELECT s.*, k.place AS place_, k.hollows,
           lag(s.sequence) OVER w AS before, lag(k.place) OVER w AS place_before, lag(k.hollows) OVER w AS hollows_before,
           s.value - lag(s.value) OVER w AS dv, s.base - lag(s.base) OVER w AS db, s.at_ms - lag(s.at_ms) OVER w AS dt
    FROM silver s JOIN known k USING (origin, sequence) WINDOW w AS (PARTITION BY s.origin, s.name ORDER BY s.sequence);
CREATE TABLE wanted AS
    SELECT origin, sequence, name, at_ms, CASE WHEN kind = 'basic' THEN NULL ELSE before END AS from_sequence,
           CASE WHEN kind = 'basic' THEN value
                WHEN dv < 0 OR (kind IN ('average', 'percent') AND db < 0) OR (kind = 'rate' AND dt <= 0) THEN NULL
                WHEN kind = 'delta' THEN dv
                WHEN kind = 'rate' THEN 1000 * dv / dt
                WHEN db = 0 THEN 0
                WHEN kind = 'average' THEN dv / db ELSE 100 * (dv / db) END AS result,
           CASE WHEN kind = 'basic' THEN NULL
                WHEN dv < 0 THEN 'reset' WHEN db < 0 THEN 'base-reset' WHEN kind = 'rate' AND dt <= 0 THEN 'clock'
                WHEN hollows > hollows_before THEN 'across-lost' END AS reason
    FROM pairs WHERE kind = 'basic' OR (before IS NOT NULL AND place_ - place_before = sequence - before);
CREATE TABLE minutes AS
    SELECT origin AS node, name, at_ms // 60000 AS minute, count(result) AS n, sum(result) AS sum,
           min(result) AS low, max(result) AS high, count(*) FILTER (WHERE reason IN ('reset', 'base-reset')) AS resets
    FROM wanted GROUP BY ALL;
"""
"""What the tables must hold, from what was heard: `silver`, `refused`, `wanted` (values), `minutes` (roll-ups)."""

NEAR: Final = "abs(coalesce({a}, 0) - coalesce({b}, 0)) <= 1e-9 * greatest(1, abs(coalesce({a}, 0)))"
QUESTIONS: Final = {
    "rows of silver that are not those of the journals": """
        SELECT count(*) FROM (SELECT origin, sequence, name, at_ms * 1000000 AS at_ns, value FROM silver) w
        FULL JOIN (SELECT origin, sequence, config_name AS name, at_ns, value FROM t_silver) t
        USING (origin, sequence, name, at_ns, value) WHERE w.origin IS NULL OR t.origin IS NULL""",
    "rows of silver more or less": "SELECT abs((SELECT count(*) FROM silver) - (SELECT count(*) FROM t_silver))",
    "refused numbers that are not those of the journals": """
        SELECT count(*) FROM refused w
        FULL JOIN (SELECT origin, sequence FROM t_quarantine WHERE reason <> 'changed') t
        USING (origin, sequence) WHERE w.origin IS NULL OR t.origin IS NULL""",
    "contradictions more or less": """
        SELECT abs((SELECT count(*) FROM heard WHERE odd)
                 - (SELECT count(*) FROM t_quarantine WHERE reason = 'changed'))""",
    "rows of bronze more or less": "SELECT abs((SELECT count(*) FROM heard) - (SELECT count(*) FROM t_bronze))",
    "rows that are nowhere": """
        SELECT abs(sum(rows_in) - sum(rows_silver) - sum(rows_duplicate) - sum(rows_quarantine))
             + abs(sum(rows_in) - (SELECT count(*) FROM t_bronze))
             + abs(sum(rows_silver) - (SELECT count(*) FROM t_silver))
             + abs(sum(rows_quarantine) - (SELECT count(*) FROM t_quarantine)) FROM t_progress WHERE job = 'samples'""",
    "values more or less": "SELECT abs((SELECT count(*) FROM wanted) - (SELECT count(*) FROM t_values))",
    "values that are not those of the journals": f"""
        SELECT count(*) FROM wanted w FULL JOIN t_values t
        ON w.origin = t.origin AND w.sequence = t.sequence AND w.from_sequence IS NOT DISTINCT FROM t.from_sequence
           AND w.reason IS NOT DISTINCT FROM t.reason AND (w.result IS NULL) = (t.result IS NULL)
           AND {NEAR.format(a="w.result", b="t.result")}
        WHERE w.origin IS NULL OR t.origin IS NULL""",
    "minutes that are not those of the journals": f"""
        SELECT count(*) FROM minutes w FULL JOIN
            (SELECT r.*, s.config_name AS name, epoch_ms(window_start) // 60000 AS minute
             FROM t_minutes r JOIN (SELECT DISTINCT series, config_name FROM t_series) s USING (series)) t
        ON w.node = t.node AND w.name = t.name AND w.minute = t.minute AND w.n = t.n AND w.resets = t.resets
           AND w.low IS NOT DISTINCT FROM t.min AND w.high IS NOT DISTINCT FROM t.max
           AND {NEAR.format(a="w.sum", b="t.sum")}
        WHERE w.node IS NULL OR t.node IS NULL""",
    "numbers missing more or less": """
        SELECT abs(coalesce((SELECT sum(missing) FROM t_completeness WHERE stream = 'samples'), 0)
                 - (SELECT sum(last - held) FROM
                    (SELECT origin, max(sequence) AS last, count(DISTINCT sequence) AS held FROM known GROUP BY origin)))""",
}
"""Each counts what is wrong; 0 is right."""
TABLES: Final = {
    "t_silver": ("silver", "samples"),
    "t_values": ("silver", "values"),
    "t_series": ("silver", "series"),
    "t_bronze": ("bronze", "samples"),
    "t_quarantine": ("quarantine", "samples"),
    "t_minutes": ("gold", "rollup_1m"),
    "t_completeness": ("gold", "completeness"),
    "t_progress": ("meta", "progress"),
}


def judge(lake: Layout, journals: Journals) -> dict[str, int]:
    """What differs from a recomputation of the journals, with how much; empty if nothing does."""
    heard, announced = _heard(journals)
    with duckdb.connect(":memory:") as asked:
        asked.execute("SET TimeZone = 'UTC'")
        asked.register("told", heard)
        asked.register("announced", announced)
        # A contradiction is a later word of the same journal about a number, with another value.
        asked.execute("""
            CREATE TABLE heard AS SELECT *, coalesce(name IS NOT NULL AND value <> first_value(value) OVER
                (PARTITION BY origin, sequence, journal ORDER BY lsn, place), false) AS odd FROM told""")
        asked.execute(EXPECTED)
        for name, (layer, table) in TABLES.items():
            asked.register(name, DeltaTable(lake.table(layer, table)).to_pyarrow_dataset())
        counted = {what: asked.execute(sql).fetchone() for what, sql in QUESTIONS.items()}
    return {what: int(found[0]) for what, found in counted.items() if found is not None and found[0]}


def _heard(journals: Journals) -> tuple[pa.Table, pa.Table]:
    """Every row that was ever said, and every number announced lost."""
    said: list[tuple[Any, ...]] = []
    gone: list[tuple[str, int]] = []
    for journal, lsn, record in journals.records():
        if isinstance(record, LostRecord):
            gone += [(record.origin.hex(), number) for number in range(record.first, record.last + 1)]
        elif isinstance(record, StreamRecord):
            said += [(journal, lsn, place, record.origin.hex(), *row) for place, row in enumerate(_rows(record))]
    announced = pa.table({"origin": [name for name, _ in gone], "sequence": [number for _, number in gone]})
    return pa.table([list(column) for column in zip(*said, strict=True)], schema=HEARD), announced


def _rows(record: StreamRecord) -> Iterator[tuple[Any, ...]]:
    if record.payload == BAD:
        yield record.sequence, None, None, record.at // 1_000_000, None, None
        return
    batch = samples.decode(record.payload)
    for place, row in enumerate(batch.rows):
        series = batch.series[row.series]
        at_ms = batch.t0_ms + row.offset_ms
        yield record.sequence + place, series.config_name, series.type, at_ms, row.value, row.base


def environment(state: Path, quick: bool = True) -> dict[str, str]:
    """For processes of a round: their state is their own, and a JVM that is killed soon compiles little."""
    more = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"} if quick else {}
    return {**os.environ, "XDG_STATE_HOME": str(state), **more}


def spoken(told: Told, seed: int, rows: int) -> str:
    """One line for a report."""
    kills = ", ".join(f"{count} {name}" for name, count in sorted(told.kills.items()))
    missed = f", gone before its turn: {json.dumps(dict(told.missed))}" if told.missed else ""
    return f"seed {seed}: {rows:,} rows, {told.kills.total()} kills ({kills}){missed}, exits {json.dumps(dict(told.ends))}, {told.seconds:.0f} s"
