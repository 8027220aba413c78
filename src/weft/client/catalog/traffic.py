"""The messages of a service as they pass: looked at while a tap wants that, else only counted (MON-004, MON-009)."""

from collections.abc import Callable

from weft.wire.catalog.messages import Message

Frames = list[bytes]


class Traffic:
    """Who looks at the messages of a service, and how many have passed that nobody looked at."""

    __slots__ = ("answers", "calls", "on_answer", "on_call", "on_publication", "publications")

    def __init__(self) -> None:
        self.calls = self.answers = self.publications = 0
        """Messages that nobody has looked at: received at the ROUTER, sent by it, published."""
        self.on_call: Callable[[Frames, Message | None], None] | None = None
        """Looks at each message to the ROUTER, and at its decoded form, if it has one."""
        self.on_answer: Callable[[Frames, Message], None] | None = None
        """Looks at each answer, and at the call that it answers."""
        self.on_publication: Callable[[Frames], None] | None = None

    def unwatch(self) -> None:
        """Nobody looks any more."""
        self.on_call = self.on_answer = self.on_publication = None
