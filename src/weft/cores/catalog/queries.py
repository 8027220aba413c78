"""Queries about the broker itself: names that begin with `dbp.` (CAT-034)."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final

import msgspec

from weft.base.now import MILLISECOND
from weft.cores.catalog import filters, limits
from weft.cores.catalog.answers import Answers, encode, state_word
from weft.cores.catalog.arguments import read_argument
from weft.cores.catalog.book import Book
from weft.cores.catalog.context import Asker, Context
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.metrics import Gauge, exposition
from weft.cores.catalog.refusals import Refusal
from weft.cores.catalog.states import State

PREFIX: Final = b"dbp."
CAPS: Final = ("f64", "lvc", "log", "tap")
"""What this broker supports beyond the seed; the same list in beacon, status and approvals (BEA-001)."""
STATES: Final = (State.ACTIVE, State.SUSPECT, State.INACTIVE)

Arguments = tuple[bytes, ...]
"""The frames after the name of a query."""
Answer = tuple[bytes, ...]
"""The body frames after the time: JSON, then raw frames."""
Query = Callable[[Arguments, Asker], Answer]
"""A function that answers a query. If it raises Refusal, that is the answer."""


class Page(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The argument of `dbp.list`, and the second one of `dbp.liveness`."""

    limit: int = limits.LIST_MAX
    after: str = ""


_PAGE: Final = msgspec.json.Decoder(Page)


