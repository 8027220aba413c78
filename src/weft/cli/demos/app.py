"""`weft demo`: a whole fabric; or one of the programs that show what chains do (DEM-001 to DEM-007)."""

import os
import signal
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import App, Parameter

from weft.base.errors import UserError
from weft.base.now import MILLISECOND, SECOND
from weft.base.settings import span_ns
from weft.cli.chain_calls import place_of
from weft.cli.demos.programs import REWRITES, Aggregator, Detector, Responder, Rewriter
from weft.cli.kit.options import Flag
from weft.cli.which import AskedNode

app = App(
    name="demo", help="Run a whole fabric on this machine, or, beside a node, a program that shows what chains do."
)

Begin = Annotated[bool, Parameter(name="--wait-for-begin", negative="", show=False)]
"""Wait for a line on standard input with the instant to begin, in seconds since 1970. The walk-through uses it."""
DESTINATIONS: Final = {"parentsof": ("PARENTSOF",), "direct": ("DIRECT",), "nearestcoord": ("NEARESTCOORD",)}


@app.default
def whole_fabric(
    *,
    run_for: Annotated[str, Parameter(name="--for")] = "60s",
    directory: Path | None = None,
    json: Flag = False,
) -> int:
    """Run a whole fabric on this machine for a while, then answer five questions from its tables.

    Args:
        run_for: how long, e.g. 60s or 5m.
        directory: where states, logs and lake go; default ./var/demo-TIME. An existing one is continued.
        json: print the answers as JSON.
    """
    from weft.cli.demo import demo

    return demo(run_for=run_for, directory=directory, json_out=json)


@app.command
def detector(
    *,
    period: str = "2s",
    to: Literal["parentsof", "direct", "nearestcoord"] = "parentsof",
    count: int | None = None,
    node: AskedNode = None,
    json: Flag = False,
    waits: Begin = False,
) -> int:  # tidy: each is an option of the command line
    """Send a report to the node above, at once and then every period, and print what became of each.

    It is not part of a chain. Ctrl-C ends it and prints how often it got which status.

    Args:
        period: between two reports; a number alone means seconds.
        to: parentsof: one level up; direct: this node; nearestcoord: this node if it has children, else its parent.
        count: end after so many messages.
        node: a node's name, its state directory, the first of its ten ports, or an endpoint; default: the only one that runs here.
        json: one JSON object a line.
    """
    from weft.cli.demos.live import Stage, run

    every = seconds(period)
    stage = Stage(
        name="demodetector",
        node=node,
        period_s=every,
        is_prompt=True,
        waits=waits,
        to=DESTINATIONS[to],
        json=json,
    )
    return run(lambda here: Detector(here.name, count), stage)


@app.command
def responder(
    *,
    on: Annotated[Literal["in", "out"], Parameter(name=["--dir", "--on"])] = "in",
    place: str = "after-all",
    access: Literal["ro", "rw"] = "ro",
    hold: int = 0,
    node: AskedNode = None,
    json: Flag = False,
) -> int:  # tidy: each is an option of the command line
    """Print every report that passes: time, direction, node of origin, payload.

    Args:
        on: `in`: what arrives at the node; `out`: what is sent there.
        place: where in the chain: before-all, after-all, or a number.
        access: `rw`: every report waits until this program hands it back, which it does.
        hold: never hand back the first so many reports; then kill this program, and see what becomes of them.
        node: a node's name, its state directory, the first of its ten ports, or an endpoint; default: the only one that runs here.
        json: one JSON object a line.
    """
    from weft.cli.demos.live import Stage, run

    at = place_of(place)
    if hold and access != REWRITES:
        raise UserError("usage", "--hold without --access rw", "weft demo responder --access rw --hold 3")
    return run(lambda _: Responder(on, at, access, hold), Stage(name="demoresponder", node=node, json=json))


