"""`weft config show`: past configurations from the lake (PIP-052)."""

import json as json_module
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from weft.base.now import SECOND
from weft.cli.config import loaded, subtrees_of
from weft.cli.config_store import CONFIG
from weft.cli.home import home_of
from weft.cli.kit.exits import notice
from weft.cli.kit.lines import date_and_clock
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean

if TYPE_CHECKING:
    from weft.pipeline.configuration import Setting, State

Instant = Annotated[str | None, Parameter(allow_leading_hyphen=True, show_default=False)]
BYTES: Final = '{"$b":'
"""Prefix of a value that is not JSON; its bytes follow as base64 (LAK-012)."""


def show(
    prefix: str = CONFIG,
    /,
    *,
    at: Instant = None,
    on: str | None = None,
    lake: Path | None = None,
    json: Flag = False,
) -> None:
    """Print keys and values as they stood, from the lake: `weft config show --at 20:15`, `weft config show web --on s1`.

    It is a state that the root, or the node, really had; no node has to run. The number of the last write is printed, too.

    Args:
        prefix: only keys under it; `/` is everything.
        at: when: 20:15, -5m, ISO 8601, or Unix seconds; left out: the latest state in the lake.
        on: what this node ran then, by its name or its 32 hex digits; left out: what the root had.
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        json: number, time and pairs as one object, times in nanoseconds since 1970.
    """
    from weft.lake.arrow import without

    with without("pandas"):
        import pyarrow.dataset  # noqa: F401  # imported early, because its import looks for pandas
    from weft.pipeline.configuration import state_at

    root = home_of(lake)
    state = state_at(root, _nanoseconds(at), node=on, subtrees=tuple(subtrees_of(prefix)))
    _warn(state)
    if json:
        print(json_module.dumps(_as_json(state, on), ensure_ascii=False))
        return
    print(_last(state, on), file=sys.stderr)
    for each in state.settings:
        print(f"{each.key} {clean(_text(each))}")


def _nanoseconds(at: str | None) -> int | None:
    if at is None:
        return None
    from weft.client.doc.replaying import instant_of

    return round(instant_of(at, time.time()) * 1_000_000) * 1_000


def _last(state: "State", node: str | None) -> str:
    """The last write."""
    when = "the lake does not have it yet"
    if state.at_ns is not None:
        when = date_and_clock(state.at_ns // SECOND)
    return f"weft: after write {state.number} ({when})" + (f", which {clean(node)} ran" if node else "")


def _warn(state: "State") -> None:
    if state.missing:
        text = f"{state.missing} of the writes up to number {state.number} are not in the lake: what they wrote is not shown"
        notice(text)
    if state.refused:
        text = f"{state.refused} writes are in quarantine: weft sql 'FROM quarantine.configuration'"
        notice(text)


def _as_json(state: "State", node: str | None) -> dict[str, Any]:
    pairs = [
        {"key": each.key, "number": each.number, "value": loaded(_text(each)), "by": each.by, "at": each.at_ns}
        for each in state.settings
    ]
    facts = {"number": state.number, "at": state.at_ns, "missing": state.missing, "refused": state.refused}
    return facts | {"node": node, "pairs": pairs}


def _text(setting: "Setting") -> str:
    """The value as it was replicated, if it is text."""
    if not setting.value.startswith(BYTES):
        return setting.value
    from base64 import b64decode

    try:
        return b64decode(json_module.loads(setting.value)["$b"], validate=True).decode("utf-8", "backslashreplace")
    except (ValueError, TypeError, KeyError):
        return setting.value  # a user's JSON that happens to begin like the prefix
