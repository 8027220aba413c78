"""`weft sim`: nights of a whole fabric in seconds, from a number that repeats them."""

import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final

from cyclopts import App, Parameter

from weft import __version__
from weft.base.errors import UserError, why_unread
from weft.base.now import seconds
from weft.cli.kit.bar import progress
from weft.cli.kit.exits import DONE, NOT_SO, VOID
from weft.cli.kit.lines import print_compact
from weft.cli.kit.options import Flag
from weft.sim import report
from weft.sim.bridgeplan import BRIDGED
from weft.sim.catalogplan import CATALOGS
from weft.sim.documentplan import DOCUMENTS
from weft.sim.everything import EVERYTHING
from weft.sim.fleetplan import FLEET_SCENARIOS
from weft.sim.intruders import INTRUDERS
from weft.sim.keyplan import KEY_SCENARIOS
from weft.sim.plan import Plan, read, write
from weft.sim.programplan import MAILS
from weft.sim.run import Outcome, Run, run
from weft.sim.sometimes import CATALOG, DOCUMENTED, MISCHIEF, PROGRAMS, SITUATIONS, STORES, situations_of, unmet
from weft.sim.storeplan import STORE_SCENARIOS
from weft.sim.swarm import SIZES, draw_plan

app = App(name="sim", help="Run nights of a whole fabric in virtual time, with faults, and judge them.")


@app.default
@app.command(name="run")
def run_one(
    *,
    seed: int = 1,
    scenario: str = "fabric",
    plan: Path | None = None,
    explain: Flag = False,
    node: str = "",
    since: Annotated[float, Parameter(name="--from")] = 0.0,
    until: Annotated[float | None, Parameter(name="--to")] = None,
    print_plan: Flag = False,
    history: Path | None = None,
    json: Flag = False,
) -> int:
    """Run one seed or one plan, and say what came of it: `weft sim --seed 7 --explain --node s1 --from 60 --to 90`.

    Exit status 0 green, 1 a promise was broken, 5 too little happened to show anything.

    Args:
        seed: draws everything: tree, workload, faults, timings.
        scenario: how large and how long: see `weft sim list`.
        plan: a plan as `--print-plan` writes it, instead of a seed.
        explain: tell the story, line by line.
        node: only what this node does.
        since: only from this second on.
        until: only up to this second.
        print_plan: show what was drawn, and run nothing.
        history: write all facts that the checkers heard, as JSON lines.
        json: the outcome for machines.
    """
    drawn = _plan(seed, scenario, plan)
    if node and node not in {each.name for each in drawn.nodes}:
        names = ", ".join(each.name for each in drawn.nodes)
        raise UserError("no-node", f"no node of this plan is called {node!r}", f"--node with one of {names}")
    if print_plan:
        sys.stdout.buffer.write(write(drawn))
        return DONE
    if explain and not json:
        outcome, lines = report.story(drawn, node, seconds(since), None if until is None else seconds(until))
        print("\n".join(lines))
    else:
        outcome = Run(drawn, keep=history is not None).go()
    _keep_history(outcome, drawn, history)
    _tell(outcome, json=json)
    return _status(outcome)


def _plan(seed: int, scenario: str, path: Path | None) -> Plan:
    if path is None:
        known = (
            *SIZES,
            *FLEET_SCENARIOS,
            *STORE_SCENARIOS,
            *CATALOGS,
            *BRIDGED,
            *DOCUMENTS,
            *EVERYTHING,
            INTRUDERS,
            *KEY_SCENARIOS,
        )
        if scenario not in known:
            raise UserError("no-scenario", f"there is no scenario {scenario!r}", f"--scenario {' | '.join(known)}")
        return draw_plan(str(seed), scenario)
    try:
        return read(path.read_bytes())
    except OSError as error:
        raise UserError(
            "no-file", f"{path} cannot be read: {error.strerror}", "weft sim --seed 1 --print-plan > p.json"
        ) from None


