"""What became of the messages of one turn: whoever transmits writes it down, and the cores hear it when the turn is over.

Behind a message that was not sent nothing goes to the same peer in this turn, where the channel says what it refuses. So
there are no holes before the end, and "the last three were refused" says which ones.
"""

from collections import Counter

from weft.base.effects import Confirm, Confirmed, SendFailed
from weft.node.channels import CHANNELS


class Receipts:
    """One turn's."""

    def __init__(self) -> None:
        self._unsent: Counter[tuple[str, bytes]] = Counter()
        self._confirmed: list[Confirmed] = []

    def __bool__(self) -> bool:
        """Whether a core has to hear something."""
        return bool(self._unsent or self._confirmed)

    def has_failed(self, channel: str, peer: bytes) -> bool:
        """Whether something for that peer was not sent in this turn."""
        return (channel, peer) in self._unsent

    def note_unsent(self, channel: str, peer: bytes) -> None:
        """Note that one more message was not sent. The core hears of it only if the channel `tells_failure`."""
        if CHANNELS[channel].tells_failure:
            self._unsent[channel, peer] += 1

    def confirm(self, effect: Confirm) -> None:
        """A core asks about the last messages for a peer: the last of them are those that were refused."""
        assert CHANNELS[effect.channel].tells_failure, f"{effect.channel} does not say what it refuses"
        refused = min(effect.count, self._unsent[effect.channel, effect.peer])
        self._confirmed.append(Confirmed(effect.channel, effect.peer, effect.count, effect.token, refused))

    def orders(self) -> list[tuple[str, SendFailed | Confirmed]]:
        """What the cores are to hear, by their names: an order for each message that was not sent, then what was asked."""
        failed = [
            (CHANNELS[channel].core, SendFailed(channel, peer))
            for (channel, peer), count in self._unsent.items()
            for _ in range(count)
        ]
        return [*failed, *((CHANNELS[order.channel].core, order) for order in self._confirmed)]