class Queries:
    """The table of queries. Other parts of the core add theirs, and their metrics for `dbp.metrics`."""

    def __init__(
        self, context: Context, book: Book, answers: Answers, alive: Callable[[Instance], dict[str, Any]] | None = None
    ) -> None:
        """`alive`: returns what `dbp.liveness` shows of an instance.

        The part that receives beats knows it (MON-008).
        """
        self._context, self._book, self.answers = context, book, answers
        self.gauges: dict[str, Gauge] = {}
        """By metric (`held`): current values by label."""
        self._alive = alive or self._heard_of
        self._table: dict[str, Query] = {
            "dbp.status": self.status,
            "dbp.metrics": self.metrics,
            "dbp.query": self.query,
            "dbp.list": self.list,
            "dbp.instances": self.instances,
            "dbp.liveness": self.liveness,
        }

    def add(self, name: str, function: Query) -> None:
        """Register the function for a query (`dbp.topics`); a later one replaces an earlier one."""
        self._table[name] = function

    def answer(self, body: tuple[bytes, ...], asker: Asker) -> Answer:
        """The body frames after the time, for any REQUEST: names, or a query.

        A query's Refusal becomes its answer, with `Error` and `code`; only `not-authorised` is raised, so that the
        asker is denied.
        """
        if not body or not body[0].startswith(PREFIX):
            return (self.answers.of(body),)
        name = body[0].decode("utf-8", "replace")
        query = self._table.get(name)
        if query is None:
            return (_error("unknown-query", f"there is no query {name[: limits.NAME_BYTES_MAX]}"),)
        self._context.count("queries", name)
        try:
            return query(body[1:], asker)
        except Refusal as refusal:
            if refusal.code == "not-authorised":
                raise
            return (_error(refusal.code, refusal.why),)

    # What can be asked

    def status(self, args: Arguments, asker: Asker) -> Answer:
        """The broker's identity, its ports, and how many instances it knows (CAT-002, BEA-004)."""
        context, settings, counts = self._context, self._context.settings, self._book.counts
        answer = {
            "dbp": 1,
            **self._head(),
            "net": settings.net,
            "host": settings.host,
            "port": settings.port,
            "hb": context.beats_port,
            "pub": context.events_port,
            "monitor": context.monitor_port,
            "bridge": context.bridge_port,
            "caps": CAPS,
            "insecure": settings.is_exposed,
            "full": context.is_full,
            "instances": {state.name.lower(): counts[state] for state in STATES},
            "names": len(self._book.names()),
        }
        return (encode(answer),)

    def metrics(self, args: Arguments, asker: Asker) -> Answer:
        """All metrics for Prometheus, after a frame of JSON (CAT-082)."""
        gauges: dict[str, Gauge] = {
            "held": dict,
            "index": lambda: {"": self._context.index},
            "instances": lambda: {state.name.lower(): self._book.counts[state] for state in STATES},
            **self.gauges,
        }
        text = exposition(self._context.counters, gauges)
        return encode({**self._head(), "content_type": "text/plain; version=0.0.4; charset=utf-8"}), text

    def query(self, args: Arguments, asker: Asker) -> Answer:
        """All instances that match a filter, in every state (CAT-035)."""
        wanted = filters.parse(args[0] if args else b"")
        return (self._listed(wanted.among(self._book)),)

    def list(self, args: Arguments, asker: Asker) -> Answer:
        """The best instance of each name, sorted by name; `after` is where the next page begins, or null."""
        page = _page_of(args, 0)
        names, limit = self._book.names(), min(page.limit, limits.LIST_MAX)
        start = bisect_right(names, page.after) if page.after else 0
        found = (best[0] for name in islice(names, start, None) if (best := self.answers.best(name)))
        listed = list(islice(found, limit + 1))
        after = listed[limit - 1].name if len(listed) > limit else None
        return (self._listed(listed[:limit], after=after),)

    def instances(self, args: Arguments, asker: Asker) -> Answer:
        """Every instance of a name, and how it is heard. Lookups leave that out, since it changes without an index."""
        name = _name_of(args)
        if not name:
            raise Refusal("bad-argument", "of which name?")
        rows = [
            {"name": found.name, "instance": found.id, "record": self._detailed(found)}
            for found in self._book.of_name(name)
        ]
        return (encode({**self._head(), "records": rows}),)

    def liveness(self, args: Arguments, asker: Asker) -> Answer:
        """How each instance is heard, for one name or for all (MON-008).

        For all, a page at a time like `dbp.list` (`dbp.liveness "" {"limit", "after"}`): a row costs far more than a
        kept record, so ten thousand in one answer would take too long (CAT-081).
        """
        name, page = _name_of(args), _page_of(args, 1)
        all_names = self._book.names()
        names = [name] if name else islice(all_names, bisect_right(all_names, page.after) if page.after else 0, None)
        rows: list[dict[str, Any]] = []
        last, after = "", None
        for one in names:
            if len(rows) >= min(page.limit, limits.LIST_MAX):
                after = last
                break
            among = self._book.of_name(one)
            rows += [{"name": found.name, "instance": found.id, **self._alive(found)} for found in among]
            last = one
        return (encode({**self._head(), "after": after, "instances": rows}),)

    # Making

    def _head(self) -> dict[str, Any]:
        return {"epoch": self._context.epoch, "index": self._context.index}

    def _listed(self, found: Iterable[Instance], **more: Any) -> bytes:
        return self.answers.listed(encode({**self._head(), **more})[:-1], found)

    def _detailed(self, instance: Instance) -> dict[str, Any]:
        shown = self.answers.shown(instance)
        shown["_dbp"] |= {
            "via": _via(instance),
            "last_beat": self.answers.last_seen(instance) if instance.heard_at else None,
            "restored": instance.is_restored,
            "reason": instance.reason,
            "owner": instance.owner,
        }
        return shown

    def _heard_of(self, instance: Instance) -> dict[str, Any]:
        age = round((self._context.now.mono - instance.heard_at) / 1e9, 3) if instance.heard_at else None
        interval_ms = instance.interval_ns // MILLISECOND
        return {"state": state_word(instance), "via": _via(instance), "age_s": age, "interval_ms": interval_ms}


def _via(instance: Instance) -> str:
    """The path as shown; a probe is answered by TCP (2.4)."""
    return "udp" if instance.via == "udp" else "tcp"


def _page_of(args: Arguments, position: int) -> Page:
    page = read_argument(args, position, _PAGE)
    if page.limit < 1:
        raise Refusal("bad-argument", "a page has at least one name")
    return page


def _name_of(args: Arguments) -> str:
    try:
        return args[0].decode() if args else ""
    except UnicodeDecodeError:
        raise Refusal("bad-argument", "this is no name: it is not UTF-8") from None


def _error(code: str, text: str) -> bytes:
    return encode({"Error": text, "code": code})