def _keep_history(outcome: Outcome, plan: Plan, path: Path | None) -> None:
    if path is None:
        return
    from weft.checks import write_lines

    facts = outcome.history or Run(plan, keep=True).go().history
    path.write_bytes(write_lines(facts))


def _tell(outcome: Outcome, *, json: bool) -> None:
    if json:
        print_compact(report.facts_of(outcome))
    elif outcome.is_green:
        print("\n".join(report.summary(outcome)))
    else:
        print("\n".join(report.summary(outcome)))
        print(report.failure(outcome, _commit(), repeat(outcome.plan)))


def _status(outcome: Outcome) -> int:
    if outcome.verdicts:
        return NOT_SO
    return VOID if outcome.is_void else DONE


def repeat(plan: Plan) -> str:
    """The command that repeats the run of a drawn plan."""
    scenario = "" if plan.scenario == "fabric" else f" --scenario {plan.scenario}"
    return f"weft sim --seed {plan.seed}{scenario} --explain"


def _commit() -> str:
    """Of the source this runs from, else the version."""
    try:
        result = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607  # whichever git the developer has
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return __version__
    return result.stdout.strip() or __version__


@app.command
def replay(file: Path, /, *, node: str = "", json: Flag = False) -> int:
    """Repeat what was kept: the night of a plan, or a real node that was recorded by `weft up --record FILE`.

    `weft sim replay failure.json` tells the story of a plan; exit status as `weft sim run`. `weft sim replay node.rec`
    makes the same calls to the same node, compares each effect, and fails where the node failed, with its traceback.
    Exit status 0 if all is the same, 1 if the node fails as it did, or goes another way than it did.

    Args:
        file: a plan, as `--print-plan` or `shrink` writes it; or a recording.
        node: of a plan, only what this node does.
        json: the outcome for machines.
    """
    from weft.cli.sim_replay import replayed

    status = replayed(file, json=json)
    return status if status is not None else run_one(plan=file, explain=True, node=node, json=json)


@app.command
def soak(*, node_minutes: float = 10_000, seed: int = 0, scenario: str = "fabric", json: Flag = False) -> int:
    """Run seed after seed until so many node-minutes are simulated; stop at the first that is not green.

    `weft sim soak --node-minutes 100000`; exit status 1 with seed and story if a promise was broken, or if one of the
    situations of `weft sim list` was not met in 10,000 node-minutes or more.

    Args:
        node_minutes: nodes times minutes of their virtual life.
        seed: the first one.
        scenario: see `weft sim list`.
        json: the sums for machines.
    """
    _plan(seed, scenario, None)
    done, voids, counts, outcome = 0.0, 0, Counter[str](), None
    with progress(node_minutes, "node-minutes") as step:
        while done < node_minutes:
            outcome = run(draw_plan(str(seed), scenario))
            if outcome.verdicts:
                break
            voids += outcome.is_void
            done += outcome.node_minutes
            counts += outcome.counts
            step(outcome.node_minutes, f"seed {seed}")
            seed += 1
    if outcome is not None and outcome.verdicts:
        _tell(outcome, json=json)
        return NOT_SO
    names = situations_of(scenario)
    missing = unmet(counts, (*names, *PROGRAMS) if scenario in MAILS else names)
    _tell_soak(done, seed, voids, (counts, missing), json=json)
    return NOT_SO if missing and done >= LONG_SOAK else DONE


LONG_SOAK: Final = 10_000  # node-minutes from which on a situation not met is a failure (SIM-010)


