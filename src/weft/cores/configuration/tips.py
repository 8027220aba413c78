"""Asks for the parent's last number: if the very last update is lost, no gap shows it (CFG-019)."""

from weft.base.errors import PeerError
from weft.base.now import Now
from weft.cores.configuration import limits
from weft.cores.configuration.context import Context
from weft.cores.kit.timers import earliest
from weft.wire.replication import TIP, KThxBai


class Tips:
    """Questions for the tip of each topic, and their answers. Times are monotonic nanoseconds."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._due_at: int | None = None
        self._asked: dict[str, tuple[str, int]] = {}
        """By subtree of the question: the topic, and our own number when it was asked."""
        self._ahead: dict[str, int] = {}
        """By topic: the parent's number, where it is above ours."""
        self._judge_at: int | None = None

    @property
    def is_unanswered(self) -> bool:
        """Whether the last questions were not answered: the connection may be dead."""
        return bool(self._asked)

    def ask_soon(self, now: Now) -> None:
        """Ask soon, when updates under way have arrived."""
        at = now.mono + limits.TIP_AFTER_NS
        self._due_at = at if self._due_at is None else min(at, self._due_at)

    def forget(self) -> None:
        """Forget all questions: a new snapshot answers them."""
        self._due_at = self._judge_at = None
        self._asked, self._ahead = {}, {}

    def is_due(self, now: Now) -> bool:
        return self._due_at is not None and now.mono >= self._due_at

    def ask(self, topics: tuple[str, ...], now: Now) -> list[str]:
        """The questions to ask now."""
        store = self._context.store
        self._asked = {TIP + (topic or "/"): (topic, store.tip(topic)) for topic in topics}
        self._due_at = now.mono + limits.TIP_PERIOD_BEATS * self._context.heartbeat_ns
        return list(self._asked)

    def hear(self, answer: KThxBai, now: Now) -> bool:
        """An answer; PeerError `not-asked`.

        Returns whether the parent has less than it once gave us: then it has another history.
        """
        asked = self._asked.pop(answer.subtree or "", None)
        if asked is None:
            raise PeerError("not-asked", str(answer.subtree))
        topic, own = asked
        if answer.number > self._context.store.tip(topic):
            self._ahead[topic] = answer.number
            if self._judge_at is None:
                self._judge_at = now.mono + limits.TIP_GRACE_NS
        return 0 < answer.number < own  # a foreign parent without tips may answer 0

    def is_behind(self, now: Now) -> bool:
        """Whether the parent's later writes have had time to arrive, and have not."""
        if self._judge_at is None or now.mono < self._judge_at:
            return False
        ahead, self._ahead, self._judge_at = self._ahead, {}, None
        return any(number > self._context.store.tip(topic) for topic, number in ahead.items())

    def deadline(self) -> int | None:
        return earliest(self._due_at, self._judge_at)
