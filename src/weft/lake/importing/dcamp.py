"""Sample logs of dCAMP, `.dcamp-data` (PIP-096).

```
1795226590369 source=localhost:55900 value=95133.00 base=217439.00 detail=CPU config-name=proc config-seqid=4 type=percent
```

Each line is one sample: milliseconds since 1970, then words `key=value` in any order. A word without `=` belongs to the
value before it. Most lines differ from an earlier line only in time stamp, value and base. So the rest of a line is
looked up in a cache, and parsed word by word only if it is new.
"""

import re
from collections.abc import Mapping
from typing import Final

from weft.lake.importing.found import (
    BLANK,
    HEARTBEAT,
    About,
    Found,
    Refused,
    Sample,
    is_kind,
    remember,
    sample,
    text_of,
)
from weft.lake.importing.limits import ANCIENT_NS, LINE_BYTES_MAX, NS_PER_MS
from weft.lake.importing.numbers import number
from weft.lake.schemas import LONG_MAX
from weft.lake.series import TEXT_MAX, define

_USUAL: Final = re.compile(
    rb"([0-9]{12,14}) (.* )?value=(-?[0-9]{1,18})(\.[0-9]{0,20})?"
    rb"(?: base=(?:(-?[0-9]{1,18})(\.[0-9]{0,20})?|None))?( .*)?"
)
_STAMP: Final = re.compile(r"[0-9]{1,19}")
_SEQID: Final = re.compile(r"[0-9]{1,19}")
_NEEDED: Final = ("source", "type", "config-name", "detail")
_OWN: Final = frozenset({*_NEEDED, "value", "base", "config-seqid", "p-count", "param"})
Fields = dict[str, str]
Value = int | float


class DcampParser:
    """Parses the lines of one log; a sample after `latest_ns` (since 1970) is marked as doubtful."""

    def __init__(self, latest_ns: int) -> None:
        self.latest_ns = latest_ns
        self._known: dict[tuple[bytes | None, bytes | None], About] = {}
        self._abouts: dict[tuple[object, ...], About] = {}

    def read(self, line: bytes) -> Found:
        """Parse the next line."""
        match = _USUAL.fullmatch(line)
        if match is None:
            return self._read_words(line)
        stamp, head, value, fraction, base, base_fraction, tail = match.groups()
        about = self._known.get((head, tail))
        if about is None:
            found = self._read_words(line)
            if isinstance(found, Sample) and _may_be_cached(head, tail):
                remember(self._known, (head, tail), found[0])
            return found
        numbers = _number(value, fraction), None if base is None else _number(base, base_fraction)
        at_ns = int(stamp) * NS_PER_MS
        if ANCIENT_NS <= at_ns <= self.latest_ns:
            return Sample(about, at_ns, *numbers)
        return sample(about, at_ns, numbers, self.latest_ns)

    def _read_words(self, line: bytes) -> Found:
        """Parse word by word: this works for every line."""
        text = text_of(line)
        if isinstance(text, Refused):
            return text
        words = [word for word in text.split(" ") if word]
        if not words:
            return BLANK
        stamp = "" if "=" in words[0] else words.pop(0)
        fields = _fields(words)
        if fields is None:
            return Refused("undecodable")
        if fields.get("type") == "HUGZ":
            return HEARTBEAT
        return self._read_fields(stamp, fields)

    def _read_fields(self, stamp: str, fields: Fields) -> Found:
        source = fields.get("source", "")
        if fault := _fault(stamp, fields):
            return Refused(fault, source)
        value = number(fields["value"])
        base = None if fields.get("base", "None") == "None" else number(fields["base"])
        if value is None or (base is None and fields.get("base", "None") != "None"):
            return Refused("bad-number", source)
        about = self._about(source, fields)
        return (
            about
            if isinstance(about, Refused)
            else sample(about, int(stamp) * NS_PER_MS, (value, base), self.latest_ns)
        )

    def _about(self, source: str, fields: Fields) -> About | Refused:
        labels = {key: text for key, text in fields.items() if key not in _OWN}
        texts = (fields["config-name"], fields["detail"], fields["type"], fields.get("param", ""))
        definition = define(*texts, labels)
        if definition.is_too_long() or max(len(source), len(fields.get("p-count", ""))) > TEXT_MAX:
            return Refused("too-long", source)
        config_number = int(fields["config-seqid"]) if "config-seqid" in fields else None
        attributes = [("p-count", fields["p-count"])] if "p-count" in fields else []
        key = (source, definition, config_number, *attributes)
        about = self._abouts.get(key)
        return about or remember(self._abouts, key, About(source, definition, config_number, attributes))


def _may_be_cached(head: bytes | None, tail: bytes | None) -> bool:
    """Whether lines that begin and end like this differ only in stamp, value and base: no second value or base is in them."""
    ends = (head or b"") + (tail or b"")
    return b"value=" not in ends and b"base=" not in ends and len(ends) < LINE_BYTES_MAX - 128


def _number(whole: bytes, fraction: bytes | None) -> Value:
    """An integer if the fraction is zero, else a double; `fraction` begins with its point."""
    if fraction is None or fraction == b".00" or not fraction.strip(b".0"):
        return int(whole)
    return float(whole + fraction)


def _fields(words: list[str]) -> Fields | None:
    """Keys and values; None if a word belongs to no key, or if a key is repeated."""
    fields: Fields = {}
    key = ""
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            if not key:
                return None
            fields[key] += f" {word}"
            continue
        if not name or name in fields:
            return None
        key = name
        fields[key] = text
    return fields


def _fault(stamp: str, fields: Mapping[str, str]) -> str:
    """The reason why these words (without value and base) are not a sample; empty if they are."""
    if not stamp or "value" not in fields or any(not fields.get(key) for key in _NEEDED):
        return "missing-field"
    if _STAMP.fullmatch(stamp) is None:
        return "bad-number"
    if not is_kind(fields["type"]):
        return "bad-type"
    text = fields.get("config-seqid", "0")
    if _SEQID.fullmatch(text) is None:
        return "bad-number"
    return "" if int(text) <= LONG_MAX else "out-of-range"
