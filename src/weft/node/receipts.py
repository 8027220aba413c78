"""Notes which messages of a turn could not be sent; the cores are told at the end of the turn.

On a channel that reports failures, nothing more is sent to a peer in a turn after one message to it has failed. So the
unsent messages are always the last ones, and their number identifies them.
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
        """A core asks how many of its last messages to a peer were sent; the unsent ones are the last of them."""
        assert CHANNELS[effect.channel].tells_failure, f"{effect.channel} does not report failures"
        refused = min(effect.count, self._unsent[effect.channel, effect.peer])
        self._confirmed.append(Confirmed(effect.channel, effect.peer, effect.count, effect.token, refused))

    def orders(self) -> list[tuple[str, SendFailed | Confirmed]]:
        """The orders with the names of their cores: one for each unsent message, then the answers to `confirm`."""
        failed = [
            (CHANNELS[channel].core, SendFailed(channel, peer))
            for (channel, peer), count in self._unsent.items()
            for _ in range(count)
        ]
        return [*failed, *((CHANNELS[order.channel].core, order) for order in self._confirmed)]
