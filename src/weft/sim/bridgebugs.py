"""Planted bugs of bridges, checks and taps. Nothing imports this but `canaries.load`."""

from typing import Any, Final

import msgspec

from weft.cores.catalog.bridges import Bridges
from weft.cores.catalog.checks import Checks
from weft.cores.catalog.relays import Relays
from weft.cores.catalog.sharing import Sharing
from weft.cores.kit.tapping import Sampler
from weft.sim.canaries import canary
from weft.wire.catalog import bridges

BRIDGED: Final = "bridges"


@canary(Sharing, "_offer_of", caught_by="crossed", within=10, scenario=BRIDGED)
def passed_on_as_its_own(right: Any) -> Any:
    """A broker offers what it has imported as if it were a service of its own network."""

    def offer_of(self: Sharing, link: Any, key: Any) -> Any:
        offer, own = right(self, link, key), self.context.settings.net
        return offer if offer is None else msgspec.structs.replace(offer, net=own, path=(own,))

    return offer_of


@canary(Bridges, "let_go", caught_by="crossed", within=20, scenario=BRIDGED)
def entries_outlive_their_bridge(right: Any) -> Any:
    """Entries of a bridge that is down are still listed, as if the bridge were up."""

    def let_go(self: Bridges, link: Any) -> None:
        link.net, net = "", link.net
        right(self, link)
        if not link.endpoint:
            link.net = net

    return let_go


@canary(bridges, "is_sealed", caught_by="called_once", within=40, scenario=BRIDGED)
def bridge_sum_not_checked(right: Any) -> Any:  # noqa: ARG001  # the right function is not called: the bug
    """A message of a bridge whose checksum is wrong is accepted."""
    return lambda message, *, is_due=False: True  # noqa: ARG005  # it looks at nothing, which is the bug


@canary(Checks, "_tell", caught_by="healthy", within=3, scenario=BRIDGED)
def health_stays_as_it_was(right: Any) -> Any:  # noqa: ARG001  # the right method is not called: the bug
    """The result of a check is counted, but the health stays as it was."""
    return lambda self, instance: None  # noqa: ARG005  # it does nothing with them, which is the bug


@canary(Relays, "carry", caught_by="called_once", within=3, scenario=BRIDGED)
def called_again_to_be_sure(right: Any) -> Any:
    """A call from another network is sent to the service twice."""

    def carry(self: Relays, *call: Any) -> None:
        right(self, *call)
        right(self, *call)

    return carry


@canary(Sampler, "takes", caught_by="tapped", within=20, scenario=BRIDGED)
def left_out_uncounted(right: Any) -> Any:
    """Messages that a tap leaves out beyond its rate are not counted."""

    def takes(self: Sampler, way: str, socket: str, mono: int) -> bool:
        before = self.sampled
        is_taken: bool = right(self, way, socket, mono)
        self.sampled = before
        return is_taken

    return takes