def _tell_soak(done: float, seeds: int, voids: int, met: tuple[Counter[str], list[str]], *, json: bool) -> None:
    counts, missing = met
    faults = sum(
        count for what, count in counts.items() if what.startswith("did ") and what[4:] not in report.NOT_A_FAULT
    )
    sums = {
        "node_minutes": round(done),
        "next_seed": seeds,
        "void": voids,
        "faults": faults,
        "crashes": counts["crashes"],
        "records": counts["taken"],
        "messages": counts["mail journal"],
        "drained": counts["drained"],
        "unmet": missing,
    }
    if json:
        print_compact(sums)
    else:
        print(f"{sums['node_minutes']} node-minutes up to seed {seeds - 1}: every promise held")
        print(
            f"  {faults} faults, {sums['crashes']} crashes, {sums['records']} records taken, {sums['drained']} drained, {sums['messages']} messages of programs at roots; {voids} void runs"
        )
        for situation in missing:
            print(f"  not met: {situation}")


@app.command
def shrink(*, seed: int = 1, scenario: str = "fabric", plan: Path | None = None, out: Path | None = None) -> int:
    """Make a plan that fails as small as possible, and print it: `weft sim shrink --seed 77 > small.json`.

    Exit status 0 if there is nothing to shrink, 1 with the small plan: run it with `weft sim --plan small.json --explain`.

    Args:
        seed: draws the plan.
        scenario: see `weft sim list`.
        plan: a plan instead of a seed.
        out: write the small plan here.
    """
    drawn = _plan(seed, scenario, plan)
    if not run(drawn).verdicts:
        print("nothing to shrink: every promise held", file=sys.stderr)
        return DONE
    from weft.sim.shrink import RUNS_MAX, Shrinker

    with progress(RUNS_MAX, "runs at most") as step:
        made = Shrinker(drawn, lambda smaller: step(1, f"{len(smaller.actions)} actions, {len(smaller.nodes)} nodes"))
        small = made.shrink()
    if out is not None:
        out.write_bytes(write(small))
    else:
        sys.stdout.buffer.write(write(small))
    sizes = f"{len(drawn.actions)} actions to {len(small.actions)}, {len(drawn.nodes)} nodes to {len(small.nodes)}"
    print(f"{made.rule} still fails: {sizes}, after {made.runs} runs", file=sys.stderr)
    return NOT_SO


@app.command
def canaries(*names: str, json: Flag = False) -> int:
    """Plant every known bug in turn and see that its checker catches it; then that the same seeds are green without.

    Exit status 1 if one is not caught, or by another checker than its own.

    Args:
        names: only these; all without.
        json: one line per bug for machines.
    """
    from weft.sim.canaries import catch, load

    bugs = load()
    unknown = [name for name in names if name not in bugs]
    if unknown:
        raise UserError("no-canary", f"there is no canary {unknown[0]!r}", "weft sim list")
    chosen = [bug for bug in bugs.values() if not names or bug.name in names]
    caught = []
    with progress(len(chosen), "canaries") as step:
        for bug in chosen:
            caught.append(catch(bug))
            step(1, bug.name)
    looked = {(each.canary.scenario, seed) for each in caught for seed in each.looked_at}
    sick = sorted(seed for name, seed in looked if not run(draw_plan(str(seed), name)).is_green)
    _tell_canaries(caught, sick, json=json)
    return DONE if all(each.is_right for each in caught) and not sick else NOT_SO


def _tell_canaries(caught: list[Any], sick: list[int], *, json: bool) -> None:
    for each in caught:
        bug = each.canary
        if json:
            line = {
                "name": bug.name,
                "expected": bug.caught_by,
                "caught_by": each.rule,
                "seeds": each.seeds,
                "within": bug.within,
            }
            print_compact(line)
        else:
            how = f"{f'after {each.seeds} of' if each.rule else 'NOT caught by'} {len(bug.seeds)} seeds"
            word = each.rule if each.is_right else f"{each.rule or 'nobody'}, not by {bug.caught_by}"
            print(f"{'ok' if each.is_right else 'RED':4} {bug.name:42} {word:14} {how}")
    if not json:
        found = [each.seeds for each in caught if each.seeds]
        right = sum(each.is_right for each in caught)
        print(f"{right} of {len(caught)} caught, median {median(found) if found else '-'} seeds")
        lasts: dict[int, int] = {}
        for tried in [each.looked_at for each in caught]:
            lasts[tried.start] = max(tried[-1], lasts.get(tried.start, 0))
        seeds = " and ".join(f"{first} to {last}" for first, last in sorted(lasts.items()))
        print(f"without bugs, seeds {seeds}: {'all green' if not sick else f'NOT green: {sick}'}")


