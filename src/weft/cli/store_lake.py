"""`weft store get` and `weft store history`: past entries of the store, from the lake (PIP-051)."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from weft.base.errors import PeerError, UserError
from weft.cli.home import home_of
from weft.cli.kit.exits import DONE, NOT_SO, complain
from weft.cli.kit.lines import date_and_clock, print_json
from weft.cli.kit.options import Flag
from weft.cli.store_lines import document, line, plain

if TYPE_CHECKING:
    from weft.pipeline.stored import Version

Instant = Annotated[str | None, Parameter(allow_leading_hyphen=True, show_default=False)]
LIMIT = 20


def get(
    path: str, /, *, at: Instant = None, as_seen: Instant = None, lake: Path | None = None, json: Flag = False
) -> int:
    """Print a past value of a path, as YAML: `weft store get home.kitchen.temp --at -2h`; no node has to run.

    Exit status 1 if there was none.

    Args:
        path: elements with dots between: home.kitchen.temp; `:12` is a number, `:` the root.
        at: the value at this time, by all that is known now: 20:15, -5m, ISO 8601, or Unix seconds.
        as_seen: use only changes that had been received by this time; together with --at: the value at that time, as it
            was then known.
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        json: value, who wrote it, from when to when it was valid, in nanoseconds since 1970.
    """
    from weft.pipeline.stored import entry_at

    _quick()
    found = entry_at(home_of(lake), _text(path), at_ns=_nanoseconds(at), as_seen_ns=_nanoseconds(as_seen))
    if json:
        print_json(None if found is None else _facts(found))
    elif found is None:
        return complain(f"there was no value at {path}: none had been written\n  try: {_mend(path)}", NOT_SO)
    elif found.deleted:
        return complain(f"there was no value at {path}: it had been deleted\n  try: {_mend(path)}", NOT_SO)
    elif found.text is None:
        return complain(f"the value at {path} is too large for the lake\n  try: {_mend(path)}", NOT_SO)
    else:
        print(document(found.value))
    return NOT_SO if found is None or found.deleted else DONE


def history(
    path: str, /, *, as_seen: Instant = None, limit: int = LIMIT, lake: Path | None = None, json: Flag = False
) -> int:
    """Print the versions of an entry, the greatest first: `weft store history home.kitchen.temp`; no node has to run.

    Each with its time and author. A version that never became the value, because it lost against a greater change, is
    marked. Exit status 1 if there is none.

    Args:
        path: elements with dots between: home.kitchen.temp; `:12` is a number, `:` the root.
        as_seen: use only changes that had been received by this time: 20:15, -5m, ISO 8601, or Unix seconds.
        limit: at most so many versions.
        lake: the lake's directory; default: $WEFT_LAKE, else ./lake.
        json: one object a line, times in nanoseconds since 1970.
    """
    from weft.pipeline.stored import history_of

    _quick()
    found = history_of(home_of(lake), _text(path), limit=limit, as_seen_ns=_nanoseconds(as_seen))
    for version in found:
        print_json(_facts(version)) if json else print(_line(version))
    if not (found or json):
        return complain(
            f"the lake has no change of {path}\n  try: weft sql 'FROM store_current': the entries there are", NOT_SO
        )
    return DONE if found else NOT_SO


def _line(version: "Version") -> str:
    from weft.client.store.values import MISSING

    made = date_and_clock(version.from_us // 1_000_000)
    value = line(MISSING if version.deleted else version.value) if version.deleted or version.text else "too large"
    who = f"{version.node}:{version.tick}" + (f" by {version.by}" if version.by else "")
    lost = "  never stood" if version.to_us is not None and version.to_us <= version.from_us else ""
    return f"{made}  {value}  # {who}{lost}"


def _facts(version: "Version") -> dict[str, Any]:
    facts: dict[str, Any] = {"path": version.path, "deleted": version.deleted}
    if version.text is not None:
        facts["value"] = plain(version.value)
    chain = [[link["node"], link["tick"]] for link in version.chain or []]
    upto = None if version.to_us is None else version.to_us * 1_000
    when = {"from": version.from_us * 1_000, "to": upto, "received": version.received_us * 1_000}
    return (
        facts
        | {"node": version.node, "tick": version.tick, "tock": version.tock, "by": version.by, "chain": chain}
        | when
    )


def _text(path: str) -> str:
    """A path as the lake has it."""
    from weft.wire.store.path import parse, text_of

    try:
        return text_of(parse(path))
    except PeerError as error:
        raise UserError("bad-path", f"{path!r} is no path: {error.why}", "home.kitchen.temp") from None


def _mend(path: str) -> str:
    import shlex

    return f"weft store history {shlex.quote(path)}"


def _nanoseconds(text: str | None) -> int | None:
    if text is None:
        return None
    from weft.client.doc.replaying import instant_of

    return round(instant_of(text, time.time()) * 1_000_000) * 1_000


def _quick() -> None:
    from weft.lake.arrow import without

    with without("pandas"):
        import pyarrow.dataset  # noqa: F401  # imported early, because its import looks for pandas
