"""The filter tables of a settings file: text in, specifications out, and every mistake with its code (CFG-071).

    [[chains.filter]]
    name = "hot-only"          # unique; the tie-breaker among equal places
    kind = "threshold"         # match, sample, rate-limit, dedupe, edit, threshold, forward, journal
    types = ["weft.metric"]    # or "*", or "app.*"
    dir = "out"                # or "in"
    place = 200                # 1 to 4294967294
    where = { name = "cpu" }   # which records it sees; for `match`, which ones stay
    when = "depth == 0"        # the same as an expression
    on_error = "keep"          # or "drop", "fail"
    above = 90.0               # keys of the kind

Pure functions; the loader of the file adds where the file is.
"""

import re
from typing import Any, Final

import msgspec

from weft.base.settings import Table, is_plain_name, nearest
from weft.cores.chains import limits
from weft.cores.chains.options import HANDOVERS, KINDS, OF_MESSAGES, Of, Options, reads_fields, state_of
from weft.cores.chains.order import covers
from weft.cores.chains.where import Condition, Where, parse_where

DIRECTIONS: Final = ("in", "out")
ON_ERROR: Final = ("keep", "drop", "fail")
LOCAL: Final = ("python",)
"""Kinds that run code from this machine's disk."""
METRIC: Final = "weft.metric"
"""The type of batches of samples; everything else is a message."""

_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII)


class FilterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One filter of the configuration; equal specifications filter in the same way."""

    name: str
    kind: str
    types: tuple[str, ...] = (METRIC,)
    direction: str = "out"
    place: int = limits.PLACE_USUAL
    where: tuple[Condition, ...] = ()
    when: str = ""
    on_error: str = "keep"
    nodes: tuple[str, ...] = ()
    """Names of the nodes where it stands, `web*` for all with that prefix; empty: everywhere."""
    pinned: bool = False
    """It is from a node's own file: it stays, whatever the configuration contains."""
    options: Options

    def stands_at(self, node: str) -> bool:
        """Whether it is for the node of this name."""
        return not self.nodes or any(_fits(pattern, node) for pattern in self.nodes)

    def compiled(self) -> Where:
        """The compiled conditions."""
        return Where(self.where)

    @property
    def state(self) -> tuple[object, ...]:
        """What a filter's state depends on; if it is equal in the next version, the state is kept (CHN-070)."""
        return (self.kind, *state_of(self.options))

    @property
    def reads_fields(self) -> bool:
        """Whether it uses the payload of a message, apart from `when`."""
        return bool(self.where) or reads_fields(self.options)


def parse_filters(tables: Any, *, is_local: bool = False) -> tuple[list[FilterSpec], list[str]]:
    """The filters of `[[chains.filter]]`, in order, and all errors in them (CFG-071).

    `is_local`: they are from a node's own file; only there may a filter be a function of a program (CHN-069). The
    filters may include some with errors; if there are any errors, the caller uses none of them.
    """
    mistakes: list[str] = []
    if not isinstance(tables, list):
        return [], ["E04 chains.filter: must be a list of tables, [[chains.filter]]"]
    if len(tables) > limits.LINKS_MAX:
        return [], [f"E04 chains.filter: {len(tables)} filters, {limits.LINKS_MAX} at most"]
    specs: list[FilterSpec] = []
    names: dict[str, int] = {}
    for index, values in enumerate(tables):
        table = Table(values, f"chains.filter[{index}]", mistakes)
        if not isinstance(values, dict):
            continue
        spec = _filter(table)
        if spec is not None and spec.kind in LOCAL and not is_local:
            table.say(
                "E11", "kind", f"a {spec.kind} filter stands in a node's own file only, not in what is replicated"
            )
        if spec is None:
            continue
        if spec.name in names:
            table.say("E14", "name", f"{spec.name!r} is the name of chains.filter[{names[spec.name]}], too")
        names.setdefault(spec.name, index)
        specs.append(spec)
    return specs, mistakes


def _filter(table: Table) -> FilterSpec | None:
    name = table.text("name", is_required=True)
    if name and not is_plain_name(name):
        table.say("E15", "name", "1 to 63 letters, digits, `_`, `.`, `-`")
    kind = table.text("kind", is_required=True)
    if kind and kind not in KINDS:
        table.say("E04", "kind", f"{kind!r} is none of {', '.join(KINDS)}{nearest(kind, KINDS)}")
    if kind not in KINDS:
        return None  # then its valid keys are unknown too
    types = _types(table)
    of = Of.SAMPLES if types == (METRIC,) else Of.MESSAGES
    usual = limits.PLACE_HANDOVER if kind in HANDOVERS else limits.PLACE_USUAL
    spec = FilterSpec(
        name=name,
        kind=kind,
        types=types,
        direction=table.choice("dir", DIRECTIONS, "out"),
        place=table.whole("place", usual, limits.PLACE_MIN, limits.PLACE_MAX),
        where=parse_where(table, of_samples=of is Of.SAMPLES),
        when=_when(table),
        on_error=table.choice("on_error", ON_ERROR, "keep"),
        nodes=_nodes(table),
        pinned=table.flag("pinned"),
        options=KINDS[kind](table, of),
    )
    _check_kind(table, spec)
    table.end()
    return spec


def _check_kind(table: Table, spec: FilterSpec) -> None:
    """Check what the kind requires of the common keys."""
    if spec.kind == "match" and not table.raw("where") and "when" not in table:
        table.say("E03", "where", "or when is missing: a match without conditions matches everything")
    if spec.kind in HANDOVERS and table.raw("dir") != "in":
        table.say("E11", "dir", f'must be "in": {spec.kind} takes what has arrived')
    if spec.kind in OF_MESSAGES and any(covers(pattern, METRIC) for pattern in spec.types):
        what = "an edit does not change samples" if spec.kind == "edit" else f"samples pass {spec.kind}"
        table.say("E11", "types", f"{what}: name message types, without {METRIC}")


def _nodes(table: Table) -> tuple[str, ...]:
    nodes = table.texts("nodes")
    for name in nodes:
        if name != "*" and not is_plain_name(name.removesuffix("*")):
            table.say("E15", "nodes", f"{name[:64]!r} is no name of a node; `web*` names all that begin so")
    return nodes


def _fits(pattern: str, node: str) -> bool:
    return node.startswith(pattern[:-1]) if pattern.endswith("*") else node == pattern


def _types(table: Table) -> tuple[str, ...]:
    types = table.texts("types") or (METRIC,)
    for kind in types:
        stem = kind.removesuffix("*")
        is_wild = kind == "*" or (kind.endswith(".*") and _TYPE.fullmatch(stem) is not None)
        if len(kind) > limits.TYPE_BYTES_MAX or not (is_wild or _TYPE.fullmatch(kind)):
            table.say("E15", "types", f"{kind!r} is no type: small letters, digits, `.`, `_`, `-`; or `*`, or `x.*`")
    return types


def _when(table: Table) -> str:
    source = table.raw("when")
    if source is None:
        return ""
    if not isinstance(source, str) or not source.strip():
        table.say("E04", "when", 'must be an expression: "f.level > 3"')
        return ""
    from weft.cores.chains import expression  # only a file with an expression loads the library

    wrong = expression.mistakes(source)
    for text in wrong:
        table.say(text[:3], "when", text[4:])
    return "" if wrong else source
