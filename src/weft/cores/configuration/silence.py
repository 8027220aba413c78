"""How long the parent has been silent, on any socket (CFG-046, REC-001)."""

from weft.base.now import Now
from weft.cores.configuration import limits
from weft.cores.configuration.context import Context
from weft.cores.configuration.messages import ParentHeard, ParentQuiet, ParentSilent


class Silence:
    """Notices when the parent is quiet for D/2, silent for D and each further D, and heard again."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._heard_at = 0
        self._silent_at: int | None = None
        """When silence is reported next; None: there is no parent."""
        self._is_quiet = True

    def begin(self, now: Now) -> None:
        """A new parent: it has the whole time until its first message."""
        self._is_quiet = True
        self._heard_at = now.mono
        self._silent_at = now.mono + self._context.dead_ns

    def end(self) -> None:
        """There is no parent."""
        self._silent_at = None

    def hear(self, now: Now) -> bool:
        """A message came; returns whether the parent had been quiet."""
        self._heard_at = now.mono
        self._silent_at = now.mono + self._context.dead_ns
        was_quiet, self._is_quiet = self._is_quiet, False
        if was_quiet:
            self._context.tell(ParentHeard())
        return was_quiet

    def forgive(self, now: Now) -> None:
        """This machine has slept, not the parent."""
        if self._silent_at is not None:
            self._heard_at = now.mono
            self._silent_at = now.mono + self._context.dead_ns

    def wake(self, now: Now) -> bool:
        """Returns whether the parent has now been silent for another D."""
        if self._silent_at is None:
            return False
        if not self._is_quiet and now.mono >= self._heard_at + self._context.dead_ns // 2:
            self._is_quiet = True
            self._context.tell(ParentQuiet())
        if now.mono < self._silent_at:
            return False
        self._silent_at = now.mono + self._context.dead_ns
        self._context.tell(ParentSilent(now.mono - self._heard_at))
        return True

    def is_orphaned(self, now: Now) -> bool:
        """Whether the silence is so long that children should look for another parent (CFG-045)."""
        return self._silent_at is not None and now.mono >= self.orphaned_at()

    def orphaned_at(self) -> int:
        return self._heard_at + limits.ORPHAN_DEATHS * self._context.dead_ns

    def deadline(self) -> int | None:
        """When `wake` is wanted."""
        quiet_at = self._heard_at + self._context.dead_ns // 2
        return self._silent_at if self._is_quiet or self._silent_at is None else min(quiet_at, self._silent_at)
