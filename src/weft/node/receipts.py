"""Records which messages of a turn were sent; the cores are told at the end of the turn.

If a channel reports failures, then after a message that was not sent nothing more goes to the same peer in this turn.
So the unsent messages are always the last ones, and their number identifies them.
"""

from collections import Counter

from weft.base.effects import Confirm, Confirmed, SendFailed
from weft.node.channels import CHANNELS


class Receipts:
    """The receipts of one turn."""

    def __init__(self) -> None:
        self._unsent: Counter[tuple[str, bytes]] = Counter()
        self._confirmed: list[Confirmed] = []

    def __bool__(self) -> bool:
        """Whether a core must be told something."""
        return bool(self._unsent or self._confirmed)

    def has_failed(self, channel: str, peer: bytes) -> bool:
        """Whether a message for that peer was not sent in this turn."""
        return (channel, peer) in self._unsent

    def note_unsent(self, channel: str, peer: bytes) -> None:
        """Note that one more message was not sent. The core is told only if the channel `tells_failure`."""
        if CHANNELS[channel].tells_failure:
            self._unsent[channel, peer] += 1

    def confirm(self, effect: Confirm) -> None:
        """A core asks about the last messages to a peer: the unsent ones are the last of them."""
        assert CHANNELS[effect.channel].tells_failure, f"{effect.channel} does not say what it refuses"
        refused = min(effect.count, self._unsent[effect.channel, effect.peer])
        self._confirmed.append(Confirmed(effect.channel, effect.peer, effect.count, effect.token, refused))

    def orders(self) -> list[tuple[str, SendFailed | Confirmed]]:
        """The orders for cores, by core name: one for each message that was not sent, then the answers to questions."""
        failed = [
            (CHANNELS[channel].core, SendFailed(channel, peer))
            for (channel, peer), count in self._unsent.items()
            for _ in range(count)
        ]
        return [*failed, *((CHANNELS[order.channel].core, order) for order in self._confirmed)]
