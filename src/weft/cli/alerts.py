"""`weft alerts`: what fires at a node, or in the whole fleet (MET-004)."""

import json as json_module
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from weft.cli.asking import order, page_of
from weft.cli.kit.exits import DONE, NOT_SO, complain
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.cli.which import PORT, AskedPort
from weft.node.deadalerts import NO_MACHINE

COLUMNS: Final = ("since", "severity", "node", "alert", "value", "condition", "series", "says")
RANKS: Final = {"critical": 0, "warning": 1}


def alerts(*, port: AskedPort = PORT, all: Flag = False, forget: str = "", json: Flag = False) -> int:  # noqa: A002  # the name of the option
    """Show firing alerts: at the root those of the whole fleet, at any other node only its own.

    Below, sinks that could not be notified, and alerts that can never fire as the configuration is now. Alerts are `[alert.…]` of the fleet's file, sinks are
    `[notify.…]` of the root's own file: docs/alerts.md.

    Args:
        port: the node's name, its state directory, or the first of its ten ports.
        all: also the latest alerts that have ended since the root started; `weft sql` finds all of them.
        forget: at the root, end the alert with this id (--json shows it), because its node will not come back.
        json: everything as JSON.
    """
    if forget:
        return _forget(port, forget)
    page = page_of(port, "alerts")
    if json:
        print(json_module.dumps(page))
    else:
        show(page, is_all=all)
    return 0


def _forget(port: int, ident: str) -> int:
    if order(port, "forget-alert", id=ident)["forgotten"]:
        return DONE
    return complain(f"no firing alert has the id {ident}\n  try: weft alerts --json", NOT_SO)


def show(page: dict[str, Any], *, is_all: bool) -> None:
    """Print the alerts, and the sinks that could not be notified, for people."""
    from rich.text import Text  # only people need it

    from weft.cli.kit.console import console, plain_table  # loads rich

    out = console()
    firing = page["own"] if page["fleet"] is None else page["fleet"]
    ended = (page["ended"] or []) if is_all else []
    where = f"at {clean(page['name'])}" if page["fleet"] is None else "in the fleet"
    out.print(Text(f"{len(firing) or 'nothing'} fire{'s' if len(firing) < 2 else ''} {where}"))
    if firing or ended:
        table = plain_table(*COLUMNS)
        for alert in sorted(firing, key=lambda alert: (RANKS.get(alert["severity"], 1), alert["since"])):
            table.add_row(*map(Text, cells(alert)))
        for alert in ended:
            table.add_row(*map(Text, cells(alert)[:-1]), Text(f"ended {instant(alert['at'])}: {clean(alert['why'])}"))
        out.print(table)
    for line in (*troubles(page["sinks"] or []), *silent(page)):
        out.print(Text(line, style="yellow"))


def cells(alert: dict[str, Any]) -> tuple[str, ...]:
    """The cells of one alert, in the order of `COLUMNS`."""
    labels = ", ".join(f"{name}={value}" for name, value in sorted(alert["labels"].items()))
    value = f"{alert['value']:.6g} {alert['unit']}".rstrip()
    texts = (alert["severity"], alert["node"], alert["name"], value, alert["when"], labels or "-", alert["text"])
    return (instant(alert["since"]), *map(clean, texts))


def instant(at_ms: int) -> str:
    """A wall-clock time for people, where they are; a time beyond the calendar is printed as a number."""
    try:
        return f"{datetime.fromtimestamp(at_ms / 1_000):%Y-%m-%d %H:%M:%S}"  # noqa: DTZ006  # for people: local, as `weft config history`
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"


def troubles(sinks: list[dict[str, Any]]) -> Iterator[str]:
    """Sinks that could not be notified, and why."""
    for sink in sinks:
        if sink["why"]:
            after = "" if sink["next_s"] is None else f"; next try in {sink['next_s']} s"
            yield f"{clean(sink['sink'])}: {sink['waiting']} notices wait, {clean(sink['why'])}{after}"


def silent(page: dict[str, Any]) -> Iterator[str]:
    """Alerts of the configuration from which nothing can be heard, and why; roots of older versions do not tell."""
    for alert in page.get("dead") or []:
        yield f"can never fire: {clean(alert['key'])}: {clean(alert['why'])}"
    for key in page.get("in_vain") or []:
        yield f"cannot fire now: {clean(key)}: {NO_MACHINE}"
