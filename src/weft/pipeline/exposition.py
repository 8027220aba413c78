"""Writes samples as OpenMetrics text from which an import makes equal samples again (PIP-098).

```
# TYPE cpu counter
cpu_total{instance="n1",cpu="total",weft_name="cpu",weft_detail="CPU",weft_type="percent",weft_part="base"} 150519 1795227300
cpu_total{instance="n1",cpu="total",weft_name="cpu",weft_detail="CPU",weft_type="percent"} 48730 1795227300
# EOF
```

The node is the label `instance`. What OpenMetrics cannot express is written as labels that begin with `weft_`, only
where needed: the name in the configuration, detail, type and param of the series, and labels whose names the format does
not allow. The bases of a series come before its values, with the label `weft_part="base"`. A text value, a second sample
of a series at one instant, and a name with control characters cannot be expressed; these samples are counted and left out.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final

Row = dict[str, Any]
"""A sample: node, config_name, detail, type, param, labels, series, at_ns, value, value_long, base, base_long."""
COLUMNS: Final = (
    "node", "config_name", "detail", "type", "param", "labels", "series", "at_ns", "value", "value_long", "base",
    "base_long",
)  # fmt: skip
ORDER: Final = "config_name, type, node, series, at_ns, era, sequence"
"""The order of rows that `Exposition.lines` needs."""
COUNTERS: Final = frozenset({"delta", "rate", "average", "percent"})
_DEFAULT_TYPE: Final = {"counter": "rate", "gauge": "basic"}
"""The series type that an import gives to a metric family, unless a label says another."""
_LEGAL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")  # characters that are not allowed; LF has an escape
_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class Exposition:
    """One text. `written` counts its samples; `left_out` counts the samples left out, by reason."""

    def __init__(self) -> None:
        self.written = 0
        self.left_out: dict[str, int] = {}
        self._families: set[str] = set()

    def lines(self, rows: Iterable[Row]) -> Iterator[str]:
        """The whole text, line by line; the rows come in `ORDER`. Holds one series in memory."""
        for (name, kind), family in groupby(rows, key=lambda row: (row["config_name"], row["type"])):
            stem, sample = self._named(name, kind)
            yield f"# TYPE {stem} {_type(kind)}\n"
            for _, series in groupby(family, key=lambda row: (row["node"], row["series"])):
                yield from self._series(sample, list(self._expressible(series)))
        yield "# EOF\n"

    def _named(self, name: str, kind: str) -> tuple[str, str]:
        """Names of family and sample; two types with one name are two families."""
        plain = re.sub("[^a-zA-Z0-9_:]", "_", name)
        stem = plain if re.match("[a-zA-Z_:]", plain) else f"_{plain}"
        ending = "_total" if kind in COUNTERS else ""
        stem = stem.removesuffix("_total") or "_" if ending else stem
        while stem in self._families:
            stem += "_"
        self._families.add(stem)
        return stem, stem + ending

    def _expressible(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The samples of a series that the text can express."""
        before = None
        for row in rows:
            why = _why_not(row, before)
            if why:
                self.left_out[why] = self.left_out.get(why, 0) + 1
                continue
            before = row["at_ns"]
            self.written += 1
            yield row

    def _series(self, sample: str, rows: list[Row]) -> Iterator[str]:
        if not rows:
            return
        labels = labels_of(rows[0], sample)
        if any(row["base"] is not None for row in rows):
            base = braced(labels | {"weft_part": "base"})
            for row in rows:
                if row["base"] is not None:
                    yield f"{sample}{base} {number(row['base_long'], row['base'])} {stamp(row['at_ns'])}\n"
        value = braced(labels)
        for row in rows:
            yield f"{sample}{value} {number(row['value_long'], row['value'])} {stamp(row['at_ns'])}\n"


def labels_of(row: Row, sample: str) -> dict[str, str]:
    """The labels of a series, in the order in which they are written; `sample` is its name in the text."""
    own = {"name": row["config_name"], "detail": row["detail"], "type": row["type"], "param": row["param"]}
    default = {"name": sample, "detail": "", "type": _DEFAULT_TYPE[_type(row["type"])], "param": ""}
    labels = dict(row["labels"])
    others = {name: text for name, text in labels.items() if not _is_plain(name, text)}
    extra = {f"weft_{name}": text for name, text in own.items() if text != default[name]}
    if others:
        extra["weft_labels"] = json.dumps(others, sort_keys=True)
    return {"instance": row["node"]} | {name: text for name, text in labels.items() if name not in others} | extra


def braced(labels: dict[str, str]) -> str:
    """Labels in braces, as they follow a name."""
    pairs = (f'{name}="{text.translate(_ESCAPES)}"' for name, text in labels.items())
    return "{" + ",".join(pairs) + "}"


def number(whole: int | None, real: float) -> str:
    """A number from which an import makes the same value again: 5 is an integer, 5e0 is a double.

    >>> number(None, 5.0), number(5, 5.0), number(None, 0.1)
    ('5e0', '5', '0.1')
    """
    if whole is not None:
        return str(whole)
    text = repr(real)
    return f"{text[:-2]}e0" if text.endswith(".0") else text


def stamp(at_ns: int) -> str:
    """Seconds since 1970, to the nanosecond.

    >>> stamp(1_795_227_300_000_000_000), stamp(1_795_227_300_005_000_000)
    ('1795227300', '1795227300.005')
    """
    seconds, rest = divmod(at_ns, 1_000_000_000)
    return f"{seconds}.{rest:09d}".rstrip("0") if rest else str(seconds)


def _type(kind: str) -> str:
    return "counter" if kind in COUNTERS else "gauge"


def _is_plain(name: str, text: str) -> bool:
    """Whether a label can be written as it is: its name is allowed and not reserved, its text has no control characters."""
    is_reserved = name == "instance" or name.startswith(("weft_", "__"))
    return not is_reserved and _LEGAL.fullmatch(name) is not None and _CONTROL.search(text) is None


def _why_not(row: Row, before: int | None) -> str:
    """Why a sample cannot be expressed; empty if it can. `before`: the instant of the sample before it in its series."""
    if row["value"] is None:
        return "text"
    if any(_CONTROL.search(row[name]) for name in ("node", "config_name", "detail", "type", "param")):
        return "control characters"
    return "a second one at its instant" if row["at_ns"] == before else ""
