"""`weft lake run` and `weft lake check`: make tables of a lake's segments, and check that no row is missing."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.home import home_of
from weft.cli.kit.options import Flag
from weft.lake.layout import Layout

Where = Annotated[Path | None, Parameter(name="--lake")]
SHOWN: Final = ("batch", "rows", "silver", "values", "duplicates", "quarantined", "missing", "seconds")
HEAP_MB: Final = 512
Hears = Callable[[Any], None]
"""Called with each batch that is in the tables (`weft.pipeline.job.Done`)."""


def run(
    *,
    lake: Where = None,
    once: Flag = False,
    wait: float = 0.0,
    take_over: Flag = False,
    json: Flag = False,
    master: str = "local[*]",
    secret: Path | None = None,
    remote: str | None = None,
    streams: str = "",
    gold_every: float = 60.0,
    no_gold: Flag = False,
    heap_mb: int = HEAP_MB,
    ui: Flag = False,
    metrics: int | None = None,
) -> None:
    """Make tables of a lake's segments, continuously: bronze, silver, calculated values, gold, completeness.

    The job of each stream starts with its first segment, that of samples at once. Rules, retention and Spark's settings
    are in the lake's `lake.toml`.

    It may be killed at any instant and started again: no row is lost or doubled. Ctrl-C ends it after the current batch, a
    second Ctrl-C at once. A lake has only one driver: another one is refused with exit status 75, or waits.

    Args:
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        once: end when all segments that exist when Spark has started are in the tables.
        wait: as a spare: wait so many seconds for the present driver to end, then take its place.
        take_over: kill a driver on this machine that stands still for 30 s, e.g. stopped by Ctrl-Z.
        json: one JSON line per batch instead of a display.
        master: Spark's master: local[*], local-cluster[workers, cores, MiB] or spark://HOST:PORT.
        secret: file with the secret of that cluster; default: the secret of `weft lake cluster` on this machine.
        remote: use a Spark Connect server instead, sc://HOST:PORT, that has the lake at the same path.
        streams: only these, with commas between them; else all: samples,messages,events,store,catalog,logs,documents,configuration.
        gold_every: seconds between folds of the gold tables; `weft sql` shows newer rows all the same.
        no_gold: never fold.
        heap_mb: heap of the driver's JVM in MiB.
        ui: serve Spark's own pages, on loopback.
        metrics: a port on loopback at which Prometheus can scrape the driver's metrics.
    """
    from weft.pipeline.cluster import secret_of
    from weft.pipeline.job import JobOptions
    from weft.pipeline.rules import rules_of
    from weft.pipeline.runner import Runner
    from weft.pipeline.session import Options, default_state
    from weft.pipeline.settings import settings_of

    os.umask(0o077)  # nobody else may read what a lake holds (PIP-088)
    layout = _layout(lake, must_exist=once)  # a driver that runs on waits for the lake
    settings = settings_of(layout)
    every_s = float("inf") if no_gold else gold_every
    wanted = JobOptions(rules_of(settings), _named(streams), every_s, settings.mute)
    with _listening(layout, _display(layout, once=once, as_json=json), metrics) as on_batch:
        runner = Runner(layout, on_batch, wanted)
        _stop_on_signals(runner.stop)
        options = Options(master=master, remote=remote, heap_mb=heap_mb, ui=ui, log=layout.runs() / "spark.log")
        secret = secret or secret_of(master, default_state())
        options = options._replace(settings=settings.spark_texts, secret=secret)
        runner.run(options, once=once, wait_s=wait, takes_over=take_over)


def check(*, lake: Where = None, deep: Flag = False, adopt: Flag = False, json: Flag = False) -> int:
    """Compare the drained records with the rows of the tables, by number: equal (0), behind (1), or broken (2).

    It verifies the chain of manifests, looks at every file of the tables, and compares the numbers in segments, in bronze,
    and in silver or quarantine as ranges. Needs no Java.

    With --deep, every byte of segments, tables and their logs is read first and compared with its digest. Files that an
    earlier version or another program has written have no digest: they are counted, and the status is 3, until --adopt
    computes digests from their present content.

    Args:
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        deep: read every byte and compare it with its digest.
        adopt: with --deep: compute digests for files without one.
        json: the verdict as one JSON object.
    """
    from weft.pipeline.check import Check

    if adopt and not deep:
        raise UserError("usage", "--adopt needs --deep", "weft lake check --deep --adopt")
    verdict = Check(_layout(lake, must_exist=True), deep=deep, adopt=adopt).run()
    if json:
        sys.stdout.write(msgspec.json.encode(verdict._asdict(), enc_hook=str).decode() + "\n")
        return verdict.exit_code
    of_all = " of all streams" if sum(name.startswith("bronze.") for name in verdict.rows) > 1 else ""
    places = ((name + of_all if name == "manifests" else name, count) for name, count in verdict.rows.items())
    rows = ", ".join(f"{count:,} in {place}" for place, count in places)
    print(f"{verdict.state}: {verdict.segments:,} segments, {verdict.waiting:,} not yet taken; rows: {rows or 'none'}")
    if deep:
        rate = verdict.proved / 1e6 / max(verdict.proved_s, 1e-6)
        print(f"  {verdict.proved:,} bytes are what their digests say, {rate:,.0f} MB/s")
    for name, count in verdict.unproved.items():
        print(f"  {count:,} files of {name} have no digest: weft lake check --deep --adopt takes them on as they are")
    for name, count in verdict.forgotten.items():
        print(f"  {count:,} rows of {name} were removed on purpose: meta.forgotten")
    for difference in verdict.differences:
        print(f"  {difference.what}")
        for origin, ranges in difference.ranges.items():
            print(f"    {origin}: {ranges}")
    return verdict.exit_code


@contextmanager
def _listening(layout: Layout, display: AbstractContextManager[Any], metrics: int | None) -> Iterator[Hears]:
    """The function that gets each batch: for the display, the log of events, and the metrics if requested."""
    from weft.pipeline.eventlog import Lookout

    with display as show:
        lookout = Lookout(layout, getattr(show, "note", lambda _: None))
        receivers: list[Hears] = [show, lookout.hear]
        if metrics is not None:
            receivers.append(_metered(layout, metrics))

        def hear(done: Any) -> None:
            for receiver in receivers:
                receiver(done)

        try:
            yield hear
        except BaseException as error:
            lookout.failed(error)
            raise
        lookout.ended()


def _metered(layout: Layout, port: int) -> Hears:
    from weft.pipeline.metrics import HOST, Meter

    meter = Meter(layout)
    try:
        meter.serve(port)
    except OSError as error:
        raise UserError("port-taken", f"{HOST}:{port}: {error.strerror}", "another --metrics PORT") from None
    return meter.hear


def _named(streams: str) -> tuple[str, ...]:
    """The streams of a list with commas, in the order in which jobs start. UserError `no-stream`."""
    from weft.pipeline.tables import STAGES

    wanted = [name for part in streams.split(",") if (name := part.strip())]
    if unknown := [name for name in wanted if name not in STAGES]:
        raise UserError("no-stream", f"there is no stream {unknown[0]!r}", ",".join(STAGES))
    return tuple(name for name in STAGES if name in wanted)


def facts(done: Any) -> dict[str, Any]:
    """The facts printed about a batch (`weft.pipeline.job.Done`)."""
    outcome = done.outcome
    return {
        "job": done.job,
        "batch": done.number,
        "rows": outcome.rows,
        "silver": outcome.silver,
        "values": outcome.values,
        "duplicates": outcome.duplicates,
        "quarantined": outcome.quarantined,
        "missing": done.missing,
        "segments": done.segments,
        "behind": done.behind,
        "freshness_ms": done.freshness_ms,
        "seconds": done.seconds,
        "steps": done.steps,
    }


def _layout(lake: Path | None, *, must_exist: bool) -> Layout:
    """The lake, by its absolute path, which Spark needs.

    UserError `no-lake` if it must exist and no root has drained into it yet.
    """
    layout = Layout(home_of(lake).absolute())
    if must_exist and not layout.lake_json.exists() and not (layout.root / "drain").is_dir():
        raise UserError(
            "no-lake", f"{layout.root} is not a lake", "--lake DIR, the directory that the root drains into"
        )
    return layout


def _stop_on_signals(stop: Callable[[], None]) -> None:
    def on_signal(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second signal ends at once, which is safe too
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        stop()

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)


def _display(layout: Layout, *, once: bool, as_json: bool) -> AbstractContextManager[Callable[[Any], None]]:
    """The function that shows each batch: as JSON lines, as plain lines, or in a live display on a terminal."""
    if as_json or not sys.stdout.isatty():
        return nullcontext(_print_json if as_json else _print_line)
    from weft.cli.lake_view import Bar, View  # only people need it

    return Bar(layout) if once else View()


def _print_json(done: Any) -> None:
    sys.stdout.write(msgspec.json.encode(facts(done)).decode() + "\n")
    sys.stdout.flush()


def _print_line(done: Any) -> None:
    texts = facts(done)
    sys.stdout.write(f"{done.job}  " + "  ".join(f"{name} {texts[name]:,}" for name in SHOWN) + "\n")
    sys.stdout.flush()
