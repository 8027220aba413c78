"""Reports of a run: a summary, and for a failure everything that repeats it (SIM-013)."""

from collections import Counter
from typing import Any, Final

from weft.base.now import SECOND
from weft.sim.plan import Plan
from weft.sim.prose import Prose
from weft.sim.run import Outcome, Run

LAST_LINES: Final = 40
NOT_A_FAULT: Final = frozenset({"mend", "start", "resume", "image", "ask", "found"})


def verdict_word(outcome: Outcome) -> str:
    """`green`, `void`, or the rule that was broken."""
    if outcome.verdicts:
        return outcome.verdicts[0].rule
    return "void" if outcome.is_void else "green"


def summary(outcome: Outcome) -> list[str]:
    """A run in a few lines."""
    plan, counts = outcome.plan, outcome.counts
    levels = Counter(node.level for node in plan.nodes)
    tree = ", ".join(f"{count} {level}{'s' if count > 1 else ''}" for level, count in levels.items())
    faults = {
        what[4:]: count for what, count in counts.items() if what.startswith("did ") and what[4:] not in NOT_A_FAULT
    }
    listed = ", ".join(f"{count} {what}" for what, count in sorted(faults.items())) or "none"
    return [
        f"seed {plan.seed}, {plan.scenario}: {tree}; {plan.safety_ns // SECOND} s of weather, {outcome.virtual_ns // SECOND} s in all",
        f"  faults      {listed}",
        f"  started     {counts['starts']} times, {counts['crashes']} ends without goodbye",
        f"  samples     {counts['taken']} taken (with events), {counts['drained']} in the lake, {counts['segments']} segments",
        f"  messages    {counts['heard']} heard, {counts['hops']} hops sent",
        *_of_store(counts),
        f"  verdict     {verdict_word(outcome)}",
        f"  trace       {outcome.trace_hash}, plan {outcome.plan_hash}",
    ]


def _of_store(counts: Counter[str]) -> list[str]:
    if not counts["store asked"]:
        return []
    asked, acknowledged, shown = (counts[f"store {what}"] for what in ("asked", "acknowledged", "shown"))
    return [f"  store       {asked} requests, {acknowledged} writes acknowledged, {shown} entries shown to watchers"]


def facts_of(outcome: Outcome) -> dict[str, Any]:
    """A run for machines."""
    return {
        "seed": outcome.plan.seed,
        "scenario": outcome.plan.scenario,
        "verdict": verdict_word(outcome),
        "violations": [str(verdict) for verdict in outcome.verdicts],
        "plan": outcome.plan_hash,
        "trace": outcome.trace_hash,
        "node_minutes": round(outcome.node_minutes, 3),
        "events": outcome.events,
        "counts": dict(sorted(outcome.counts.items())),
    }


def story(plan: Plan, node: str = "", since: int = 0, until: int | None = None) -> tuple[Outcome, list[str]]:
    """Run a plan and tell what happened."""
    made = Run(plan)
    prose = Prose(made.fabric, node, since, until)
    return made.go(), prose.lines


def failure(outcome: Outcome, commit: str, command: str) -> str:
    """Everything that a failure has to print: seed, commit, plan, witnesses, the end of the story, how to repeat it."""
    again, lines = story(outcome.plan)
    parts = [
        f"seed {outcome.plan.seed} of {outcome.plan.scenario} is not green (commit {commit}, plan {outcome.plan_hash})",
        *(str(verdict) for verdict in outcome.verdicts),
        "the run is void: too little happened to show anything" if outcome.is_void else "",
        *([] if again.trace_hash == outcome.trace_hash else ["and the second run differs from the first: see `same`"]),
        "the end of the story:",
        *lines[-LAST_LINES:],
        f"again: {command}",
    ]
    return "\n".join(part for part in parts if part)
