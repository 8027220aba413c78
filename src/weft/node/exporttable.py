"""`[export.NAME]` of a node's own file: a monitoring system that gets every measured value (MET-006)."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from weft.base.settings import is_plain_name
from weft.node.notifytable import are_headers, is_web_address

EXPORTS_MAX = 8
WAYS = ("prometheus", "otlp")

Text = Annotated[str, Meta(max_length=1_000)]
Labels = Annotated[dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=256)]], Meta(max_length=8)]


class ExportTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One receiver: exactly one of `prometheus`, `otlp`."""

    prometheus: Text = ""
    """`http(s)://…/api/v1/write`: the address of a receiver of Prometheus remote write."""
    otlp: Text = ""
    """`http(s)://…/v1/metrics`: the address of a receiver of OTLP over HTTP."""
    headers: dict[str, str] = {}
    """HTTP headers of each request, such as Authorization."""
    labels: Labels = {}
    """Labels that are added to every series, such as the name of the site."""
    at: Literal["root", "here"] = "root"
    """`root`: only while this node is the root. `here`: always, the values of this node and all nodes below it."""


def faults_of(exports: Mapping[str, ExportTable]) -> Iterator[str]:
    """What is wrong with the receivers, each with its code."""
    if len(exports) > EXPORTS_MAX:
        yield f"E04 export: {len(exports)} receivers, {EXPORTS_MAX} at most"
    for name, table in exports.items():
        where = f"export.{name}"
        ways = [way for way in WAYS if getattr(table, way)]
        rules = (
            (is_plain_name(name), f"E15 {where}: letters, digits, `_`, `.`, `-` only, 63 at most"),
            (len(ways) == 1, f"E03 {where}: exactly one of {', '.join(WAYS)}"),
            *((is_web_address(getattr(table, way)), f"E05 {where}.{way}: http(s)://host/path") for way in ways),
            (are_headers(table.headers), f"E04 {where}.headers: names and values of one line"),
            (
                all(map(_is_label, table.labels)),
                f"E15 {where}.labels: names of letters, digits and `_`, no digit first",
            ),
        )
        yield from [text for holds, text in rules if not holds]


def _is_label(name: str) -> bool:
    """Whether it is a valid name of a label in Prometheus, and not one that Weft sets itself."""
    return name.isascii() and name.isidentifier() and not name.startswith("__") and name not in ("node", "metric")