@app.command
def aggregator(
    *,
    period: str = "2s",
    outbound: Flag = False,
    node: AskedNode = None,
    json: Flag = False,
    waits: Begin = False,
) -> int:
    """Every period, send all reports that have arrived at this node as one report to the node above.

    Args:
        period: between two reports; a number alone means seconds.
        outbound: include the reports of this node, too, instead of letting them go up alone.
        node: a node's name, its state directory, the first of its ten ports, or an endpoint; default: the only one that runs here.
        json: one JSON object a line.
    """
    from weft.cli.demos.live import Stage, run

    stage = Stage(name="demoaggregator", node=node, period_s=seconds(period), waits=waits, json=json)
    return run(lambda here: Aggregator(here.name, outbound=outbound), stage)


@app.command
def rewriter(*, place: str = "after-all", node: AskedNode = None, json: Flag = False) -> int:
    """Delete every second report that is sent at this node; tag the others with the node's address and this process's id.

    Args:
        place: where in the chain: before-all, after-all, or a number.
        node: a node's name, its state directory, the first of its ten ports, or an endpoint; default: the only one that runs here.
        json: one JSON object a line.
    """
    from weft.cli.demos.live import Stage, run

    at = place_of(place)
    return run(lambda here: Rewriter(here.addr, os.getpid(), at), Stage(name="demorewriter", node=node, json=json))


@app.command
def walkthrough(*, real: Flag = False, period: str = "2s", ticks: int | None = None, json: Flag = False) -> int:
    """Run the walk-through of chains: seven set-ups of these programs beside three nodes A, B and C, and count messages.

    C is the root, B its child, A the child of B. Exit status 1 if a count is wrong.

    Args:
        real: run the three nodes and all programs as processes, which takes minutes; default: in virtual time.
        period: between two reports.
        ticks: how many reports each detector sends; default 20, with --real as many as fit into 20 s.
        json: one JSON object for each set-up.
    """
    from weft.cli.demos.walkthrough import TICKS, shown, virtual

    every = seconds(period)
    if ticks is not None and ticks < 1:
        raise UserError("usage", f"--ticks {ticks} is too few", "--ticks 1, or more")
    if not real:
        return shown(virtual(ticks or TICKS, round(every * SECOND / MILLISECOND)), json=json)
    from weft.cli.demos.real import real as with_processes

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that SIGTERM, too, ends its processes
    return shown(with_processes(ticks or max(1, round(REAL_S / every)), every), json=json)


@app.command
def bout(
    *,
    cut: float = 5.0,
    join: float = 25.0,
    third: Flag = False,
    by_hand: Flag = False,
    keep: Flag = False,
    directory: Path | None = None,
    within: Annotated[float, Parameter(show=False)] = 3.0,
    json: Flag = False,
) -> int:
    """Keep score of one bout on two laptops while the cable between them is out; PASS if both end with all entries.

    The laptops are two nodes of this machine, each with a board in the browser; the cable is a relay between them. While
    it is cut, both enter jams, points and one disagreement. Exit status 1 if the documents are not equal within 3 s after
    the cable is joined, an entry is lost, or the conflict is not on both boards.

    Args:
        cut: seconds from the first entry until the cable is cut.
        join: seconds from the first entry until the cable is joined.
        third: let a third laptop join at the end, which must get everything, too.
        by_hand: type cut, join and quit instead.
        keep: keep running after the verdict until Ctrl-C, to look at both boards.
        directory: where states and logs go; default: one that is removed.
        json: the result as one JSON object.
    """
    from weft.cli.demos.bout import Plan
    from weft.cli.demos.bout import bout as play

    plan = Plan(cut_s=cut, join_s=join, equal_s=within, is_by_hand=by_hand, has_third=third)
    return play(plan, directory=directory, keep=keep, as_json=json)


REAL_S: Final = 20.0  # length of a row with real processes (DEM-007)


def seconds(text: str) -> float:
    """A typed time span in seconds; UserError if it is none, or not above zero.

    >>> seconds("2"), seconds("2s"), seconds("250ms")
    (2.0, 2.0, 0.25)
    """
    span = span_ns(f"{text}s" if text.replace(".", "", 1).isdecimal() else text)
    if not span or span < 0:
        raise UserError("usage", f"--period {text!r} is not a time", "--period 2s")
    return span / SECOND
