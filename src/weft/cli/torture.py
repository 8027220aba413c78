"""`weft torture`: a real fabric on this machine under drawn faults, and a verdict (FLD-040)."""

import json
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.base.now import SECOND
from weft.base.settings import span_ns
from weft.cli.kit.exits import DONE, NOT_SO
from weft.cli.kit.options import Flag
from weft.torture import limits
from weft.torture.plan import KINDS, Plan, draw, possible, read, write

WITHOUT_ROOM: Final = (
    "weft: this user may not make networks and disks here: everything runs on loopback, and only processes are hurt"
)
CLOCKS: Final = (
    "weft: clocks are stepped in the simulator only (weft sim): a process cannot be given a wall clock of its own"
)


def torture(
    *,
    run_for: Annotated[str, Parameter(name="--for")] = "5m",
    seed: str = "",
    plan: Path | None = None,
    with_wheel: Annotated[Path | None, Parameter(name="--with")] = None,
    only: Annotated[str, Parameter()] = "",
    loopback: Flag = False,
    closed: Flag = False,
    pipeline: bool = True,
    directory: Path | None = None,
    print_plan: Flag = False,
    json_out: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Run nine real processes under faults that a seed draws, heal them, and judge: `weft torture --for 5m --seed 7`.

    Exit status 0 every promise was kept, 1 one was broken; then the story, the seed and the plan are printed.

    Args:
        run_for: how long faults are played, e.g. 60s or 1h.
        seed: the number from which all faults are drawn; without it, one is chosen and printed.
        plan: a file that --print-plan or a failed run wrote, instead of a seed.
        with_wheel: a wheel of an older version, which half of the nodes run.
        only: kinds of faults, with commas; default: all that are possible here.
        loopback: make no networks, even if that is possible.
        closed: a fabric with keys: machines are invited and join, keys are rotated and revoked, and strangers without a
            key try to get in.
        pipeline: also run the Spark pipeline over the lake.
        directory: where states, logs and history go; default: ./var/torture-TIME.
        print_plan: show what would be done, and run nothing.
        json_out: the outcome as JSON.
    """
    from weft.torture import room

    if not loopback and not print_plan:
        status = room.enter(sys.argv[1:])
        if status is not None:
            return status
    kinds = _kinds(only, possible(has_room=print_plan or room.is_inside(), is_closed=closed))
    chosen = _plan(run_for, seed or f"{time.time_ns() // 1_000_000}", plan, kinds, has_pipeline=pipeline)
    if print_plan:
        sys.stdout.buffer.write(write(chosen))
        return 0
    place = (directory or Path("var") / time.strftime("torture-%Y%m%d-%H%M%S")).resolve()
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()):
        raise UserError("usage", f"{place} is not empty", "--directory with a new name")
    (place / "plan.json").write_bytes(write(chosen))
    wheel = str(with_wheel.resolve()) if with_wheel else ""
    return _played(chosen, place, wheel, pipeline=pipeline, closed=closed, as_json=json_out)


def _kinds(only: str, possible: tuple[str, ...]) -> tuple[str, ...]:
    wanted = tuple(filter(None, only.split(",")))
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown:
        raise UserError("usage", f"there is no fault {unknown[0]!r}", f"--only with some of {','.join(KINDS)}")
    return tuple(kind for kind in possible if not wanted or kind in wanted)


def _plan(run_for: str, seed: str, path: Path | None, kinds: tuple[str, ...], *, has_pipeline: bool) -> Plan:
    if path is not None:
        try:
            return read(path.read_bytes())
        except OSError as error:
            raise UserError("usage", f"{path} cannot be read: {error.strerror}", "--plan FILE") from None
    span = span_ns(run_for)
    if not span or not 0 < span / SECOND <= limits.SPAN_S_MAX:
        raise UserError("usage", f"--for {run_for!r} is not a time", "weft torture --for 5m")
    return draw(seed, span / SECOND, kinds, has_pipeline=has_pipeline)


def _played(plan: Plan, place: Path, older: str, *, pipeline: bool, closed: bool, as_json: bool) -> int:
    from weft.torture import room
    from weft.torture.run import Run
    from weft.torture.story import lines
    from weft.torture.world import World

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if not room.is_inside():
        say(WITHOUT_ROOM)
    say(CLOCKS)
    say(f"seed {plan.seed}, {plan.span:g} s, {len(plan.events)} faults{', closed' if closed else ''}")
    world = World(place, plan.seed, with_pipeline=pipeline, older=older, names=plan.older, closed=closed)
    run = Run(world, plan, say)

    def interrupt(*_: Any) -> None:
        run.is_interrupted = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    outcome = run.go()
    if as_json:
        shown = {"seed": plan.seed, "wrong": outcome.wrong, "directory": str(place), **outcome.figures}
        print(json.dumps(shown if not outcome.wrong else {**shown, "story": outcome.story}))
    else:
        print("\n".join(lines(outcome)), flush=True)
    return NOT_SO if outcome.wrong else DONE
