"""`weft sim replay` of a recorded node: the same calls again, compared with what it did (OBS-006)."""

import sys
import time
import traceback
from pathlib import Path
from typing import Any

import msgspec

from weft import __version__
from weft.base.errors import UserError
from weft.base.now import SECOND
from weft.cli.kit.exits import DONE, NOT_SO
from weft.cli.kit.text import clean
from weft.node.recording import Replay, is_recording, rows


def replayed(path: Path, *, json: bool) -> int | None:
    """Replay a recording, and say what came of it: the exit status; None: the file is none."""
    replay = Replay()
    try:
        with path.open("rb") as file:
            if not is_recording(file):
                return None
            replay.play(rows(file))
    except OSError as error:
        raise UserError("no-file", f"{path} cannot be read: {error.strerror}", "weft up --record FILE") from None
    facts = _facts(replay)
    if json:
        print(msgspec.json.encode(facts).decode())
    else:
        _tell(replay, facts)
    return NOT_SO if replay.failed or replay.difference else DONE


def _facts(replay: Replay) -> dict[str, Any]:
    begin = replay.begin
    return {
        "node": begin.settings.node.name if begin else "",
        "era": begin.era if begin else 0,
        "recorded_by": begin.version if begin else "",
        "replayed_by": __version__,
        "from": _when(replay.first_ns),
        "to": _when(replay.last_ns),
        "starts": replay.starts,
        "calls": replay.calls,
        "turns": replay.turns,
        "effects": replay.effects,
        "is_same": replay.difference is None,
        "failed": replay.failed,
        "difference": replay.difference._asdict() if replay.difference else None,
    }


def _when(wall_ns: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(wall_ns // SECOND))


def _tell(replay: Replay, facts: dict[str, Any]) -> None:
    print(
        f"node {clean(facts['node'])}, recorded by weft {clean(facts['recorded_by'])}, {facts['from']} to {facts['to']} UTC"
    )
    print(f"{facts['starts']} starts, {facts['calls']:,} calls, {facts['turns']:,} turns, {facts['effects']:,} effects")
    found = replay.difference
    if found is not None:
        print(f"turn {found.turn}, effect {found.place}: it goes another way here")
        print(f"  recorded: {clean(found.recorded)}")
        print(f"  replayed: {clean(found.replayed)}")
        if facts["recorded_by"] != __version__:
            print(f"  try: weft {clean(facts['recorded_by'])}; this is {__version__}")
    elif replay.failed:
        print("all effects are the same, and it fails as it did:")
    else:
        print("all effects are the same")
    if replay.fault is not None:
        sys.stdout.write("".join(traceback.format_exception(replay.fault)))
