"""Metrics as text: OpenMetrics, and the format of Prometheus before it (PIP-098).

```
# TYPE http_requests counter
http_requests_total{instance="n7",code="200"} 1027 1795226590.369 # {trace_id="x"} 1 1795226590
```

A counter becomes a series of type `rate`, a gauge of `basic`; histograms and summaries become their component series,
told apart by `le` and `quantile`. The label `instance` is the source. Stamps are seconds in the one format and
milliseconds in the other, which their size tells apart. Exemplars are passed over and counted as comments would be.
"""

import re
from typing import Final

from weft.lake.importing.delimited import Reading
from weft.lake.importing.found import BLANK, COMMENT, About, Found, Refused, is_too_long, sample, text_of
from weft.lake.importing.limits import KNOWN_MAX, SERIES_MAX
from weft.lake.importing.numbers import epoch_ns, number
from weft.lake.series import define

_NAME: Final = r"[a-zA-Z_:][a-zA-Z0-9_:]*+"
_PAIR: Final = r'\s*+[a-zA-Z_][a-zA-Z0-9_]*+\s*+=\s*+"(?:[^"\\]|\\.)*+"\s*+'  # possessive: no line is read twice
_LINE: Final = re.compile(rf"({_NAME})[ \t]*+(\{{(?:{_PAIR}(?:,{_PAIR})*+,?)?\s*+\}})?+(?!\{{)(.*)")
_LABELS: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_TYPE: Final = re.compile(rf"#[ \t]+TYPE[ \t]+({_NAME})[ \t]+([a-z]+)[ \t]*")
_ESCAPED: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", '"': '"', "\\": "\\"}
_CUMULATIVE: Final = ("_total", "_bucket", "_count", "_sum")
_COMPOUND: Final = frozenset({"histogram", "summary"})


class OpenMetricsParser:
    """Lines of one exposition."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.exemplars = 0
        self._types: dict[str, str] = {}
        self._known: dict[str, About] = {}

    def read(self, line: bytes) -> Found:
        """What the next line is."""
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
        about = self._about(match[1], match[2] or "")
        if isinstance(about, Refused):
            return about
        value = number(numbers[0])
        at_ns = epoch_ns(numbers[1]) if len(numbers) == 2 else self.reading.at_ns
        if len(numbers) == 1 and at_ns is None:
            return Refused("no-time", about.source)
        if value is None or at_ns is None:
            return Refused("bad-number", about.source)
        return sample(about, at_ns, (value, None), self.reading.latest_ns)

    def _about(self, name: str, braced: str) -> About | Refused:
        key = name + braced
        about = self._known.get(key)
        if about is not None:
            return about
        pairs = [(label, _plain(text)) for label, text in _LABELS.findall(braced)]
        labels = dict(pairs)
        if len(labels) != len(pairs):
            return Refused("undecodable")
        source = labels.pop("instance", "")
        if is_too_long((name, source), labels):
            return Refused("too-long", source)
        about = About(source, define(name, "", self._kind(name), "", labels))
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[key] = about
        return about

    def _kind(self, name: str) -> str:
        """How two samples calculate: what only grows is a rate."""
        said = self._types.get(name)
        if said is not None:
            return "rate" if said == "counter" else "basic"
        for ending in _CUMULATIVE:
            family = self._types.get(name.removesuffix(ending)) if name.endswith(ending) else None
            if family in _COMPOUND or (family == "counter" and ending == "_total"):
                return "rate"
        return "basic"


def _plain(text: str) -> str:
    """A label's text without its escapes."""
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[0]), text) if "\\" in text else text