@app.command(name="list")
def list_all(*, json: Flag = False) -> int:
    """What there is to run: scenarios, faults, checkers, planted bugs.

    Args:
        json: for machines.
    """
    from weft.checks import SIMULATED
    from weft.sim.bridgeplan import FAULTS as OF_BRIDGES
    from weft.sim.canaries import load
    from weft.sim.catalogplan import FAULTS as OF_CATALOGS
    from weft.sim.documentplan import FAULTS as OF_DOCUMENTS
    from weft.sim.mischief import DRAWS as MISCHIEF_DRAWS
    from weft.sim.storeplan import FAULTS as OF_STORES
    from weft.sim.swarm import FAULTS

    rows = {
        "scenarios": {
            name: f"{size.nodes[0]} to {size.nodes[1]} sensors, {size.tiers[1]} tiers" for name, size in SIZES.items()
        }
        | {name: f"fleets that place themselves: {', '.join(variants)}" for name, variants in FLEET_SCENARIOS.items()}
        | {name: f"stores of {size.nodes[0]} to {size.nodes[1]} nodes" for name, size in STORE_SCENARIOS.items()}
        | {name: f"{size.services[0]} to {size.services[1]} services at brokers" for name, size in CATALOGS.items()}
        | dict.fromkeys(BRIDGED, "brokers that are bridged, and services that are checked, tapped and called")
        | {name: f"documents at {size.nodes[0]} to {size.nodes[1]} nodes" for name, size in DOCUMENTS.items()}
        | {INTRUDERS: "fleets with keys, store and documents, and intruders at every door"}
        | KEY_SCENARIOS
        | dict.fromkeys(EVERYTHING, "all protocols on the nodes of a fleet, or of a tree whose programs send mail"),
        "faults": {name: _first_line(draw) for name, draw in FAULTS.items()}
        | {f"{name} (now and then)": _first_line(draw) for name, draw in MISCHIEF_DRAWS.items()}
        | {f"{name} (store)": _first_line(draw) for name, draw in OF_STORES.items()}
        | {f"{name} (catalog)": _first_line(draw) for name, draw in OF_CATALOGS.items()}
        | {f"{name} (bridges)": _first_line(draw) for name, draw in OF_BRIDGES.items()}
        | {f"{name} (documents)": _first_line(draw) for name, draw in OF_DOCUMENTS.items()},
        "checkers": {kind.rule: _first_line(kind) for kind in SIMULATED},
        "situations": dict.fromkeys(
            (*SITUATIONS, *PROGRAMS, *STORES, *CATALOG, *DOCUMENTED, *chain.from_iterable(MISCHIEF.values())), ""
        ),
        "canaries": {bug.name: f"{bug.why} -> {bug.caught_by}" for bug in load().values()},
    }
    if json:
        print_compact(rows)
        return DONE
    for title, table in rows.items():
        print(f"{title}:")
        for name, what in table.items():
            print(f"  {name:42} {what}".rstrip())
    return DONE


def _first_line(thing: Any) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]


@app.command
def play(file: Path, /) -> int:
    """Play a transcript's script and tell what happens: `weft sim play tests/transcripts/carrier/cut.txt`.

    Args:
        file: statements, one a line, up to a line of dashes.
    """
    from weft.sim.script import play as play_script

    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("no-file", f"{file} cannot be read: {why_unread(error)}", "weft sim play FILE") from None
    print(play_script(file.stem, text.partition("----\n")[0]), end="")
    return DONE
