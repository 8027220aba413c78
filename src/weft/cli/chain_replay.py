"""`weft chain replay FILE HANDLERS`: a recording and the handlers of a program (CLI-025)."""

import json as to_json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from weft.base.errors import UserError
from weft.cli.kit.exits import DONE, NOT_SO
from weft.cli.kit.text import clean
from weft.client.chain.recording import read_rows
from weft.client.chain.replaying import Outcome, Stuck, replay

SHOWN: Final = 10


def run(file: Path, handlers: str, *, json: bool) -> int:
    """Replay the recording; returns 1 if an answer differs, or a handler failed."""
    try:
        outcome = replay(read_rows(file), _attach(handlers))
    except Stuck:
        text = f"a handler of {handlers} waits for something that a recording cannot provide"
        raise UserError("stuck", text, "handlers that wait for messages, answers or time only") from None
    _print(outcome, json=json)
    return NOT_SO if outcome.different or outcome.answers["fail"] else DONE


def _attach(handlers: str) -> Any:
    module, _, name = handlers.partition(":")
    sys.path.insert(0, "")  # a program of this directory
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        text = f"{handlers!r} cannot be used: {error}"
        raise UserError("usage", text, "module:function, of a module in this directory or on PYTHONPATH") from None


def _print(outcome: Outcome, *, json: bool) -> None:
    answers = dict(sorted(outcome.answers.items()))
    if json:
        facts = {name: getattr(outcome, name) for name in ("messages", "of_nobody", "same", "different", "unreadable")}
        print(to_json.dumps({**facts, "answers": answers, "differences": outcome.differences}))
        return
    parts = [f"{outcome.messages:,} messages", *[f"{count:,} {op}" for op, count in answers.items()]]
    parts += [f"{count:,} {what}" for what, count in _rest(outcome) if count]
    print(", ".join(parts))
    for reg, number, recorded, replayed in outcome.differences[:SHOWN]:
        print(f"message {number} of registration {reg}: recorded {clean(recorded)}, now {clean(replayed)}")


def _rest(outcome: Outcome) -> list[tuple[str, int]]:
    return [
        ("as recorded", outcome.same),
        ("different", outcome.different),
        ("for no handler", outcome.of_nobody),
        ("unreadable", outcome.unreadable),
    ]
