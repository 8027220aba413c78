"""Records of nothing but what an aggregate reads, decoded straight into its columns (CHN-067).

Most messages for an aggregate are such records: a time, texts to group by, a number. A struct that forbids everything
else decodes them in half the time that maps take, and checks them meanwhile. All other messages are read as by any
filter (messageview.py); what is counted is the same either way.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec

from weft.cores.chains import limits
from weft.cores.chains.columns import Columns, keys_of
from weft.cores.chains.messageview import JSON, MSGPACK, TIME, UNREADABLE
from weft.cores.chains.options import AggregateOptions
from weft.cores.chains.parcel import Parcel
from weft.cores.chains.windows import SKETCH, can_be_summed


class PlainReader:
    """Reads messages of such records for one aggregate."""

    def __init__(self, options: AggregateOptions) -> None:
        groups = [f"group{number}" for number in range(len(options.group))]
        row = msgspec.defstruct(
            "Row",
            [("at", int | None, None), ("number", float), *[(name, str) for name in groups]],
            rename={"at": TIME, "number": options.field, **dict(zip(groups, options.group, strict=True))},
            forbid_unknown_fields=True,
            kw_only=True,
            gc=False,
        )
        some = row | list[row]  # type: ignore[valid-type]  # made above
        self._decoders: dict[str, Callable[[bytes], Any]] = {
            JSON: msgspec.json.Decoder(some).decode,
            MSGPACK: msgspec.msgpack.Decoder(some).decode,
        }
        self._groups = [attrgetter(name) for name in groups]

    def read(self, parcel: Parcel) -> Columns | None:
        """The columns of a message; None if any of its records is another one."""
        decode = self._decoders.get(parcel.fmt)
        if decode is None:
            return None
        try:
            rows = decode(parcel.frames[0])
        except UNREADABLE:
            return None
        rows = rows if type(rows) is list else [rows]
        values = [row.number for row in rows]
        if not 0 < len(rows) <= limits.RECORDS_MAX or not can_be_summed(values):
            return None
        times = [row.at for row in rows]
        if None in times:
            times = [parcel.at if at is None else at for at in times]
        return Columns(times, values, *keys_of([list(map(read, rows)) for read in self._groups]))


def plain_reader(options: AggregateOptions) -> PlainReader | None:
    """A reader for an aggregate; None if it reads fields of inner maps, a field twice, or one that aggregates have."""
    names = (TIME, options.field, *options.group)
    is_plain = len(set(names)) == len(names) and SKETCH not in names and all(map(_can_be_of_struct, names))
    return PlainReader(options) if is_plain else None


def _can_be_of_struct(name: str) -> bool:
    """A path is none, and msgspec refuses what JSON would have to escape."""
    return name.isprintable() and not set(name) & set('."\\')
