"""`weft chain test FILE`: runs the tests of filters in a file (CHN-072)."""

import json as to_json
import sys
from pathlib import Path

from weft.base.errors import UserError, why_unread
from weft.cli.kit.exits import DONE, NOT_SO
from weft.cli.kit.text import clean
from weft.cores.chains.settings import FilterSpec
from weft.cores.chains.trial import Outcome, Trial, parse_trials, play
from weft.node.functions import functions_of
from weft.node.settings import read_document


def run(file: Path, *, json: bool) -> int:
    """Run all tests of the file; returns 1 if one fails."""
    filters, trials = _read(file)
    functions = functions_of(filters)
    outcomes = [play(filters, trial, functions) for trial in trials]
    for outcome in outcomes:
        _print(outcome, json=json)
    failed = sum([not outcome.is_good for outcome in outcomes])
    if not json:
        print(
            f"{len(outcomes)} tests, {failed} failed" if failed else f"{len(outcomes)} tests, all good", file=sys.stderr
        )
    return NOT_SO if failed else DONE


def _read(file: Path) -> tuple[list[FilterSpec], list[Trial]]:
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("no-file", f"{file} cannot be read: {why_unread(error)}", "weft chain test --help") from None
    filters, trials, mistakes = parse_trials(read_document(text, str(file)))
    if mistakes:
        listed = "\n  ".join(mistakes)
        raise UserError("bad-settings", f"{file} cannot be used:\n  {listed}", "docs/filters.md, Tests without a node")
    return filters, trials


def _print(outcome: Outcome, *, json: bool) -> None:
    if json:
        facts = {"test": outcome.name, "good": outcome.is_good, "found": outcome.found, "expected": outcome.expected}
        print(to_json.dumps(facts))
        return
    print(f"{'good  ' if outcome.is_good else 'FAILED'} {clean(outcome.name)}")
    for kind in outcome.expected if not outcome.is_good else ():
        if outcome.found[kind] != outcome.expected[kind]:
            print(f"  {kind}, expected: {clean(to_json.dumps(outcome.expected[kind]))}")
            print(f"  {kind}, found:    {clean(to_json.dumps(outcome.found[kind]))}")
