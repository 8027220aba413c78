"""Parses metrics in text form: OpenMetrics, and the older format of Prometheus (PIP-098).

```
# TYPE http_requests counter
http_requests_total{instance="n7",code="200"} 1027 1795226590.369 # {trace_id="x"} 1 1795226590
```

A counter becomes a series of type `rate`, a gauge of `basic`; histograms and summaries become their component series,
distinguished by `le` and `quantile`. The label `instance` is the source. Time stamps are seconds in OpenMetrics and
milliseconds in the older format; the size of the number decides which. Exemplars are skipped and counted like comments.

`weft lake export` adds labels that begin with `weft_`: `name`, `detail`, `type`, `param` of the series, and as JSON the
`labels` whose names OpenMetrics does not allow; with `part="base"` a line is the base of the sample at its instant, and
comes before it. Bases are kept for one series at a time.
"""

import re
from typing import Final, NamedTuple

import msgspec

from weft.lake.importing.delimited import Reading
from weft.lake.importing.found import (
    BASES,
    BLANK,
    COMMENT,
    About,
    Found,
    Refused,
    is_kind,
    remember,
    sample,
    text_of,
)
from weft.lake.importing.limits import BASES_MAX, SERIES_MAX
from weft.lake.importing.numbers import epoch_ns, number
from weft.lake.series import TEXT_MAX, define

# These patterns never backtrack, so that a hostile line costs no more than its length: a repeated character is possessive
# (`*+`), a repeated group stands in an atomic group (`(?>…)`). No group is possessive: Python 3.11.2 reads that wrongly.
_NAME: Final = r"[a-zA-Z_:][a-zA-Z0-9_:]*+"
_PAIR: Final = r'\s*+[a-zA-Z_][a-zA-Z0-9_]*+\s*+=\s*+"(?>(?:[^"\\]|\\.)*)"\s*+'
_LINE: Final = re.compile(
    rf"({_NAME})[ \t]*+(?>(\{{(?:{_PAIR}(?>(?:,{_PAIR})*),?)?\s*+\}})?)(?!\{{)(.*)",
)
_LABELS: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_TYPE: Final = re.compile(rf"#[ \t]+TYPE[ \t]+({_NAME})[ \t]+([a-z]+)[ \t]*")
_ESCAPED: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", '"': '"', "\\": "\\"}
_CUMULATIVE: Final = ("_total", "_bucket", "_count", "_sum")
_COMPOUND: Final = frozenset({"histogram", "summary"})


PREFIX: Final = "weft_"
_OWN: Final = frozenset({"name", "detail", "type", "param", "labels", "part"})
_NO_SERIES: Final = About("", None)


class _Base(NamedTuple):
    """Marks a line whose value is the base of a sample, and says of which series."""

    of: About


class OpenMetricsParser:
    """Parses the lines of one exposition."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.exemplars = 0
        self._types: dict[str, str] = {}
        self._known: dict[str, About | _Base] = {}
        self._based = _NO_SERIES
        """The series whose bases are in `_bases`, by instant."""
        self._bases: dict[int, int | float] = {}

    def read(self, line: bytes) -> Found:
        """Parse the next line."""
        text = text_of(line)
        if isinstance(text, Refused):
            return text
        text = text.strip(" \t")
        if not text:
            return BLANK
        if text.startswith("#"):
            self._learn(text)
            return COMMENT
        return self._read_sample(text)

    def _learn(self, text: str) -> None:
        match = _TYPE.fullmatch(text)
        if match is not None and len(self._types) < SERIES_MAX:
            self._types[match[1]] = match[2]

    def _read_sample(self, text: str) -> Found:
        match = _LINE.fullmatch(text)
        if match is None:
            return Refused("undecodable")
        words, hashed, _ = match[3].partition(" # ")
        numbers = words.split()
        self.exemplars += bool(hashed)
        if not 1 <= len(numbers) <= 2:
            return Refused("missing-field" if not numbers else "undecodable")
        known = self._about(match[1], match[2] or "")
        return known if isinstance(known, Refused) else self._valued(known, numbers)

    def _valued(self, known: About | _Base, numbers: list[str]) -> Found:
        """The sample of a line, from its numbers: a value, and the time if it has one."""
        about = known.of if isinstance(known, _Base) else known
        value = number(numbers[0])
        at_ns = epoch_ns(numbers[1]) if len(numbers) == 2 else self.reading.at_ns
        if len(numbers) == 1 and at_ns is None:
            return Refused("no-time", about.source)
        if value is None or at_ns is None:
            return Refused("bad-number", about.source)
        if isinstance(known, _Base):
            return self._remember(about, at_ns, value)
        base = self._bases.get(at_ns) if self._bases and _is_same(about, self._based) else None
        return sample(about, at_ns, (value, base), self.reading.latest_ns)

    def _remember(self, about: About, at_ns: int, base: float) -> Found:
        if not _is_same(about, self._based):
            self._based, self._bases = about, {}
        if len(self._bases) >= BASES_MAX:
            return Refused("too-long", about.source)
        self._bases[at_ns] = base
        return BASES

    def _about(self, name: str, braced: str) -> About | _Base | Refused:
        key = name + braced
        known = self._known.get(key)
        if known is not None:
            return known
        pairs = [(label, _plain(text)) for label, text in _LABELS.findall(braced)]
        labels = dict(pairs)
        if len(labels) != len(pairs):
            return Refused("undecodable")
        own = {part: labels.pop(PREFIX + part) for part in _OWN if PREFIX + part in labels}
        source = labels.pop("instance", "")
        more = _labels_from_json(own.get("labels", "{}"))
        if more is None:
            return Refused("undecodable", source)
        labels |= more
        kind = own.get("type") or self._kind(name)
        texts = (own.get("name", name), own.get("detail", ""), kind, own.get("param", ""))
        definition = define(*texts, labels)
        if definition.is_too_long() or len(source) > TEXT_MAX:
            return Refused("too-long", source)
        if not is_kind(kind):
            return Refused("bad-type", source)
        about = About(source, definition)
        return remember(self._known, key, _Base(about) if own.get("part") == "base" else about)

    def _kind(self, name: str) -> str:
        """The type of the series: `rate` for a value that only grows, else `basic`."""
        declared = self._types.get(name)
        if declared is not None:
            return "rate" if declared == "counter" else "basic"
        for ending in _CUMULATIVE:
            family = self._types.get(name.removesuffix(ending)) if name.endswith(ending) else None
            if family in _COMPOUND or (family == "counter" and ending == "_total"):
                return "rate"
        return "basic"


def _plain(text: str) -> str:
    """A label's text with its escapes resolved."""
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[0]), text) if "\\" in text else text


def _is_same(one: About, other: About) -> bool:
    """Whether two lines belong to the same series."""
    return one.source == other.source and one.definition == other.definition


def _labels_from_json(text: str) -> dict[str, str] | None:
    """Labels from their JSON in `weft_labels`; None if it cannot be read."""
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.MsgspecError, ValueError):
        return None
