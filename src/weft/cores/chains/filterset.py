"""The filters of a node: a set is applied as a whole or not at all, between two messages (CHN-070)."""

from collections.abc import Sequence

from weft.base.now import Now
from weft.cores.chains import limits
from weft.cores.chains.absorbing import Absorbing, AbsorbingLink, BatchLink
from weft.cores.chains.batches import Counters
from weft.cores.chains.context import Context
from weft.cores.chains.filters import House
from weft.cores.chains.links import ChainFull, FilterLink
from weft.cores.chains.messages import FiltersApplied, FiltersRefused
from weft.cores.chains.relay import RELAYS
from weft.cores.chains.roster import Roster
from weft.cores.chains.settings import FilterSpec


class FilterSet:
    """The filters in force; their links stand in the roster."""

    def __init__(self, context: Context, roster: Roster, absorbing: Absorbing, counters: Counters) -> None:
        self._context, self._roster, self._absorbing, self._counters = context, roster, absorbing, counters
        self._house = House(context.settings.secret, context.node, context.settings.functions)
        self._links: dict[str, FilterLink] = {}

    def change(self, specs: Sequence[FilterSpec], now: Now) -> None:
        """Apply another set, and tell what is different."""
        before = {link.name: link.spec for link in self._links.values()}
        if not self.replace(specs, now):
            return
        names = [spec.name for spec in specs]
        changed = [spec.name for spec in specs if before.get(spec.name) != spec]
        removed = [name for name in before if name not in names]
        if changed or removed:
            shown = limits.NAMES_SHOWN_MAX
            self._context.tell(FiltersApplied(len(names), tuple(changed[:shown]), tuple(removed[:shown])))

    def replace(self, specs: Sequence[FilterSpec], now: Now) -> bool:
        """Replace all filters at once, never a mixture of two sets; returns whether there was room for all."""
        old, fresh = self._links, [self._link(spec) for spec in specs]
        self._close_changed({spec.name: spec for spec in specs}, now)
        for link in old.values():
            self._roster.detach(link, link.spec.types)
        why = self._attach_all(fresh)
        if why:
            self._attach_all(list(old.values()))
            self._context.tell(FiltersRefused((why,), 1))
            return False
        for link in fresh:
            if link.name in old:
                link.follow(old[link.name])
        self._links = {link.name: link for link in fresh}
        self._counters.links = {link.name: link.counters for link in fresh}
        self._absorbing.stand(fresh)
        return True

    def _link(self, spec: FilterSpec) -> FilterLink:
        if spec.kind == "aggregate":
            from weft.cores.chains.aggregating import AggregateLink

            return AggregateLink(spec, self._absorbing)
        if spec.kind == "batch":
            return BatchLink(spec, self._absorbing)
        relay = RELAYS.get(spec.kind)
        return FilterLink(spec, self._house) if relay is None else relay(spec, self._context)

    def _close_changed(self, specs: dict[str, FilterSpec], now: Now) -> None:
        """Emit the open results of filters that are removed or that count in another way from now on."""
        for link in self._links.values():
            spec = specs.get(link.name)
            if isinstance(link, AbsorbingLink) and (spec is None or spec.state != link.spec.state):
                self._absorbing.close(link, now)

    def _attach_all(self, links: list[FilterLink]) -> str:
        """Attach all links. Returns why there is no room, and then none is attached; empty: all are."""
        for number, link in enumerate(links):
            try:
                self._roster.attach(link, link.spec.types)
            except ChainFull as full:
                for attached in links[:number]:
                    self._roster.detach(attached, attached.spec.types)
                return f"{link.name}: {full}"
        return ""
