"""Writes the configuration file of an original dCAMP root from its replicated pairs (CFG-073, CFG-100).

Pure functions. `cfgfile` reads the text, and says what cannot be used here.
"""

from collections.abc import Iterable
from typing import Any, Final

from weft.base.errors import PeerError
from weft.wire.dcamp2014 import Pair
from weft.wire.pickles import Made

CONFIG: Final = "/CONFIG/"
HEARTBEAT: Final = "/CONFIG/global/heartbeat"
LISTS: Final = ("endpoints", "filters", "metrics")


def to_cfg(pairs: Iterable[Pair]) -> str:
    """The file with the meaning of these pairs; PeerError `value` for pairs that no original root has."""
    values = {pair.key: pair.value for pair in pairs if pair.key.startswith(CONFIG)}
    metrics: dict[str, Made] = {}
    lines = ["[global]", f"heartbeat = {_word(values.pop(HEARTBEAT, None))}s"]
    for group in sorted({key.split("/")[2] for key in values}):
        endpoints, filters, measured = (_made(values.get(f"{CONFIG}{group}/{name}"), name) for name in LISTS)
        lines += ["", f"[{_word(group)}]", *(f"{_field(one, 'host')}:{_field(one, 'port')}" for one in endpoints)]
        lines += [f"{_field(one, 'action')}{_field(one, 'match')}" for one in filters]
        lines += [_field(one, "config_name") for one in measured]
        metrics |= {_field(one, "config_name"): one for one in measured}
    for name, metric in sorted(metrics.items()):
        lines += ["", f"[{name}]", *_metric(metric)]
    return "\n".join(lines) + "\n"


def _metric(metric: Made) -> Iterable[str]:
    yield f"rate = {_field(metric, 'rate')}s"
    yield f"metric = {_field(metric, 'detail')}"
    threshold = metric.fields["threshold"]
    if isinstance(threshold, Made):
        op = _field(threshold, "op")
        yield f"threshold = {op}{_field(threshold, 'value')}{'s' if op in ('*', '+') else ''}"
    for key, name in (("param", "param"), ("aggr", "aggregate")):
        if metric.fields[key] is not None:
            yield f"{name} = {_field(metric, key)}"


def _made(value: Any, name: str) -> list[Made]:
    """The list under this name, checked to be of objects of its kind; empty if there is none."""
    kind = {"endpoints": "EndpntSpec", "filters": "FilterSpec", "metrics": "MetricSpec"}[name]
    found = [] if value is None else value
    if type(found) is not list or not all(type(one) is Made and one.kind == kind for one in found):
        raise PeerError("value", f"{name} is not a list of {kind}")
    return found


def _field(made: Made, name: str) -> str:
    if name not in made.fields:
        raise PeerError("value", f"{made.kind} without {name}")
    return _word(made.fields[name])


def _word(value: Any) -> str:
    """A text or number, on one line."""
    if type(value) not in (str, int, float) or not str(value).isprintable():
        raise PeerError("value", "neither a text on one line nor a number")
    return str(value)
