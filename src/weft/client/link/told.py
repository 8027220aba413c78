"""What is read by `async for` and ended by `async with`, whatever it tells."""

from abc import abstractmethod
from types import TracebackType
from typing import Self


class Told:
    """Begun by `__aenter__` of who derives from this, ended by `close`."""

    @abstractmethod
    def close(self) -> None:
        """End it; whoever waits for more is told that there is none."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.close()

    def __aiter__(self) -> Self:
        """Itself."""
        return self
