"""A message passes the links of its chain in order, without skipping one (CHN-010, CHN-012, CHN-013; CHK-016).

The history line is `offer`: a node hands a message to a program that may rewrite it, so that the message waits there.
It contains the place of that link in the chain, and the places of all such links at that time. Places are never used again
while the node runs, so a link whose place is listed twice was there all the time between. Read-only programs are not
judged: a copy may be discarded (CHN-018). Nor is a message that is handed out again because its program was lost: it goes
on at whichever link has that name now.
"""

from typing import Any, ClassVar

from weft.checks.checker import Checker
from weft.checks.history import Fact


class ChainOrder(Checker):
    """No message skips a link, repeats one, or goes back (CHK-016)."""

    rule = "chain_order"
    HEARS: ClassVar = {("sent", "offer"): "note_offer"}

    def __init__(self) -> None:
        self.last: dict[tuple[Any, ...], Fact] = {}
        """Per start of a node, direction and message: where it was offered last."""

    def note_offer(self, fact: Fact) -> None:
        direction, origin, number, place, places, is_again = fact.value
        message = (fact.node, fact.process, direction, origin, number)
        before = self.last.get(message)
        self.last[message] = fact
        if before is None or is_again:
            return
        last = before.value[3]
        if place <= last:
            how = "again" if place == last else f"after that at {last}"
            self.broken(f"{fact.node} offers message {number} of {origin} at {place} {how}", before, fact)
        for other in before.value[4]:
            if last < other < place and other in places:
                self.broken(
                    f"{fact.node} offers message {number} of {origin} at {place}, and not at {other}", before, fact
                )
