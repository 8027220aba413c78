"""Which parent was the first to acknowledge which numbers, so that mail goes to one parent only (CHN-031, RTE-007)."""

from collections import deque

from weft.cores.carrier import limits


class Takers:
    """Spans of hop numbers, ascending, each with the parent that has them."""

    def __init__(self) -> None:
        self._spans: deque[tuple[int, bytes]] = deque()
        """`(upto, parent)`: the numbers behind the span before, up to `upto`."""

    @property
    def upto(self) -> int:
        """The highest number that any parent has acknowledged."""
        return self._spans[-1][0] if self._spans else 0

    def note(self, upto: int, parent: bytes) -> None:
        """A parent acknowledges all up to `upto`; what another has had before stays that one's."""
        spans = self._spans
        if spans and upto <= spans[-1][0]:
            return
        if spans and spans[-1][1] == parent:
            spans.pop()
        spans.append((upto, parent))
        if len(spans) > limits.TAKERS_MAX:
            spans.popleft()  # mail that comes twice is known by its identity where both ways meet

    def has_other(self, number: int, parent: bytes | None) -> bool:
        """Whether another parent than this one has acknowledged a number first."""
        for upto, taker in self._spans:
            if number <= upto:
                return taker != parent
        return False

    def forget(self, safe: int) -> None:
        """Numbers up to `safe` are never sent again."""
        while self._spans and self._spans[0][0] <= safe:
            self._spans.popleft()
