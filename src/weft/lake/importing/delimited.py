"""Parses CSV: a header, then one sample per line, or in the wide form one instant per line (PIP-098).

```
at,source,config-name,detail,type,value,base,rack        long: columns by these names or by `--map at=time,value=temp`
2026-11-21T01:43:10Z,n7,cpu,CPU,percent,95133,217439,7   others (rack) are labels

time,cpu,mem                                             wide: --wide time; every other column is a series
1795226590369,0.25,1894543360                            an empty cell is no sample
```

Each line is one record: a quoted field that continues on the next line is refused.
"""

import csv
from collections.abc import Callable, Mapping
from datetime import tzinfo
from operator import itemgetter
from typing import Final, NamedTuple

from weft.base.errors import UserError
from weft.lake.importing.found import (
    BLANK,
    HEADER,
    About,
    Found,
    Many,
    Refused,
    Sample,
    is_kind,
    remember,
    sample,
    text_of,
)
from weft.lake.importing.limits import COLUMNS_MAX
from weft.lake.importing.numbers import instant_ns, number
from weft.lake.schemas import LONG_MAX
from weft.lake.series import TEXT_MAX, define

ROLES: Final = ("at", "value", "base", "source", "config-name", "detail", "type", "param", "config-seqid")
"""The roles that a column can have. A header that uses these names needs no `--map`."""
_DELIMITERS: Final = (",", ";", "\t")


class Reading(NamedTuple):
    """How the user wants tables to be parsed."""

    zone: tzinfo
    """The zone of instants that name none."""
    latest_ns: int
    """A sample after this instant, in nanoseconds since 1970, is marked as doubtful."""
    named: Mapping[str, str] = {}
    """Role to header name (`--map`)."""
    wide: str = ""
    """Header name of the column with the instant; every other column is then a series."""
    at_ns: int | None = None
    """For OpenMetrics: the instant of lines that have none (`--at`)."""


class CsvParser:
    """Parses the lines of one table; the first is the header. UserError `no-column` if a required column is missing."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self._header: list[str] | None = None
        self._delimiter = ","
        self._roles: dict[str, int] = {}
        self._labels: list[int] = []
        self._key: Callable[[list[str]], object] = tuple
        """Picks the cells of a line that say which series it belongs to: all but instant, value and base."""
        self._known: dict[object, About] = {}
        self._series: list[About | None] = []

    def read(self, line: bytes) -> Found:
        """Parse the next line."""
        cells = self._cells(line)
        if isinstance(cells, Refused):
            return cells
        if not cells:
            return BLANK
        if self._header is None:
            self._begin(cells)
            return HEADER
        if len(cells) != len(self._header):
            return Refused("missing-field" if len(cells) < len(self._header) else "undecodable")
        return self._wide(cells) if self.reading.wide else self._long(cells)

    def _cells(self, line: bytes) -> list[str] | Refused:
        """The fields of a line, or the reason why it has none. The line may end in CR LF."""
        text = text_of(line.removesuffix(b"\r"), "utf-8" if self._header is not None else "utf-8-sig")
        if isinstance(text, Refused):
            return text
        if not text.strip():
            return []
        if self._header is None:
            self._delimiter = max(_DELIMITERS, key=text.count)
        if '"' not in text:
            return text.split(self._delimiter)
        try:
            return next(csv.reader([text], delimiter=self._delimiter, strict=True), [])
        except csv.Error:
            return Refused("undecodable")

    def _begin(self, cells: list[str]) -> None:
        """Learn from the header which column is what."""
        names = [cell.strip() for cell in cells]
        if self.reading.wide:
            self._roles = {"at": _place(names, "at", self.reading.wide)}
            self._series = [None if place == self._roles["at"] else _about_of(name) for place, name in enumerate(names)]
        else:
            wanted = {role: self.reading.named.get(role, role) for role in ROLES}
            self._roles = {role: names.index(name) for role, name in wanted.items() if name in names}
            for role in ("at", "value", *self.reading.named):
                _place(names, role, wanted[role])
            self._labels = [place for place in range(len(names)) if place not in self._roles.values()]
            of_series = set(range(len(names))) - {self._roles.get(role, -1) for role in ("at", "value", "base")}
            self._key = itemgetter(*sorted(of_series)) if of_series else lambda _: None
        if len(names) > COLUMNS_MAX:
            raise UserError("too-wide", f"{len(names):,} columns", f"at most {COLUMNS_MAX:,}")
        self._header = names

    def _wide(self, cells: list[str]) -> Found:
        at_ns = instant_ns(cells[self._roles["at"]].strip(), self.reading.zone)
        rows: list[Sample | Refused] = []
        for about, cell in zip(self._series, cells, strict=True):
            if about is None or not (text := cell.strip()):
                continue
            value = number(text)
            if value is None or at_ns is None:
                rows.append(Refused("bad-number"))
            else:
                rows.append(sample(about, at_ns, (value, None), self.reading.latest_ns))
        return Many(tuple(rows)) if rows else BLANK

    def _long(self, cells: list[str]) -> Found:
        stamp, text = cells[self._roles["at"]].strip(), cells[self._roles["value"]].strip()
        base_text = self._cell(cells, "base")
        at_ns, value = instant_ns(stamp, self.reading.zone), number(text)
        base = number(base_text) if base_text and base_text != "None" else None
        if at_ns is None or value is None or (base is None and base_text not in ("", "None")):
            return Refused("bad-number" if stamp and text else "missing-field", self._cell(cells, "source"))
        about = self._about(cells)
        return about if isinstance(about, Refused) else sample(about, at_ns, (value, base), self.reading.latest_ns)

    def _cell(self, cells: list[str], role: str, usual: str = "") -> str:
        place = self._roles.get(role)
        return usual if place is None else cells[place].strip() or usual

    def _about(self, cells: list[str]) -> About | Refused:
        key = self._key(cells)
        about = self._known.get(key)
        if about is not None:
            return about
        made = self._define(self._cell(cells, "source"), cells)
        return made if isinstance(made, Refused) else remember(self._known, key, made)

    def _define(self, source: str, cells: list[str]) -> About | Refused:
        header = self._header or []
        kind = self._cell(cells, "type", "basic")
        config_text = self._cell(cells, "config-seqid", "0")
        if not is_kind(kind):
            return Refused("bad-type", source)
        if not (
            config_text.isascii() and config_text.isdigit() and len(config_text) <= 19 and int(config_text) <= LONG_MAX
        ):
            return Refused("bad-number", source)
        labels = {header[place]: cells[place].strip() for place in self._labels if cells[place].strip()}
        name = self._cell(cells, "config-name", header[self._roles["value"]])
        texts = (name, self._cell(cells, "detail"), kind, self._cell(cells, "param"))
        definition = define(*texts, labels)
        if definition.is_too_long() or len(source) > TEXT_MAX:
            return Refused("too-long", source)
        config_number = int(config_text) if "config-seqid" in self._roles else None
        return About(source, definition, config_number)


def _about_of(name: str) -> About:
    """The series of a column in the wide form."""
    if len(name) > TEXT_MAX:
        raise UserError(
            "too-long", f"a column has a name of {len(name):,} characters", f"a name of at most {TEXT_MAX:,} characters"
        )
    return About("", define(name, "", "basic", "", {}))


def _place(names: list[str], role: str, name: str) -> int:
    if name in names:
        return names.index(name)
    shown = ", ".join(names[:20])
    raise UserError("no-column", f"no column {name!r} in the header: {shown}", f"--map {role}=COLUMN")
